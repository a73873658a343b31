/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A product of two matrices, tile by tile: a team makes 64 x 128 results at a time from stretches
   of both factors that lie in shared memory, each thread 4 x 8 of them.  What is multiplied is told
   by where it lies, so that matrices as they are stored, the columns of a convolution, and its
   lines are all factors, and nothing is copied together first.

   The inner sum goes over segments (one, or the places of a kernel, or an image's lines) and within
   each over k, in this order; each result is one thread's sum. */
#pragma once

#include "executor/gpu/geometry.h"

enum { TILE_HIGH = 64, TILE_WIDE = 128, TILE_DEEP = 16, TILE_ROWS = 4, TILE_COLUMNS = 8, PAD = 4 };

typedef enum factor_kind {
  FACTOR_ROWS,     /* line i begins at i x step */
  FACTOR_TAKEN,    /* line i is a place of b, segments are taps, k are a's channels */
  FACTOR_GIVEN,    /* line i is a place of a, segments are taps, k are b's channels */
  FACTOR_LINES,    /* line i is (a channel, tap), segments are lines of b, k are places in one */
  FACTOR_OWN_LINES /* line i is a channel of b, the same */
} factor_kind;

/* Number k of line i in segment s is at `place (i, s) + k x k_step`. */
typedef struct factor {
  const element *at;
  factor_kind kind;
  int64_t lines, step, k_step, segment_step;
  const geometry *g;
} factor;

/* The beginning of a line's numbers, and the k that are there: the others are 0. */
typedef struct span {
  int64_t at;
  int32_t from, to;
} span;

/* A result is at m x m_step + n / inner x outer_step + n % inner. */
typedef struct result {
  element *at;
  int64_t m_step, inner, outer_step;
  const element *bias_m, *bias_n; /* one of them, or none */
  float alpha;
  bool adds;      /* to what is there */
  float *partial; /* the sum alone, rows x columns, instead */
} result;

typedef struct product {
  factor a, b;
  int64_t deep, segments;
} product;

FN int64_t tiles_of (const product *p) {
  return (p->a.lines + TILE_HIGH - 1) / TILE_HIGH * ((p->b.lines + TILE_WIDE - 1) / TILE_WIDE);
}

/* The line of b that a channel and tap of a meets, from its place 0 on. */
FN span line_of (const geometry *g, int64_t line, int64_t segment) {
  int64_t tap = line % g->taps, channel = line / g->taps;
  int64_t t[3] = { tap / (g->kernel[1] * g->kernel[2]), tap / g->kernel[2] % g->kernel[1],
                   tap % g->kernel[2] };
  int64_t depth = segment / g->b[1] % g->b[0] * g->stride[0] - g->pad[0] + t[0];
  int64_t height = segment % g->b[1] * g->stride[1] - g->pad[1] + t[1], shift = t[2] - g->pad[2];
  span s = { 0, 0, 0 };
  if (depth < 0 || depth >= g->a[0] || height < 0 || height >= g->a[1] || shift >= g->a[2])
    return s;
  int64_t item = segment / (g->b[0] * g->b[1]);
  int64_t from = shift < 0 ? (-shift + g->stride[2] - 1) / g->stride[2] : 0;
  int64_t to = (g->a[2] - 1 - shift) / g->stride[2] + 1;
  s.at =
      (item * g->a_channels + channel) * g->a_places + (depth * g->a[1] + height) * g->a[2] + shift;
  s.from = (int32_t)from;
  s.to = (int32_t)(to < g->b[2] ? to : g->b[2]);
  return s;
}

FN span span_of (const factor *f, int64_t line, int64_t segment, int64_t deep) {
  span s = { 0, 0, (int32_t)deep };
  int64_t at;
  if (line >= f->lines) {
    s.to = 0;
    return s;
  }
  switch (f->kind) {
  case FACTOR_ROWS:
    s.at = line * f->step + segment * f->segment_step;
    return s;
  case FACTOR_OWN_LINES:
    at = f->g->b[0] * f->g->b[1]; /* lines of a channel */
    s.at = (segment / at * f->g->b_channels + line) * f->g->b_places + segment % at * f->g->b[2];
    return s;
  case FACTOR_TAKEN:
    at = meets (f->g, line % f->g->b_places, segment);
    s.at = line / f->g->b_places * f->g->a_channels * f->g->a_places + at;
    break;
  case FACTOR_GIVEN:
    at = met_by (f->g, line % f->g->a_places, segment);
    s.at = line / f->g->a_places * f->g->b_channels * f->g->b_places + at;
    break;
  default:
    return line_of (f->g, line, segment);
  }
  s.to = at < 0 ? 0 : s.to;
  return s;
}

/* Lanes share a tile's numbers so that neighbours read neighbours: along k, or along the lines. */
FN bool along_k (const factor *f) {
  return f->k_step == 1 && f->kind != FACTOR_TAKEN && f->kind != FACTOR_GIVEN;
}
FN int line_in_tile (bool k_first, int lane, int j, int lines) {
  return k_first ? lane / TILE_DEEP + TEAM / TILE_DEEP * j : lane % lines;
}
FN int k_in_tile (bool k_first, int lane, int j, int lines) {
  return k_first ? lane % TILE_DEEP : lane / lines + TEAM / lines * j;
}

FN float number_at (const factor *f, const span *s, int64_t k) {
  return k >= s->from && k < s->to ? get (f->at, s->at + k * f->k_step) : 0;
}

FN int column_of (int lane, int j) {
  return lane % 16 * 4 + j % 4 + j / 4 * (TILE_WIDE / 2);
}

FN void keep_result (const product *p, const result *r, int64_t m, int64_t n, float sum) {
  if (m >= p->a.lines || n >= p->b.lines)
    return;
  if (r->partial != 0) {
    r->partial[m * p->b.lines + n] = sum;
    return;
  }
  int64_t at = m * r->m_step + n / r->inner * r->outer_step + n % r->inner;
  sum *= r->alpha;
  if (r->bias_m != 0)
    sum += get (r->bias_m, m);
  if (r->bias_n != 0)
    sum += get (r->bias_n, n);
  put (r->at, at, r->adds ? get (r->at, at) + sum : sum);
}

/* Lane's share of a factor's lines in a tile: one of them, or where lanes go along k, several. */
FN void find_spans (const factor *f, int lane, int lines, int64_t first, int64_t segment,
                    int64_t deep, span *out) {
  bool k_first = along_k (f);
  UNROLL for (int j = 0; j < lines * TILE_DEEP / TEAM; j++) {
    if (k_first || j == 0)
      out[j] = span_of (f, first + line_in_tile (k_first, lane, j, lines), segment, deep);
  }
}

/* A convolution's lines take many divisions to find, and end soon: each is found by one lane, for
   all.  On an H200 this halves the time of weights' gradients, and doubles that of other products.
 */
FN bool shares_spans (const factor *f) {
  return f->kind == FACTOR_LINES || f->kind == FACTOR_OWN_LINES;
}

FN void share_spans (const factor *f, int line, int lines, int64_t first, int64_t segment,
                     int64_t deep, span *out) {
  if (line >= 0 && line < lines)
    out[line] = span_of (f, first + line, segment, deep);
}

/* to: TILE_DEEP rows of `lines` numbers and PAD. */
FN void load_numbers (const factor *f, int lane, int lines, const span *own, const span *shared,
                      int64_t k0, float *to) {
  bool k_first = along_k (f);
  UNROLL for (int j = 0; j < lines * TILE_DEEP / TEAM; j++) {
    int k = k_in_tile (k_first, lane, j, lines), line = line_in_tile (k_first, lane, j, lines);
    const span *at = shares_spans (f) ? &shared[line] : &own[k_first ? j : 0];
    to[k * (lines + PAD) + line] = number_at (f, at, k0 + k);
  }
}

FN void add_products_of (int lane, int deep, const float *a, const float *b, float *sum) {
  UNROLL for (int k = 0; k < deep; k++) {
    const float *left = a + k * (TILE_HIGH + PAD) + lane / 16 * TILE_ROWS;
    const float *right = b + k * (TILE_WIDE + PAD);
    UNROLL for (int i = 0; i < TILE_ROWS; i++) {
      UNROLL for (int j = 0; j < TILE_COLUMNS; j++) {
        sum[i * TILE_COLUMNS + j] += left[i] * right[column_of (lane, j)];
      }
    }
  }
}

/* How far into a stretch of k: a GPU does all of it, to know how often, and what is not there is 0.
 */
FN int deep_of (int64_t left) {
#ifdef __CUDACC__
  (void)left;
  return TILE_DEEP;
#else
  return left < TILE_DEEP ? (int)left : TILE_DEEP;
#endif
}

/* Tile number `tile` of the product, the sum over segments [first, end). */
FN void make_tile (const product *p, const result *r, int64_t tile, int64_t first, int64_t end) {
  SHARED float a[TILE_DEEP * (TILE_HIGH + PAD)], b[TILE_DEEP * (TILE_WIDE + PAD)];
  OWN (float, sum, TILE_ROWS *TILE_COLUMNS);
  OWN (span, a_span, TILE_HIGH * TILE_DEEP / TEAM);
  OWN (span, b_span, TILE_WIDE * TILE_DEEP / TEAM);
  SHARED span a_all[TILE_HIGH], b_all[TILE_WIDE];
  int64_t wide = (p->b.lines + TILE_WIDE - 1) / TILE_WIDE;
  int64_t m0 = tile / wide * TILE_HIGH, n0 = tile % wide * TILE_WIDE;
  EVERY_LANE (l) {
    UNROLL for (int j = 0; j < TILE_ROWS * TILE_COLUMNS; j++) {
      sum[MINE (l)][j] = 0;
    }
  }
  for (int64_t s = first; s < end; s++) {
    EVERY_LANE (l) {
      if (shares_spans (&p->a)) {
        share_spans (&p->a, l, TILE_HIGH, m0, s, p->deep, a_all);
        share_spans (&p->b, l - TILE_HIGH, TILE_WIDE, n0, s, p->deep, b_all);
        continue;
      }
      find_spans (&p->a, l, TILE_HIGH, m0, s, p->deep, a_span[MINE (l)]);
      find_spans (&p->b, l, TILE_WIDE, n0, s, p->deep, b_span[MINE (l)]);
    }
    for (int64_t k0 = 0; k0 < p->deep; k0 += TILE_DEEP) {
      TEAM_SYNC;
      EVERY_LANE (l) {
        load_numbers (&p->a, l, TILE_HIGH, a_span[MINE (l)], a_all, k0, a);
        load_numbers (&p->b, l, TILE_WIDE, b_span[MINE (l)], b_all, k0, b);
      }
      TEAM_SYNC;
      EVERY_LANE (l) {
        if (m0 + l / 16 * TILE_ROWS < p->a.lines && n0 + column_of (l, 0) < p->b.lines)
          add_products_of (l, deep_of (p->deep - k0), a, b, sum[MINE (l)]);
      }
    }
  }
  EVERY_LANE (l) {
    UNROLL for (int i = 0; i < TILE_ROWS * TILE_COLUMNS; i++) {
      keep_result (p, r, m0 + l / 16 * TILE_ROWS + i / TILE_COLUMNS,
                   n0 + column_of (l, i % TILE_COLUMNS), sum[MINE (l)][i]);
    }
  }
}
