/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows that are looked up, put before, taken out, joined and turned. */
#include <string.h>

#include "executor/ops/inner.h"

static void put (float *out, const float *x, int64_t count) {
  memcpy (out, x, (size_t)count * sizeof *out);
}

static void add_to (float *out, const float *x, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    out[i] += x[i];
}

void op_embedding_fwd (const work *k) {
  const compute_embedding *s = &k->c->embedding;
  const int32_t *token = k->at[0];
  const float *table = ops_float (k, 1);
  float *y = ops_float (k, 2);
  if (!ops_in_range (k, token, k->items * s->rows, s->table_rows))
    return;
  for (int64_t r = 0; r < k->items * s->rows; r++)
    put (y + r * s->width, table + token[r] * s->width, s->width);
}

void op_embedding_bwd (const work *k) {
  const compute_embedding *s = &k->c->embedding;
  const int32_t *token = k->at[0];
  const float *dy = ops_float (k, 1);
  float *dtable = ops_float (k, 2);
  if (!ops_in_range (k, token, k->items * s->rows, s->table_rows))
    return;
  for (int64_t r = 0; r < k->items * s->rows; r++)
    add_to (dtable + token[r] * s->width, dy + r * s->width, s->width);
}

void op_position_fwd (const work *k) {
  int64_t item = k->c->position.rows * k->c->position.width;
  for (int64_t i = 0; i < k->items; i++)
    add_to (ops_float (k, 0) + i * item, ops_float (k, 1), item);
}

void op_position_bwd (const work *k) {
  int64_t item = k->c->position.rows * k->c->position.width;
  for (int64_t i = 0; i < k->items; i++)
    add_to (ops_float (k, 1), ops_float (k, 0) + i * item, item);
}

void op_prepend_fwd (const work *k) {
  const compute_rows *s = &k->c->rows;
  int64_t item = s->rows * s->width;
  float *y = ops_float (k, 2);
  for (int64_t i = 0; i < k->items; i++, y += item + s->width) {
    put (y, ops_float (k, 1), s->width);
    put (y + s->width, ops_float (k, 0) + i * item, item);
  }
}

void op_prepend_bwd (const work *k) {
  const compute_rows *s = &k->c->rows;
  int64_t item = s->rows * s->width;
  const float *dy = ops_float (k, 0);
  for (int64_t i = 0; i < k->items; i++, dy += item + s->width) {
    add_to (ops_float (k, 2), dy, s->width);
    put (ops_float (k, 1) + i * item, dy + s->width, item);
  }
}

void op_select_fwd (const work *k) {
  const compute_rows *s = &k->c->rows;
  for (int64_t i = 0; i < k->items; i++)
    put (ops_float (k, 1) + i * s->width, ops_float (k, 0) + (i * s->rows + s->row) * s->width,
         s->width);
}

void op_select_bwd (const work *k) {
  const compute_rows *s = &k->c->rows;
  float *dx = ops_float (k, 1);
  memset (dx, 0, (size_t)(k->items * s->rows * s->width) * sizeof *dx);
  for (int64_t i = 0; i < k->items; i++)
    put (dx + (i * s->rows + s->row) * s->width, ops_float (k, 0) + i * s->width, s->width);
}

void op_addrow_fwd (const work *k) {
  const compute_rows *s = &k->c->rows;
  float *y = ops_float (k, 2);
  put (y, ops_float (k, 0), k->items * s->rows * s->width);
  for (int64_t r = 0; r < k->items * s->rows; r++)
    add_to (y + r * s->width, ops_float (k, 1) + r / s->rows * s->width, s->width);
}

void op_addrow_bwd (const work *k) {
  const compute_rows *s = &k->c->rows;
  float *sum = ops_float (k, 1);
  memset (sum, 0, (size_t)(k->items * s->width) * sizeof *sum);
  for (int64_t r = 0; r < k->items * s->rows; r++)
    add_to (sum + r / s->rows * s->width, ops_float (k, 0) + r * s->width, s->width);
}

void op_transpose (const work *k) {
  const compute_rows *s = &k->c->rows;
  int64_t item = s->rows * s->width;
  for (int64_t i = 0; i < k->items; i++) {
    const float *x = ops_float (k, 0) + i * item;
    float *y = ops_float (k, 1) + i * item;
    for (int64_t r = 0; r < s->rows; r++)
      for (int64_t c = 0; c < s->width; c++)
        y[c * s->rows + r] = x[r * s->width + c];
  }
}

/* One of the parts that are joined, to or from its place in the rows of the whole. */
static void part (const work *k, int operand, int64_t size, int64_t at, int64_t row, float *whole,
                  bool back) {
  float *x = ops_float (k, operand);
  for (int64_t r = 0; r < k->items * k->c->concat.outer; r++)
    if (back)
      put (x + r * size, whole + r * row + at, size);
    else
      put (whole + r * row + at, x + r * size, size);
}

static void parts (const work *k, int first, float *whole, bool back) {
  const compute_concat *s = &k->c->concat;
  int64_t row = 0, at = 0;
  for (int64_t i = 0; i < s->sizes_count; i++)
    row += s->sizes[i];
  for (int64_t i = 0; i < s->sizes_count; at += s->sizes[i++])
    part (k, first + (int)i, s->sizes[i], at, row, whole, back);
}

void op_concat_fwd (const work *k) {
  parts (k, 0, ops_float (k, (int)k->c->concat.sizes_count), false);
}

void op_concat_bwd (const work *k) {
  parts (k, 1, ops_float (k, 0), true);
}
