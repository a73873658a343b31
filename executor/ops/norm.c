/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Normalization.  Sums are made in double: over a channel item after item, over a row from its
   first element on. */
#include <math.h>

#include "executor/ops/inner.h"

/* ---- over the batch ---- */

static float eps_of (int64_t ppt) {
  return (float)((double)ppt * 1e-12);
}

/* Mean and variance of channel c over all items. */
static void channel_moments (const work *k, int64_t c, double *mean, double *variance) {
  const compute_batchnorm *s = &k->c->batchnorm;
  double n = (double)(k->items * s->inner), sum = 0, squares = 0;
  for (int64_t item = 0; item < k->items; item++) {
    const float *x = ops_item (k, 0, item) + c * s->inner;
    for (int64_t i = 0; i < s->inner; i++)
      sum += x[i];
  }
  *mean = sum / n;
  for (int64_t item = 0; item < k->items; item++) {
    const float *x = ops_item (k, 0, item) + c * s->inner;
    for (int64_t i = 0; i < s->inner; i++)
      squares += (x[i] - *mean) * (x[i] - *mean);
  }
  *variance = squares / n;
}

static void keep_running (const work *k, int64_t c, double mean, double variance) {
  const compute_batchnorm *s = &k->c->batchnorm;
  float *running_mean = ops_float (k, 3), *running_var = ops_float (k, 4);
  double momentum = (double)s->momentum_ppm * 1e-6, n = (double)(k->items * s->inner);
  if (running_mean == NULL) /* a recomputed copy */
    return;
  double unbiased = n > 1 ? variance * n / (n - 1) : variance;
  running_mean[c] += (float)(momentum * (mean - running_mean[c]));
  running_var[c] += (float)(momentum * (unbiased - running_var[c]));
}

void op_batchnorm_fwd (const work *k) {
  const compute_batchnorm *s = &k->c->batchnorm;
  const float *w = ops_float (k, 1), *b = ops_float (k, 2);
  float *means = ops_float (k, 6), *rstds = ops_float (k, 7);
  for (int64_t c = 0; c < s->channels; c++) {
    double mean, variance;
    channel_moments (k, c, &mean, &variance);
    keep_running (k, c, mean, variance);
    float middle = means[c] = (float)mean;
    rstds[c] = (float)(1 / sqrt (variance + eps_of (s->eps_ppt)));
    float scale = rstds[c] * (w != NULL ? w[c] : 1), shift = b != NULL ? b[c] : 0;
    for (int64_t item = 0; item < k->items; item++) {
      const float *x = ops_item (k, 0, item) + c * s->inner;
      float *y = ops_item (k, 5, item) + c * s->inner;
      for (int64_t i = 0; i < s->inner; i++)
        y[i] = (x[i] - middle) * scale + shift;
    }
  }
}

/* Operands: x, dy, w, mean, rstd, dx, dw, db. */
void op_batchnorm_bwd (const work *k) {
  const compute_batchnorm *s = &k->c->batchnorm;
  const float *w = ops_float (k, 2), *means = ops_float (k, 3), *rstds = ops_float (k, 4);
  float *dw = ops_float (k, 6), *db = ops_float (k, 7);
  int out = k->call->operands[5].count > 0 ? 5 : 1;
  double n = (double)(k->items * s->inner);
  for (int64_t c = 0; c < s->channels; c++) {
    double sum = 0, dot = 0;
    for (int64_t item = 0; item < k->items; item++) {
      const float *x = ops_item (k, 0, item) + c * s->inner;
      const float *dy = ops_item (k, 1, item) + c * s->inner;
      for (int64_t i = 0; i < s->inner; i++) {
        sum += dy[i];
        dot += (double)dy[i] * (x[i] - means[c]);
      }
    }
    dot *= rstds[c];
    if (dw != NULL)
      dw[c] += (float)dot;
    if (db != NULL)
      db[c] += (float)sum;
    float scale = (w != NULL ? w[c] : 1) * rstds[c], slope = (float)(dot / n) * rstds[c];
    float middle = means[c], shift = (float)(sum / n);
    for (int64_t item = 0; item < k->items; item++) {
      const float *x = ops_item (k, 0, item) + c * s->inner;
      const float *dy = ops_item (k, 1, item) + c * s->inner;
      float *dx = ops_item (k, out, item) + c * s->inner;
      for (int64_t i = 0; i < s->inner; i++)
        dx[i] = scale * (dy[i] - shift - (x[i] - middle) * slope);
    }
  }
}

/* ---- over a row ---- */

void op_layernorm_fwd (const work *k) {
  const compute_rownorm *s = &k->c->rownorm;
  const float *x = ops_float (k, 0), *w = ops_float (k, 1), *b = ops_float (k, 2);
  float *y = ops_float (k, 3), *means = ops_float (k, 4), *rstds = ops_float (k, 5);
  for (int64_t r = 0; r < k->items * s->rows; r++, x += s->width, y += s->width) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < s->width; i++)
      sum += x[i];
    double mean = sum / (double)s->width;
    for (int64_t i = 0; i < s->width; i++)
      squares += (x[i] - mean) * (x[i] - mean);
    means[r] = (float)mean;
    rstds[r] = (float)(1 / sqrt (squares / (double)s->width + eps_of (s->eps_ppt)));
    for (int64_t i = 0; i < s->width; i++)
      y[i] = (x[i] - means[r]) * rstds[r] * w[i] + b[i];
  }
}

/* Operands: x, dy, w, mean, rstd, dx, dw, db.  dw and db are added up row after row. */
void op_layernorm_bwd (const work *k) {
  const compute_rownorm *s = &k->c->rownorm;
  const float *x = ops_float (k, 0), *dy = ops_float (k, 1), *w = ops_float (k, 2);
  const float *means = ops_float (k, 3), *rstds = ops_float (k, 4);
  float *dx = ops_float (k, 5), *dw = ops_float (k, 6), *db = ops_float (k, 7);
  for (int64_t r = 0; r < k->items * s->rows; r++) {
    double sum = 0, dot = 0;
    float mean = means[r], rstd = rstds[r];
    for (int64_t i = 0; i < s->width; i++) {
      float normal = (x[i] - mean) * rstd, g = dy[i] * w[i];
      dw[i] += dy[i] * normal;
      db[i] += dy[i];
      sum += g;
      dot += (double)g * normal;
    }
    float shift = (float)(sum / (double)s->width), slope = (float)(dot / (double)s->width);
    for (int64_t i = 0; i < s->width; i++)
      dx[i] = rstd * (dy[i] * w[i] - shift - (x[i] - mean) * rstd * slope);
    x += s->width;
    dy += s->width;
    dx += s->width;
  }
}

void op_rmsnorm_fwd (const work *k) {
  const compute_rownorm *s = &k->c->rownorm;
  const float *x = ops_float (k, 0), *w = ops_float (k, 1);
  float *y = ops_float (k, 2), *rstds = ops_float (k, 3);
  for (int64_t r = 0; r < k->items * s->rows; r++, x += s->width, y += s->width) {
    double squares = 0;
    for (int64_t i = 0; i < s->width; i++)
      squares += (double)x[i] * x[i];
    rstds[r] = (float)(1 / sqrt (squares / (double)s->width + eps_of (s->eps_ppt)));
    for (int64_t i = 0; i < s->width; i++)
      y[i] = x[i] * rstds[r] * w[i];
  }
}

/* Operands: x, dy, w, rstd, dx, dw. */
void op_rmsnorm_bwd (const work *k) {
  const compute_rownorm *s = &k->c->rownorm;
  const float *x = ops_float (k, 0), *dy = ops_float (k, 1), *w = ops_float (k, 2);
  const float *rstds = ops_float (k, 3);
  float *dx = ops_float (k, 4), *dw = ops_float (k, 5);
  for (int64_t r = 0; r < k->items * s->rows; r++) {
    double dot = 0;
    float rstd = rstds[r];
    for (int64_t i = 0; i < s->width; i++) {
      dw[i] += dy[i] * x[i] * rstd;
      dot += (double)(dy[i] * w[i]) * x[i];
    }
    float slope = (float)(dot / (double)s->width) * rstd * rstd;
    for (int64_t i = 0; i < s->width; i++)
      dx[i] = rstd * (dy[i] * w[i] - x[i] * slope);
    x += s->width;
    dy += s->width;
    dx += s->width;
  }
}
