/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution, in one to three dimensions and in groups.  Where a group has channels enough to fill
   tiles, it is a product whose factors are read where they lie; else each result is a thread's loop. */
#include "executor/gpu/tile.h"

enum { FEW = 8, SPLIT_TEAMS = 528 };

/* w: b channels, a channels of the group, kernel */
FN void to_b_alone (const geometry *g, int64_t items, const element *a, const element *w,
                    const element *bias, element *b) {
  EACH (i, items * g->b_channels * g->b_places) {
    int64_t place = i % g->b_places, channel = i / g->b_places % g->b_channels;
    int64_t item = i / g->b_places / g->b_channels;
    const element *from =
        a + (item * g->a_channels + channel / g->b_group * g->a_group) * g->a_places;
    const element *weights = w + channel * g->a_group * g->taps;
    float sum = 0;
    for (int64_t t = 0; t < g->taps; t++) {
      int64_t at = meets (g, place, t);
      for (int64_t c = 0; at >= 0 && c < g->a_group; c++)
        sum += get (from, c * g->a_places + at) * get (weights, c * g->taps + t);
    }
    put (b, i, sum + (bias != 0 ? get (bias, channel) : 0));
  }
}

FN void to_a_alone (const geometry *g, int64_t items, const element *b, const element *w,
                    const element *bias, element *a) {
  EACH (i, items * g->a_channels * g->a_places) {
    int64_t place = i % g->a_places, channel = i / g->a_places % g->a_channels;
    int64_t item = i / g->a_places / g->a_channels, first = channel / g->a_group * g->b_group;
    const element *from = b + (item * g->b_channels + first) * g->b_places;
    const element *weights = w + (first * g->a_group + channel % g->a_group) * g->taps;
    float sum = 0;
    for (int64_t t = 0; t < g->taps; t++) {
      int64_t at = met_by (g, place, t);
      for (int64_t c = 0; at >= 0 && c < g->b_group; c++)
        sum += get (from, c * g->b_places + at) * get (weights, c * g->a_group * g->taps + t);
    }
    put (a, i, sum + (bias != 0 ? get (bias, channel) : 0));
  }
}

FN void weights_alone (const geometry *g, int64_t items, const element *a, const element *b,
                       element *dw) {
  TEAMS (i, g->b_channels * g->a_group * g->taps) {
    int64_t tap = i % g->taps, channel = i / g->taps / g->a_group;
    int64_t a_channel = channel / g->b_group * g->a_group + i / g->taps % g->a_group;
    double sum = 0;
    LANES (e, items * g->b_places) {
      int64_t item = e / g->b_places, at = meets (g, e % g->b_places, tap);
      if (at >= 0)
        sum += get (a, (item * g->a_channels + a_channel) * g->a_places + at) *
               get (b, (item * g->b_channels + channel) * g->b_places + e % g->b_places);
    }
    sum = team_sum (sum);
    LANES (one, 1) put (dw, i, get (dw, i) + (float)sum);
  }
}

FN factor rows_of (const element *at, int64_t lines, int64_t step, int64_t k_step,
                   int64_t segment_step) {
  factor f = { at, FACTOR_ROWS, lines, step, k_step, segment_step, 0 };
  return f;
}

FN factor places_of (const element *at, factor_kind kind, int64_t lines, int64_t k_step,
                     const geometry *g) {
  factor f = { at, kind, lines, 0, k_step, 0, g };
  return f;
}

FN void conv_to_b (const geometry *g, int64_t items, const element *a, const element *w,
                   const element *bias, element *b) {
  if (g->b_group < FEW) {
    to_b_alone (g, items, a, w, bias, b);
    return;
  }
  int64_t weights = g->a_group * g->taps;
  product p = { rows_of (w, g->b_group, weights, g->taps, 1),
                places_of (a, FACTOR_TAKEN, items * g->b_places, g->a_places, g), g->a_group,
                g->taps };
  result r = { b, g->b_places, g->b_places, g->b_channels * g->b_places, bias, 0, 1, false, 0 };
  int64_t tiles = tiles_of (&p);
  TEAMS (t, tiles * g->groups) {
    int64_t group = t / tiles;
    p.a.at = w + group * g->b_group * weights;
    p.b.at = a + group * g->a_group * g->a_places;
    r.at = b + group * g->b_group * g->b_places;
    r.bias_m = bias != 0 ? bias + group * g->b_group : 0;
    make_tile (&p, &r, t % tiles, 0, p.segments);
  }
}

FN void conv_to_a (const geometry *g, int64_t items, const element *b, const element *w,
                   const element *bias, element *a) {
  if (g->a_group < FEW) {
    to_a_alone (g, items, b, w, bias, a);
    return;
  }
  int64_t weights = g->a_group * g->taps;
  product p = { rows_of (w, g->a_group, g->taps, weights, 1),
                places_of (b, FACTOR_GIVEN, items * g->a_places, g->b_places, g), g->b_group,
                g->taps };
  result r = { a, g->a_places, g->a_places, g->a_channels * g->a_places, bias, 0, 1, false, 0 };
  int64_t tiles = tiles_of (&p);
  TEAMS (t, tiles * g->groups) {
    int64_t group = t / tiles;
    p.a.at = w + group * g->b_group * weights;
    p.b.at = b + group * g->b_group * g->b_places;
    r.at = a + group * g->a_group * g->a_places;
    r.bias_m = bias != 0 ? bias + group * g->a_group : 0;
    make_tile (&p, &r, t % tiles, 0, p.segments);
  }
}

/* The lines of all items are shared by so many teams for each tile, as far as the op's workspace has
   room for what each of them finds. */
FN int64_t splits_of (const kernel_work *k, const geometry *g, const product *p) {
  int64_t wanted = SPLIT_TEAMS / (tiles_of (p) * g->groups) + 1;
  int64_t room = k->workspace_bytes / (p->a.lines * p->b.lines * g->groups * 4);
  wanted = wanted < room ? wanted : room;
  wanted = wanted < p->segments ? wanted : p->segments;
  return wanted < 1 ? 1 : wanted;
}

/* A line of b has the channels of all groups between it and the next of its channel. */
FN void conv_weights (const kernel_work *k, const geometry *g, const element *a, const element *b,
                      element *dw) {
  int64_t lines = g->b[0] * g->b[1], weights = g->a_group * g->taps, count = g->b_group * weights;
  if (g->b_group < FEW) {
    if (k->phase == 0)
      weights_alone (g, k->items, a, b, dw);
    return;
  }
  product p = { places_of (b, FACTOR_OWN_LINES, g->b_group, 1, g),
                places_of (a, FACTOR_LINES, weights, g->stride[2], g), g->b[2], k->items * lines };
  int64_t tiles = tiles_of (&p), splits = splits_of (k, g, &p);
  float *partial = (float *)k->workspace;
  if (k->phase == 0)
    TEAMS (t, tiles * g->groups * splits) {
      int64_t group = t / tiles % g->groups, split = t / tiles / g->groups;
      result r = { dw + group * count, weights, weights, 0, 0, 0, 1, true, 0 };
      p.a.at = b + group * g->b_group * g->b_places;
      p.b.at = a + group * g->a_group * g->a_places;
      if (splits > 1)
        r.partial = partial + (split * g->groups + group) * count;
      make_tile (&p, &r, t % tiles, begin_of (p.segments, split, splits),
                 begin_of (p.segments, split + 1, splits));
    }
  else if (splits > 1)
    EACH (i, count * g->groups) {
      float sum = 0;
      for (int64_t s = 0; s < splits; s++)
        sum += partial[s * g->groups * count + i];
      put (dw, i, get (dw, i) + sum);
    }
}

KERNEL (conv_fwd) {
  geometry g = geometry_of (&k.c.conv, false);
  conv_to_b (&g, k.items, E (0), E (1), E (2), E (3));
}

KERNEL (conv_bwd_data) {
  geometry g = geometry_of (&k.c.conv, false);
  conv_to_a (&g, k.items, E (0), E (1), 0, E (2));
}

KERNEL_OF_TWO (conv_bwd_weights) {
  geometry g = geometry_of (&k.c.conv, false);
  conv_weights (&k, &g, E (0), E (1), E (2));
}

KERNEL (deconv_fwd) {
  geometry g = geometry_of (&k.c.conv, true);
  conv_to_a (&g, k.items, E (0), E (1), E (2), E (3));
}

KERNEL (deconv_bwd_data) {
  geometry g = geometry_of (&k.c.conv, true);
  conv_to_b (&g, k.items, E (0), E (1), 0, E (2));
}

KERNEL_OF_TWO (deconv_bwd_weights) {
  geometry g = geometry_of (&k.c.conv, true);
  conv_weights (&k, &g, E (1), E (0), E (2));
}
