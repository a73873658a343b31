/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Losses.  An item's loss is summed in double, row after row. */
#include <math.h>

#include "executor/ops/inner.h"

static double share_of (const compute_entropy *s) {
  double weight = s->weight_ppm > 0 ? (double)s->weight_ppm * 1e-6 : 1;
  return weight / (double)(s->batch * s->rows * s->inner);
}

/* One row: classes that stand `inner` apart.  Returns -log of the target's probability. */
static double entropy_row (const compute_entropy *s, const float *x, int32_t target,
                           float *probability) {
  float most = x[0];
  double sum = 0;
  for (int64_t c = 1; c < s->classes; c++)
    most = x[c * s->inner] > most ? x[c * s->inner] : most;
  for (int64_t c = 0; c < s->classes; c++)
    sum += probability[c * s->inner] = expf (x[c * s->inner] - most);
  float scale = (float)(1 / sum);
  for (int64_t c = 0; c < s->classes; c++)
    probability[c * s->inner] *= scale;
  return log (sum) - (x[target * s->inner] - most);
}

void op_entropy_fwd (const work *k) {
  const compute_entropy *s = &k->c->entropy;
  const float *x = ops_float (k, 0);
  const int32_t *target = k->at[1];
  float *probability = ops_float (k, 2), *loss = ops_float (k, 3);
  if (!ops_in_range (k, target, k->items * s->rows * s->inner, s->classes))
    return;
  for (int64_t item = 0; item < k->items; item++) {
    double sum = 0;
    for (int64_t r = 0; r < s->rows; r++) {
      for (int64_t i = 0; i < s->inner; i++)
        sum += entropy_row (s, x + i, target[i], probability + i);
      x += s->classes * s->inner;
      probability += s->classes * s->inner;
      target += s->inner;
    }
    loss[item] = (float)(sum * share_of (s));
  }
}

void op_entropy_bwd (const work *k) {
  const compute_entropy *s = &k->c->entropy;
  float *dx = ops_float (k, 0), scale = (float)share_of (s);
  const int32_t *target = k->at[1];
  if (!ops_in_range (k, target, k->items * s->rows * s->inner, s->classes))
    return;
  for (int64_t r = 0; r < k->items * s->rows; r++)
    for (int64_t c = 0; c < s->classes; c++)
      for (int64_t i = 0; i < s->inner; i++, dx++)
        *dx = (*dx - (target[r * s->inner + i] == c)) * scale;
}

/* A logarithm is at least -100, as usual, so that a certain mistake costs something finite. */
static double log_of (double x) {
  double l = log (x);
  return l > -100 ? l : -100;
}

void op_binary_fwd (const work *k) {
  const compute_binary *s = &k->c->binary;
  const float *x = ops_float (k, 0);
  float *loss = ops_float (k, 1);
  for (int64_t item = 0; item < k->items; item++, x += s->size) {
    double sum = 0;
    for (int64_t i = 0; i < s->size; i++)
      sum -= log_of (s->label ? (double)x[i] : 1 - (double)x[i]);
    loss[item] = (float)(sum / (double)(s->batch * s->size));
  }
}

void op_binary_bwd (const work *k) {
  const compute_binary *s = &k->c->binary;
  const float *x = ops_float (k, 0);
  float *dx = ops_float (k, 1);
  double share = 1 / (double)(s->batch * s->size);
  for (int64_t i = 0; i < k->items * s->size; i++) {
    double slope = (double)x[i] * (1 - (double)x[i]);
    dx[i] = (float)(share * (x[i] - (s->label != 0)) / (slope > 1e-12 ? slope : 1e-12));
  }
}
