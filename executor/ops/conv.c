/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution in up to three dimensions as a matrix product.  The columns of a tile, some lines of
   one item's output or some whole small items, are laid out in memory that stays in the cache; a
   tile's product is one call of sgemm.  The transposed one is the same with input and output
   exchanged, and so are its gradients. */
#include <string.h>

#include "base/order.h"
#include "executor/ops/inner.h"

enum { TILE_FLOATS = 384 << 10, LEAST_COLUMNS = 256, MOST_COLUMNS = 4096 };

typedef struct axis {
  int64_t in, out, kernel, stride, pad;
} axis;

/* One group; the transposed convolution seen from its output. */
typedef struct geometry {
  axis d, h, w;
  int64_t groups, in_channels, out_channels; /* channels of a group */
  int64_t in_space, out_space, kernel;       /* voxels */
  int64_t rows;                              /* of the columns: in_channels x kernel */
  bool pointwise;                            /* the columns are the input itself */
} geometry;

static geometry geometry_of (const compute_conv *s, bool transposed) {
  geometry g = { .groups = s->groups };
  g.d = (axis){ s->in_d, s->out_d, s->kernel_d, s->stride_d, s->pad_d };
  g.h = (axis){ s->in_h, s->out_h, s->kernel_h, s->stride_h, s->pad_h };
  g.w = (axis){ s->in_w, s->out_w, s->kernel_w, s->stride_w, s->pad_w };
  g.in_channels = s->in_channels / s->groups;
  g.out_channels = s->out_channels / s->groups;
  axis *axes[] = { &g.d, &g.h, &g.w };
  g.in_space = g.out_space = g.kernel = 1;
  g.pointwise = true;
  for (int i = 0; i < 3; i++) {
    axis *a = axes[i];
    if (transposed)
      *a = (axis){ a->out, a->in, a->kernel, a->stride, a->pad };
    g.in_space *= a->in;
    g.out_space *= a->out;
    g.kernel *= a->kernel;
    g.pointwise = g.pointwise && a->kernel == 1 && a->stride == 1 && a->pad == 0;
  }
  if (transposed) {
    int64_t channels = g.in_channels;
    g.in_channels = g.out_channels;
    g.out_channels = channels;
  }
  g.rows = g.in_channels * g.kernel;
  return g;
}

/* ---- tiles ---- */

/* Lines [line, line + lines) of the output (a line is d.out x h.out of w.out elements) of items
   [item, item + items); all lines if there are several items. */
typedef struct tile {
  int64_t item, items, line, lines;
  int64_t columns; /* all of them */
} tile;

static tile tile_first (const geometry *g, int64_t items) {
  int64_t columns = TILE_FLOATS / g->rows, all = g->d.out * g->h.out;
  if (columns < LEAST_COLUMNS)
    columns = LEAST_COLUMNS;
  columns = min_of (columns, MOST_COLUMNS);
  tile t = { 0 };
  t.items = g->out_space < columns ? min_of (items, columns / g->out_space) : 1;
  t.lines = g->out_space < columns ? all : columns / g->w.out < 1 ? 1 : columns / g->w.out;
  t.lines = min_of (t.lines, all);
  t.columns = t.items * t.lines * g->w.out;
  return t;
}

/* The tile behind *t of the same size or what is left of it; false behind the last. `size` is the
   first one. */
static bool tile_next (const geometry *g, const tile *size, int64_t items, tile *t) {
  int64_t all = g->d.out * g->h.out;
  t->line += t->lines;
  if (t->line == all) {
    t->line = 0;
    t->item += t->items;
  }
  t->items = min_of (size->items, items - t->item);
  t->lines = min_of (size->lines, all - t->line);
  t->columns = t->items * t->lines * g->w.out;
  return t->items > 0;
}

/* ---- one line of the columns ---- */

/* Outputs [from, to) of a line read the input's elements in order, the others see padding. */
static void inside (const axis *w, int64_t offset, int64_t *from, int64_t *to) {
  int64_t first = w->pad - offset; /* the input's element 0 stands at output first / stride */
  *from = first > 0 ? (first + w->stride - 1) / w->stride : 0;
  int64_t span = w->in - 1 + first;
  *to = span < 0 ? 0 : min_of (w->out, span / w->stride + 1);
  *from = min_of (*from, *to);
}

static void read_apart (const float *x, int64_t stride, int64_t count, float *out) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4, x += 4 * stride) {
    out[i] = x[0];
    out[i + 1] = x[stride];
    out[i + 2] = x[2 * stride];
    out[i + 3] = x[3 * stride];
  }
  for (; i < count; i++, x += stride)
    out[i] = *x;
}

static void read_line (const axis *w, int64_t offset, const float *x, float *out) {
  int64_t from, to;
  inside (w, offset, &from, &to);
  for (int64_t i = 0; i < from; i++)
    out[i] = 0;
  const float *source = x + offset - w->pad;
  if (w->stride == 1 && to > from)
    memcpy (out + from, source + from, (size_t)(to - from) * sizeof *out);
  else
    read_apart (source + from * w->stride, w->stride, to - from, out + from);
  for (int64_t i = to; i < w->out; i++)
    out[i] = 0;
}

typedef float lane __attribute__ ((vector_size (16), aligned (4)));

/* Each element has one sum, so it does not matter how many are made at a time. */
static void add_floats (float *to, const float *x, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    *(lane *)(to + i) += *(const lane *)(x + i);
  for (; i < count; i++)
    to[i] += x[i];
}

static void add_line (const axis *w, int64_t offset, const float *columns, float *x) {
  int64_t from, to;
  inside (w, offset, &from, &to);
  float *target = x + offset - w->pad;
  if (w->stride == 1)
    add_floats (target + from, columns + from, to - from);
  else
    for (int64_t i = from; i < to; i++)
      target[i * w->stride] += columns[i];
}

/* ---- the columns of one item ---- */

/* Row (channel, kernel place) of the lines of one item, at out + row * out_row; back: added to x.
 */
static void move_lines (const geometry *g, const tile *t, int64_t row, float *x, float *columns,
                        bool back) {
  int64_t place = row % g->kernel, kw = place % g->w.kernel, kh = place / g->w.kernel;
  int64_t kd = kh / g->h.kernel;
  kh %= g->h.kernel;
  x += row / g->kernel * g->in_space;
  for (int64_t line = t->line; line < t->line + t->lines; line++, columns += g->w.out) {
    int64_t d = line / g->h.out * g->d.stride + kd - g->d.pad;
    int64_t h = line % g->h.out * g->h.stride + kh - g->h.pad;
    bool padding = d < 0 || d >= g->d.in || h < 0 || h >= g->h.in;
    if (padding && !back)
      memset (columns, 0, (size_t)g->w.out * sizeof *columns);
    if (padding)
      continue;
    float *start = x + (d * g->h.in + h) * g->w.in;
    if (back)
      add_line (&g->w, kw, columns, start);
    else
      read_line (&g->w, kw, start, columns);
  }
}

static void move_columns (const geometry *g, const tile *t, float *x, int64_t x_item,
                          float *columns, bool back) {
  int64_t each = t->columns / t->items;
  for (int64_t row = 0; row < g->rows; row++)
    for (int64_t i = 0; i < t->items; i++)
      move_lines (g, t, row, x + (t->item + i) * x_item, columns + row * t->columns + i * each,
                  back);
}

/* Channels of several whole items, side by side in `joined`: item after item in each row. */
static void join (const geometry *g, const tile *t, float *y, int64_t y_item, float *joined,
                  bool back) {
  for (int64_t c = 0; c < g->out_channels; c++)
    for (int64_t i = 0; i < t->items; i++) {
      float *one = y + (t->item + i) * y_item + c * g->out_space;
      float *both = joined + c * t->columns + i * g->out_space;
      memcpy (back ? one : both, back ? both : one, (size_t)g->out_space * sizeof *one);
    }
}

/* ---- the three products ---- */

typedef struct conv_work {
  geometry g;
  const blas *blas;
  int64_t items, x_item, y_item; /* elements of an item */
  float *x, *y;                  /* of the items; y has the output's shape */
  float *columns, *joined;
  tile size;
} conv_work;

static bool conv_begin (const work *k, bool transposed, float *x, float *y, conv_work *c) {
  c->g = geometry_of (&k->c->conv, transposed);
  c->blas = k->blas;
  c->items = k->items;
  c->x_item = c->g.groups * c->g.in_channels * c->g.in_space;
  c->y_item = c->g.groups * c->g.out_channels * c->g.out_space;
  c->x = x;
  c->y = y;
  c->size = tile_first (&c->g, k->items);
  int64_t columns = c->g.rows * c->size.columns;
  c->columns = ops_scratch (k, columns + c->g.out_channels * c->size.columns);
  if (c->columns == NULL)
    return false;
  c->joined = c->columns + columns;
  return true;
}

/* The tile's part of the input's columns and of the output, and the length of their rows:
   in the tensors themselves where that is possible. */
typedef struct tile_at {
  float *columns, *y, *x_group, *y_group;
  int64_t columns_row, y_row;
  bool made, joined;
} tile_at;

static tile_at tile_place (const conv_work *c, const tile *t, int64_t group) {
  const geometry *g = &c->g;
  tile_at p = { .columns_row = t->columns, .y_row = t->columns };
  p.x_group = c->x + group * g->in_channels * g->in_space;
  p.y_group = c->y + group * g->out_channels * g->out_space;
  p.joined = t->items > 1;
  p.made = !g->pointwise || p.joined;
  p.columns = c->columns;
  p.y = c->joined;
  if (!p.made) {
    p.columns = p.x_group + t->item * c->x_item + t->line * g->w.out;
    p.columns_row = g->in_space;
  }
  if (!p.joined) {
    p.y = p.y_group + t->item * c->y_item + t->line * g->w.out;
    p.y_row = g->out_space;
  }
  return p;
}

static void put_bias (const tile_at *p, int64_t channels, int64_t columns, const float *b) {
  for (int64_t c = 0; c < channels; c++)
    for (int64_t i = 0; i < columns; i++)
      p->y[c * p->y_row + i] = b[c];
}

static void forward (const conv_work *c, const float *w, const float *b) {
  const geometry *g = &c->g;
  for (int64_t group = 0; group < g->groups; group++) {
    tile t = c->size;
    do {
      tile_at p = tile_place (c, &t, group);
      if (p.made)
        move_columns (g, &t, p.x_group, c->x_item, p.columns, false);
      if (b != NULL)
        put_bias (&p, g->out_channels, t.columns, b + group * g->out_channels);
      blas_product m = { .m = g->out_channels,
                         .n = t.columns,
                         .k = g->rows,
                         .a_row = g->rows,
                         .b_row = p.columns_row,
                         .c_row = p.y_row,
                         .alpha = 1,
                         .beta = b != NULL };
      blas_sgemm (c->blas, &m, w + group * g->out_channels * g->rows, p.columns, p.y);
      if (p.joined)
        join (g, &t, p.y_group, c->y_item, p.y, true);
    } while (tile_next (g, &c->size, c->items, &t));
  }
}

static void backward_data (const conv_work *c, const float *w, bool keeps) {
  const geometry *g = &c->g;
  if (!keeps)
    memset (c->x, 0, (size_t)(c->items * c->x_item) * sizeof *c->x);
  for (int64_t group = 0; group < g->groups; group++) {
    tile t = c->size;
    do {
      tile_at p = tile_place (c, &t, group);
      if (p.joined)
        join (g, &t, p.y_group, c->y_item, p.y, false);
      blas_product m = { .m = g->rows,
                         .n = t.columns,
                         .k = g->out_channels,
                         .transpose_a = true,
                         .a_row = g->rows,
                         .b_row = p.y_row,
                         .c_row = p.columns_row,
                         .alpha = 1,
                         .beta = !p.made };
      blas_sgemm (c->blas, &m, w + group * g->out_channels * g->rows, p.y, p.columns);
      if (p.made)
        move_columns (g, &t, p.x_group, c->x_item, p.columns, true);
    } while (tile_next (g, &c->size, c->items, &t));
  }
}

/* The tiles' products are added up in their order. */
static void backward_weights (const conv_work *c, float *dw) {
  const geometry *g = &c->g;
  for (int64_t group = 0; group < g->groups; group++) {
    tile t = c->size;
    do {
      tile_at p = tile_place (c, &t, group);
      if (p.made)
        move_columns (g, &t, p.x_group, c->x_item, p.columns, false);
      if (p.joined)
        join (g, &t, p.y_group, c->y_item, p.y, false);
      blas_product m = { .m = g->out_channels,
                         .n = g->rows,
                         .k = t.columns,
                         .transpose_b = true,
                         .a_row = p.y_row,
                         .b_row = p.columns_row,
                         .c_row = g->rows,
                         .alpha = 1,
                         .beta = 1 };
      blas_sgemm (c->blas, &m, p.y, p.columns, dw + group * g->out_channels * g->rows);
    } while (tile_next (g, &c->size, c->items, &t));
  }
}

/* ---- the kinds ---- */

void op_conv_fwd (const work *k) {
  conv_work c;
  if (!conv_begin (k, false, ops_float (k, 0), ops_float (k, 3), &c))
    return;
  forward (&c, ops_float (k, 1), ops_float (k, 2));
}

void op_conv_bwd_data (const work *k) {
  conv_work c;
  if (!conv_begin (k, false, ops_float (k, 2), ops_float (k, 0), &c))
    return;
  backward_data (&c, ops_float (k, 1), false);
}

void op_conv_bwd_weights (const work *k) {
  conv_work c;
  if (!conv_begin (k, false, ops_float (k, 0), ops_float (k, 1), &c))
    return;
  backward_weights (&c, ops_float (k, 2));
}

void op_deconv_fwd (const work *k) {
  conv_work c;
  if (!conv_begin (k, true, ops_float (k, 3), ops_float (k, 0), &c))
    return;
  const float *b = ops_float (k, 2);
  int64_t channels = c.g.groups * c.g.in_channels;
  for (int64_t i = 0; b != NULL && i < k->items * channels; i++)
    for (int64_t j = 0; j < c.g.in_space; j++)
      c.x[i * c.g.in_space + j] = b[i % channels];
  backward_data (&c, ops_float (k, 1), b != NULL);
}

void op_deconv_bwd_data (const work *k) {
  conv_work c;
  if (!conv_begin (k, true, ops_float (k, 0), ops_float (k, 2), &c))
    return;
  forward (&c, ops_float (k, 1), NULL);
}

void op_deconv_bwd_weights (const work *k) {
  conv_work c;
  if (!conv_begin (k, true, ops_float (k, 1), ops_float (k, 0), &c))
    return;
  backward_weights (&c, ops_float (k, 2));
}
