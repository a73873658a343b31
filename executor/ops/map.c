/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element by element. */
#include <math.h>
#include <string.h>

#include "executor/ops/inner.h"

void op_relu_fwd (const work *k) {
  const float *x = ops_float (k, 0);
  float *y = ops_out (k, 1, 0), slope = (float)k->c->relu.slope_ppm * 1e-6f;
  for (int64_t i = 0; i < k->items * k->c->relu.size; i++)
    y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

void op_relu_bwd (const work *k) {
  const float *y = ops_float (k, 0), *dy = ops_float (k, 1);
  float *dx = ops_out (k, 2, 1), slope = (float)k->c->relu.slope_ppm * 1e-6f;
  for (int64_t i = 0; i < k->items * k->c->relu.size; i++)
    dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}

void op_tanh_fwd (const work *k) {
  const float *x = ops_float (k, 0);
  float *y = ops_out (k, 1, 0);
  for (int64_t i = 0; i < k->items * k->c->map.size; i++)
    y[i] = ops_tanh (x[i]);
}

void op_tanh_bwd (const work *k) {
  const float *y = ops_float (k, 0), *dy = ops_float (k, 1);
  float *dx = ops_out (k, 2, 1);
  for (int64_t i = 0; i < k->items * k->c->map.size; i++)
    dx[i] = dy[i] * (1 - y[i] * y[i]);
}

void op_sigmoid_fwd (const work *k) {
  const float *x = ops_float (k, 0);
  float *y = ops_out (k, 1, 0);
  for (int64_t i = 0; i < k->items * k->c->map.size; i++)
    y[i] = ops_sigmoid (x[i]);
}

void op_sigmoid_bwd (const work *k) {
  const float *y = ops_float (k, 0), *dy = ops_float (k, 1);
  float *dx = ops_out (k, 2, 1);
  for (int64_t i = 0; i < k->items * k->c->map.size; i++)
    dx[i] = dy[i] * y[i] * (1 - y[i]);
}

void op_add (const work *k) {
  const float *a = ops_float (k, 0), *b = ops_float (k, 1);
  float *y = ops_out (k, 2, 0);
  for (int64_t i = 0; i < k->items * k->c->map.size; i++)
    y[i] = a[i] + b[i];
}

void op_zero (const work *k) {
  memset (k->at[0], 0, (size_t)(k->items * k->c->map.size) * sizeof (float));
}

void op_swiglu_fwd (const work *k) {
  const float *gate = ops_float (k, 0), *up = ops_float (k, 1);
  float *y = ops_float (k, 2);
  for (int64_t i = 0; i < k->items * k->c->map.size; i++)
    y[i] = gate[i] * ops_sigmoid (gate[i]) * up[i];
}

void op_swiglu_bwd (const work *k) {
  const float *gate = ops_float (k, 0), *up = ops_float (k, 1), *dy = ops_float (k, 2);
  float *dgate = ops_float (k, 3), *dup = ops_float (k, 4);
  for (int64_t i = 0; i < k->items * k->c->map.size; i++) {
    float s = ops_sigmoid (gate[i]);
    dup[i] = dy[i] * gate[i] * s;
    dgate[i] = dy[i] * up[i] * s * (1 + gate[i] * (1 - s));
  }
}

/* ---- gelu ---- */

static const float root_2_over_pi = 0.79788456f, root_half = 0.70710678f;

static float inner (float x) {
  return root_2_over_pi * (x + 0.044715f * x * x * x);
}

void op_gelu_fwd (const work *k) {
  const compute_gelu *s = &k->c->gelu;
  const float *x = ops_float (k, 0);
  float *y = ops_float (k, 1);
  for (int64_t i = 0; i < k->items * s->size; i++)
    y[i] = 0.5f * x[i] * (1 + (s->tanh ? ops_tanh (inner (x[i])) : erff (x[i] * root_half)));
}

static float gelu_slope (float x, bool by_tanh) {
  if (!by_tanh) /* the normal distribution and x times its density */
    return 0.5f * (1 + erff (x * root_half)) + x * 0.39894228f * expf (-0.5f * x * x);
  float t = ops_tanh (inner (x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * root_2_over_pi * (1 + 3 * 0.044715f * x * x);
}

void op_gelu_bwd (const work *k) {
  const compute_gelu *s = &k->c->gelu;
  const float *x = ops_float (k, 0), *dy = ops_float (k, 1);
  float *dx = ops_out (k, 2, 1);
  for (int64_t i = 0; i < k->items * s->size; i++)
    dx[i] = dy[i] * gelu_slope (x[i], s->tanh != 0);
}

/* ---- dropout ---- */

void op_dropout_fwd (const work *k) {
  const compute_dropout *s = &k->c->dropout;
  const float *x = ops_float (k, 0);
  float *y = ops_float (k, 1), scale = 1 / (1 - (float)s->rate_ppm / 1e6f);
  uint8_t *mask = k->at[2];
  int64_t first = s->offset + k->first_item * s->size;
  for (int64_t i = 0; i < k->items * s->size; i++) {
    mask[i] = ops_keeps (ops_random (s->seed, k->step, first + i), s->rate_ppm);
    y[i] = mask[i] ? x[i] * scale : 0;
  }
}

void op_dropout_bwd (const work *k) {
  const compute_dropout *s = &k->c->dropout;
  const uint8_t *mask = k->at[0];
  const float *dy = ops_float (k, 1);
  float *dx = ops_out (k, 2, 1), scale = 1 / (1 - (float)s->rate_ppm / 1e6f);
  for (int64_t i = 0; i < k->items * s->size; i++)
    dx[i] = mask[i] ? dy[i] * scale : 0;
}
