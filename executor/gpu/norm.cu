/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Normalization.  Sums over a whole batch are made chunk by chunk, each by a team; the next launch
   adds the chunks up in their order. */
#include "executor/gpu/columns.h"

FN float eps_of (int64_t ppt) {
  return (float)((double)ppt * 1e-12);
}

/* ---- over the batch ---- */

typedef struct chunk {
  int64_t channel, number, chunks, from, to;
} chunk;

FN chunk chunk_of (const kernel_work *k, int64_t team) {
  const compute_batchnorm *s = &k->c.batchnorm;
  int64_t chunks = kernel_work_chunks (k);
  chunk c = { team / chunks, team % chunks, chunks, 0, 0 };
  c.from = begin_of (k->items * s->inner, c.number, chunks);
  c.to = begin_of (k->items * s->inner, c.number + 1, chunks);
  return c;
}

/* The sums that a launch before left, `of` them by chunk. */
FN double sum_of_chunks (const kernel_work *k, const chunk *c, int which, int of) {
  double sum = 0;
  for (int64_t i = 0; i < c->chunks; i++)
    sum += k->partials[(c->channel * c->chunks + i) * of + which];
  return sum;
}

#define CHUNK_LANES(e, c) LANES (e##_lane, (c).to - (c).from) \
  for (int64_t e = (c).from + e##_lane, e##_once = 1; e##_once; e##_once = 0)

/* Partials: sum, sum of squares about the mean. */
KERNEL (batchnorm_fwd) {
  const compute_batchnorm *s = &k.c.batchnorm;
  double n = (double)(k.items * s->inner), momentum = (double)s->momentum_ppm * 1e-6;
  TEAMS (t, s->channels * kernel_work_chunks (&k)) {
    chunk c = chunk_of (&k, t);
    int64_t channel = c.channel * s->inner;
    double sum = 0;
    if (k.phase == 0) {
      CHUNK_LANES (e, c) sum += get (ITEM_OF (0, e / s->inner), channel + e % s->inner);
      sum = team_sum (sum);
      LANES (one, 1) k.partials[2 * t] = sum;
      continue;
    }
    double mean = sum_of_chunks (&k, &c, 0, 2) / n;
    if (k.phase == 1) {
      CHUNK_LANES (e, c) {
        double x = get (ITEM_OF (0, e / s->inner), channel + e % s->inner) - mean;
        sum += x * x;
      }
      sum = team_sum (sum);
      LANES (one, 1) k.partials[2 * t + 1] = sum;
      continue;
    }
    double variance = sum_of_chunks (&k, &c, 1, 2) / n;
    float middle = (float)mean, rstd = (float)(1 / sqrt (variance + eps_of (s->eps_ppt)));
    LANES (one, c.number == 0) {
      F (6)[c.channel] = middle;
      F (7)[c.channel] = rstd;
      if (F (3) != 0) { /* absent in a recomputed copy */
        double unbiased = n > 1 ? variance * n / (n - 1) : variance;
        F (3)[c.channel] += (float)(momentum * (mean - F (3)[c.channel]));
        F (4)[c.channel] += (float)(momentum * (unbiased - F (4)[c.channel]));
      }
    }
    float scale = rstd * (E (1) != 0 ? get (E (1), c.channel) : 1);
    float shift = E (2) != 0 ? get (E (2), c.channel) : 0;
    CHUNK_LANES (e, c) {
      int64_t at = channel + e % s->inner, item = e / s->inner;
      put (ITEM_OF (5, item), at, (get (ITEM_OF (0, item), at) - middle) * scale + shift);
    }
  }
}

/* Operands: x, dy, w, mean, rstd, dx, dw, db.  Partials: sum of dy, of dy (x - mean). */
KERNEL (batchnorm_bwd) {
  const compute_batchnorm *s = &k.c.batchnorm;
  double n = (double)(k.items * s->inner);
  int out = k.at[5] != 0 ? 5 : 1;
  TEAMS (t, s->channels * kernel_work_chunks (&k)) {
    chunk c = chunk_of (&k, t);
    int64_t channel = c.channel * s->inner;
    float middle = F (3)[c.channel], rstd = F (4)[c.channel];
    if (k.phase == 0) {
      double sum = 0, dot = 0;
      CHUNK_LANES (e, c) {
        int64_t item = e / s->inner, at = channel + e % s->inner;
        float dy = get (ITEM_OF (1, item), at);
        sum += dy;
        dot += (double)dy * (get (ITEM_OF (0, item), at) - middle);
      }
      sum = team_sum (sum);
      dot = team_sum (dot);
      LANES (one, 1) {
        k.partials[2 * t] = sum;
        k.partials[2 * t + 1] = dot;
      }
      continue;
    }
    double sum = sum_of_chunks (&k, &c, 0, 2), dot = sum_of_chunks (&k, &c, 1, 2) * rstd;
    LANES (one, c.number == 0) {
      if (E (6) != 0)
        put (E (6), c.channel, get (E (6), c.channel) + (float)dot);
      if (E (7) != 0)
        put (E (7), c.channel, get (E (7), c.channel) + (float)sum);
    }
    float scale = (E (2) != 0 ? get (E (2), c.channel) : 1) * rstd;
    float slope = (float)(dot / n) * rstd, shift = (float)(sum / n);
    CHUNK_LANES (e, c) {
      int64_t item = e / s->inner, at = channel + e % s->inner;
      put (ITEM_OF (out, item), at,
           scale * (get (ITEM_OF (1, item), at) - shift -
                    (get (ITEM_OF (0, item), at) - middle) * slope));
    }
  }
}

/* ---- over a row ---- */

KERNEL (layernorm_fwd) {
  const compute_rownorm *s = &k.c.rownorm;
  TEAMS (r, k.items * s->rows) {
    const element *x = E (0) + r * s->width;
    double sum = 0, squares = 0;
    LANES (i, s->width) sum += get (x, i);
    double mean = team_sum (sum) / (double)s->width;
    LANES (i, s->width) squares += (get (x, i) - mean) * (get (x, i) - mean);
    squares = team_sum (squares) / (double)s->width;
    float middle = (float)mean, rstd = (float)(1 / sqrt (squares + eps_of (s->eps_ppt)));
    LANES (one, 1) {
      F (4)[r] = middle;
      F (5)[r] = rstd;
    }
    LANES (i, s->width)
      put (E (3), r * s->width + i,
           (get (x, i) - middle) * rstd * get (E (1), i) + get (E (2), i));
  }
}

/* Operands: x, dy, w, mean, rstd, dx, dw, db. */
FN float layernorm_term (const void *context, int64_t row, int64_t column, int number) {
  const kernel_work *k = (const kernel_work *)context;
  int64_t at = row * k->c.rownorm.width + column;
  float dy = get ((const element *)k->at[1], at);
  if (number == 1)
    return dy;
  return dy * ((get ((const element *)k->at[0], at) - ((const float *)k->at[3])[row]) *
               ((const float *)k->at[4])[row]);
}

KERNEL_OF_TWO (layernorm_bwd) {
  const compute_rownorm *s = &k.c.rownorm;
  int64_t rows = k.items * s->rows;
  TEAMS (r, rows) {
    const element *x = E (0) + r * s->width, *dy = E (1) + r * s->width;
    float mean = F (3)[r], rstd = F (4)[r];
    double sum = 0, dot = 0;
    LANES (i, s->width) {
      float g = get (dy, i) * get (E (2), i);
      sum += g;
      dot += (double)g * ((get (x, i) - mean) * rstd);
    }
    float shift = (float)(team_sum (sum) / (double)s->width);
    float slope = (float)(team_sum (dot) / (double)s->width);
    LANES (i, s->width)
      put (E (5), r * s->width + i,
           rstd * (get (dy, i) * get (E (2), i) - shift - (get (x, i) - mean) * rstd * slope));
  }
  element *to[COLUMN_SUMS] = { E (6), E (7) };
  column_sums (rows, s->width, layernorm_term, &k, to);
}

KERNEL (rmsnorm_fwd) {
  const compute_rownorm *s = &k.c.rownorm;
  TEAMS (r, k.items * s->rows) {
    const element *x = E (0) + r * s->width;
    double squares = 0;
    LANES (i, s->width) squares += (double)get (x, i) * get (x, i);
    squares = team_sum (squares) / (double)s->width;
    float rstd = (float)(1 / sqrt (squares + eps_of (s->eps_ppt)));
    LANES (one, 1) F (3)[r] = rstd;
    LANES (i, s->width) put (E (2), r * s->width + i, get (x, i) * rstd * get (E (1), i));
  }
}

/* Operands: x, dy, w, rstd, dx, dw. */
FN float rmsnorm_term (const void *context, int64_t row, int64_t column, int number) {
  const kernel_work *k = (const kernel_work *)context;
  int64_t at = row * k->c.rownorm.width + column;
  (void)number;
  return get ((const element *)k->at[1], at) * get ((const element *)k->at[0], at) *
         ((const float *)k->at[3])[row];
}

KERNEL (rmsnorm_bwd) {
  const compute_rownorm *s = &k.c.rownorm;
  int64_t rows = k.items * s->rows;
  TEAMS (r, rows) {
    const element *x = E (0) + r * s->width, *dy = E (1) + r * s->width;
    float rstd = F (3)[r];
    double dot = 0;
    LANES (i, s->width) dot += (double)(get (dy, i) * get (E (2), i)) * get (x, i);
    float slope = (float)(team_sum (dot) / (double)s->width) * rstd * rstd;
    LANES (i, s->width)
      put (E (4), r * s->width + i,
           rstd * (get (dy, i) * get (E (2), i) - get (x, i) * slope));
  }
  element *to[COLUMN_SUMS] = { E (5), 0 };
  column_sums (rows, s->width, rmsnorm_term, &k, to);
}
