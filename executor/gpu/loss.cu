/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax and losses. */
#include "executor/gpu/device.h"

KERNEL (softmax_fwd) {
  const compute_softmax *s = &k.c.softmax;
  TEAMS (r, k.items * s->heads * s->queries) {
    const element *x = E (0) + r * s->columns;
    element *y = OUT (1, 0) + r * s->columns;
    float most = -INFINITY;
    int64_t n = s->causal ? r % s->queries + s->columns - s->queries + 1 : s->columns;
    double sum = 0;
    n = n < 0 ? 0 : n;
    LANES (i, n) most = fmaxf (most, get (x, i));
    most = team_most (most);
    LANES (i, n) sum += expf (get (x, i) - most);
    float scale = n > 0 ? (float)(1 / team_sum (sum)) : 0;
    LANES (i, s->columns) put (y, i, i < n ? expf (get (x, i) - most) * scale : 0);
  }
}

KERNEL (softmax_bwd) {
  const compute_softmax *s = &k.c.softmax;
  TEAMS (r, k.items * s->heads * s->queries) {
    const element *y = E (0) + r * s->columns, *dy = E (1) + r * s->columns;
    double dot = 0;
    LANES (i, s->columns) dot += (double)get (y, i) * get (dy, i);
    float all = (float)team_sum (dot);
    LANES (i, s->columns)
      put (OUT (2, 1), r * s->columns + i, get (y, i) * (get (dy, i) - all));
  }
}

FN double share_of (const compute_entropy *s) {
  double weight = s->weight_ppm > 0 ? (double)s->weight_ppm * 1e-6 : 1;
  return weight / (double)(s->batch * s->rows * s->inner);
}

/* One place of one row: by one thread, its classes lie `inner` apart. */
FN double place_loss (const kernel_work *k, int64_t at) {
  const compute_entropy *s = &k->c.entropy;
  int32_t target = ((const int32_t *)k->at[1])[at];
  if (!in_range (target, s->classes, k->failed))
    return 0;
  int64_t first = at / s->inner * s->classes * s->inner + at % s->inner;
  const element *x = (const element *)k->at[0] + first;
  float most = get (x, 0);
  double sum = 0;
  for (int64_t c = 1; c < s->classes; c++)
    most = fmaxf (most, get (x, c * s->inner));
  for (int64_t c = 0; c < s->classes; c++)
    sum += expf (get (x, c * s->inner) - most);
  float scale = (float)(1 / sum);
  for (int64_t c = 0; c < s->classes; c++)
    put ((element *)k->at[2] + first, c * s->inner, expf (get (x, c * s->inner) - most) * scale);
  return log (sum) - (get (x, target * s->inner) - most);
}

/* A row whose classes lie side by side: by a team. */
FN double row_loss (const kernel_work *k, int64_t row) {
  const compute_entropy *s = &k->c.entropy;
  int32_t target = ((const int32_t *)k->at[1])[row];
  const element *x = (const element *)k->at[0] + row * s->classes;
  element *p = (element *)k->at[2] + row * s->classes;
  float most = -INFINITY;
  double sum = 0;
  if (!in_range (target, s->classes, k->failed))
    return 0;
  LANES (c, s->classes) most = fmaxf (most, get (x, c));
  most = team_most (most);
  LANES (c, s->classes) sum += expf (get (x, c) - most);
  sum = team_sum (sum);
  float scale = (float)(1 / sum);
  LANES (c, s->classes) put (p, c, expf (get (x, c) - most) * scale);
  return log (sum) - (get (x, target) - most);
}

/* Places of an item in chunks, a team each; the second launch adds them up in their order. */
KERNEL (entropy_fwd) {
  const compute_entropy *s = &k.c.entropy;
  int64_t chunks = kernel_work_chunks (&k), places = s->rows * s->inner;
  if (k.phase == 1) {
    EACH (item, k.items) {
      double loss = 0;
      for (int64_t c = 0; c < chunks; c++)
        loss += k.partials[item * chunks + c];
      F (3)[item] = (float)(loss * share_of (s));
    }
    return;
  }
  TEAMS (t, k.items * chunks) {
    int64_t first = t / chunks * places, from = first + begin_of (places, t % chunks, chunks);
    int64_t to = first + begin_of (places, t % chunks + 1, chunks);
    double loss = 0;
    if (s->inner == 1) {
      for (int64_t row = from; row < to; row++)
        loss += row_loss (&k, row);
    } else {
      LANES (place, to - from) loss += place_loss (&k, from + place);
      loss = team_sum (loss);
    }
    LANES (one, 1) k.partials[t] = loss;
  }
}

KERNEL (entropy_bwd) {
  const compute_entropy *s = &k.c.entropy;
  float scale = (float)share_of (s);
  EACH (i, k.items * s->rows * s->classes * s->inner) {
    int64_t class_ = i / s->inner % s->classes, row = i / s->inner / s->classes;
    int32_t target = ((const int32_t *)k.at[1])[row * s->inner + i % s->inner];
    if (in_range (target, s->classes, k.failed))
      put (E (0), i, (get (E (0), i) - (target == class_)) * scale);
  }
}

/* A logarithm is at least -100, so that a certain mistake costs something finite. */
FN double log_of (double x) {
  double l = log (x);
  return l > -100 ? l : -100;
}

KERNEL (binary_fwd) {
  const compute_binary *s = &k.c.binary;
  TEAMS (item, k.items) {
    double sum = 0;
    LANES (i, s->size) {
      double x = get (E (0), item * s->size + i);
      sum -= log_of (s->label ? x : 1 - x);
    }
    sum = team_sum (sum);
    LANES (one, 1) F (1)[item] = (float)(sum / (double)(s->batch * s->size));
  }
}

KERNEL (binary_bwd) {
  const compute_binary *s = &k.c.binary;
  double share = 1 / (double)(s->batch * s->size);
  EACH (i, k.items * s->size) {
    double x = get (E (0), i), slope = x * (1 - x);
    put (E (1), i, (float)(share * (x - (s->label != 0)) / (slope > 1e-12 ? slope : 1e-12)));
  }
}
