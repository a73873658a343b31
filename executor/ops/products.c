/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products: linear layers, sums for their biases, products of two activations. */
#include <math.h>

#include "executor/ops/inner.h"

void op_linear_fwd (const work *k) {
  const compute_linear *s = &k->c->linear;
  const float *b = ops_float (k, 2);
  float *y = ops_float (k, 3);
  int64_t rows = k->items * s->rows;
  for (int64_t i = 0; b != NULL && i < rows; i++)
    for (int64_t j = 0; j < s->out; j++)
      y[i * s->out + j] = b[j];
  blas_product p = { .m = rows,
                     .n = s->out,
                     .k = s->in,
                     .transpose_b = true,
                     .a_row = s->in,
                     .b_row = s->in,
                     .c_row = s->out,
                     .alpha = 1,
                     .beta = b != NULL };
  blas_sgemm (k->blas, &p, ops_float (k, 0), ops_float (k, 1), y);
}

void op_linear_bwd_data (const work *k) {
  const compute_linear *s = &k->c->linear;
  blas_product p = { .m = k->items * s->rows,
                     .n = s->in,
                     .k = s->out,
                     .a_row = s->out,
                     .b_row = s->in,
                     .c_row = s->in,
                     .alpha = 1 };
  blas_sgemm (k->blas, &p, ops_float (k, 0), ops_float (k, 1), ops_float (k, 2));
}

void op_linear_bwd_weights (const work *k) {
  const compute_linear *s = &k->c->linear;
  blas_product p = { .m = s->out,
                     .n = s->in,
                     .k = k->items * s->rows,
                     .transpose_a = true,
                     .a_row = s->out,
                     .b_row = s->in,
                     .c_row = s->in,
                     .alpha = 1,
                     .beta = 1 };
  blas_sgemm (k->blas, &p, ops_float (k, 1), ops_float (k, 0), ops_float (k, 2));
}

/* Each channel's sum over an item's stretch is made in double, then added. */
void op_bias_bwd (const work *k) {
  const compute_bias *s = &k->c->bias;
  const float *dy = ops_float (k, 0);
  float *db = ops_float (k, 1);
  int64_t rows = k->items * s->outer;
  if (s->inner == 1) { /* channels side by side: row after row */
    for (int64_t i = 0; i < rows; i++)
      for (int64_t c = 0; c < s->channels; c++)
        db[c] += dy[i * s->channels + c];
    return;
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < s->channels; c++, dy += s->inner) {
      double sum = 0;
      for (int64_t j = 0; j < s->inner; j++)
        sum += dy[j];
      db[c] += (float)sum;
    }
}

void op_matmul (const work *k) {
  const compute_matmul *s = &k->c->matmul;
  const float *a = ops_float (k, 0), *b = s->b_in_a ? a : ops_float (k, 1);
  float *c = ops_float (k, 2);
  blas_product p = { .m = s->m,
                     .n = s->n,
                     .k = s->k,
                     .transpose_a = s->transpose_a,
                     .transpose_b = s->transpose_b,
                     .a_row = s->a_row,
                     .b_row = s->b_row,
                     .c_row = s->c_row,
                     .alpha = s->root > 0 ? 1 / sqrtf ((float)s->root) : 1 };
  for (int64_t i = 0; i < k->items; i++)
    for (int64_t h = 0; h < s->heads; h++)
      blas_sgemm (k->blas, &p, a + i * s->a_item + s->a_offset + h * s->a_head,
                  b + i * s->b_item + s->b_offset + h * s->b_head,
                  c + i * s->c_item + s->c_offset + h * s->c_head);
}
