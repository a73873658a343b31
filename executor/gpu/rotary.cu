/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotary positions, and heads that several share. */
#include "executor/gpu/device.h"

KERNEL (repeat_fwd) {
  const compute_repeat *s = &k.c.repeat;
  EACH (i, k.items * s->rows * s->kv_heads * s->copies * s->width)
    E (1)[i] = E (0)[i / s->width / s->copies * s->width + i % s->width];
}

KERNEL (repeat_bwd) {
  const compute_repeat *s = &k.c.repeat;
  EACH (i, k.items * s->rows * s->kv_heads * s->width) {
    float sum = 0;
    for (int64_t c = 0; c < s->copies; c++)
      sum += get (E (0), (i / s->width * s->copies + c) * s->width + i % s->width);
    put (E (1), i, sum);
  }
}

FN void rotate (const compute_rotary *s, int64_t items, float sign, element *all) {
  int64_t half = s->width / 2;
  EACH (i, items * s->rows * s->heads * half) {
    int64_t at = i % half, row = i / half / s->heads % s->rows;
    element *x = all + i / half * s->width;
    double angle = (double)row * pow ((double)s->theta, -2.0 * (double)at / (double)s->width);
    float cosine = (float)cos (angle), sine = sign * (float)sin (angle);
    float a = get (x, at), b = get (x, half + at);
    put (x, at, a * cosine - b * sine);
    put (x, half + at, b * cosine + a * sine);
  }
}

KERNEL (rotary_fwd) {
  rotate (&k.c.rotary, k.items, 1, E (0));
}

KERNEL (rotary_bwd) {
  rotate (&k.c.rotary, k.items, -1, E (0));
}
