/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which places of a convolution meet: a is the side of its data, b that of its results. */
#pragma once

#include "executor/gpu/device.h"

typedef struct geometry {
  int64_t a_channels, b_channels, groups;
  int64_t a_group, b_group; /* channels of one group */
  int64_t a_places, b_places, taps;
  int64_t a[3], b[3], kernel[3], stride[3], pad[3];
} geometry;

FN int64_t volume (const int64_t n[3]) {
  return n[0] * n[1] * n[2];
}

FN geometry geometry_of (const compute_conv *s, bool transposed) {
  geometry g;
  const int64_t in[3] = { s->in_d, s->in_h, s->in_w }, out[3] = { s->out_d, s->out_h, s->out_w };
  const int64_t kernel[3] = { s->kernel_d, s->kernel_h, s->kernel_w };
  const int64_t stride[3] = { s->stride_d, s->stride_h, s->stride_w };
  const int64_t pad[3] = { s->pad_d, s->pad_h, s->pad_w };
  for (int i = 0; i < 3; i++) {
    g.a[i] = transposed ? out[i] : in[i];
    g.b[i] = transposed ? in[i] : out[i];
    g.a[i] = g.a[i] > 0 ? g.a[i] : 1;
    g.b[i] = g.b[i] > 0 ? g.b[i] : 1;
    g.kernel[i] = kernel[i] > 0 ? kernel[i] : 1;
    g.stride[i] = stride[i] > 0 ? stride[i] : 1;
    g.pad[i] = pad[i];
  }
  g.a_channels = transposed ? s->out_channels : s->in_channels;
  g.b_channels = transposed ? s->in_channels : s->out_channels;
  g.groups = s->groups > 0 ? s->groups : 1;
  g.a_group = g.a_channels / g.groups;
  g.b_group = g.b_channels / g.groups;
  g.a_places = volume (g.a);
  g.b_places = volume (g.b);
  g.taps = volume (g.kernel);
  return g;
}

/* The place in a that (b's place, the kernel's place) meets; -1: outside. */
FN int64_t meets (const geometry *g, int64_t place, int64_t tap) {
  int64_t at = 0;
  int64_t b[3] = { place / (g->b[1] * g->b[2]), place / g->b[2] % g->b[1], place % g->b[2] };
  int64_t t[3] = { tap / (g->kernel[1] * g->kernel[2]), tap / g->kernel[2] % g->kernel[1],
                   tap % g->kernel[2] };
  for (int i = 0; i < 3; i++) {
    int64_t x = b[i] * g->stride[i] - g->pad[i] + t[i];
    if (x < 0 || x >= g->a[i])
      return -1;
    at = at * g->a[i] + x;
  }
  return at;
}

/* The place in b whose tap `tap` meets a's place; -1: there is none. */
FN int64_t met_by (const geometry *g, int64_t place, int64_t tap) {
  int64_t at = 0;
  int64_t a[3] = { place / (g->a[1] * g->a[2]), place / g->a[2] % g->a[1], place % g->a[2] };
  int64_t t[3] = { tap / (g->kernel[1] * g->kernel[2]), tap / g->kernel[2] % g->kernel[1],
                   tap % g->kernel[2] };
  for (int i = 0; i < 3; i++) {
    int64_t x = a[i] + g->pad[i] - t[i];
    if (x < 0 || x % g->stride[i] != 0 || x / g->stride[i] >= g->b[i])
      return -1;
    at = at * g->b[i] + x / g->stride[i];
  }
  return at;
}
