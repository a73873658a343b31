/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Updates of parameters.  With a master copy, that is updated and w is what it rounds to. */
#include <math.h>

#include "executor/ops/inner.h"

typedef struct rates {
  float rate, decay, momentum;
} rates;

static rates rates_of (const compute_update *s) {
  return (rates){ (float)((double)s->rate_ppb * 1e-9), (float)((double)s->decay_ppb * 1e-9),
                  (float)((double)s->momentum_ppm * 1e-6) };
}

void op_sgd (const work *k) {
  const compute_update *s = &k->c->update;
  rates r = rates_of (s);
  float *w = ops_float (k, 0), *main = ops_out (k, 2, 0);
  const float *g = ops_float (k, 1);
  for (int64_t i = 0; i < s->count; i++)
    w[i] = main[i] -= r.rate * (g[i] + r.decay * main[i]);
}

void op_momentum (const work *k) {
  const compute_update *s = &k->c->update;
  rates r = rates_of (s);
  float *w = ops_float (k, 0), *main = ops_out (k, 2, 0), *v = ops_float (k, 3);
  const float *g = ops_float (k, 1);
  for (int64_t i = 0; i < s->count; i++) {
    v[i] = r.momentum * v[i] + (g[i] + r.decay * main[i]);
    w[i] = main[i] -= r.rate * v[i];
  }
}

void op_adam (const work *k) {
  const compute_update *s = &k->c->update;
  rates r = rates_of (s);
  float *w = ops_float (k, 0), *main = ops_out (k, 2, 0);
  float *m = ops_float (k, 3), *v = ops_float (k, 4);
  const float *g = ops_float (k, 1);
  double beta1 = (double)s->beta1_ppm * 1e-6, beta2 = (double)s->beta2_ppm * 1e-6;
  float first = (float)beta1, second = (float)beta2, eps = (float)((double)s->eps_ppt * 1e-12);
  float rate = (float)(r.rate / (1 - pow (beta1, (double)k->step + 1)));
  float root = (float)(1 / sqrt (1 - pow (beta2, (double)k->step + 1)));
  for (int64_t i = 0; i < s->count; i++) {
    m[i] = first * m[i] + (1 - first) * g[i];
    v[i] = second * v[i] + (1 - second) * g[i] * g[i];
    float weight = main[i] - r.rate * r.decay * main[i];
    w[i] = main[i] = weight - rate * m[i] / (sqrtf (v[i]) * root + eps);
  }
}
