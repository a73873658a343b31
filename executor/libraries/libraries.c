/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/libraries/libraries.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

bool libraries_open (libraries *l, const libraries_options *o, error *err) {
  *l = (libraries){ NULL, NULL };
  return ((!o->search && o->blas == NULL) || cublas_open (o->blas, &l->blas, err)) &&
         ((!o->search && o->dnn == NULL) || cudnn_open (o->dnn, &l->dnn, err));
}

void libraries_close (libraries *l) {
  cublas_close (l->blas);
  cudnn_close (l->dnn);
  *l = (libraries){ NULL, NULL };
}

const char *libraries_name (const libraries *l, char text[LIBRARIES_TEXT]) {
  int n = 0;
  text[0] = '\0';
  if (l->blas != NULL) {
    int v = cublas_version (l->blas);
    n = snprintf (text, LIBRARIES_TEXT, "cuBLAS %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
  }
  if (l->dnn != NULL) {
    long long v = (long long)cudnn_version (l->dnn);
    snprintf (text + n, (size_t)(LIBRARIES_TEXT - n), "%scuDNN %lld.%lld.%lld",
              n > 0 ? " and " : "", v / 10000, v / 100 % 100, v % 100);
  }
  return text;
}

/* ---- products ---- */

static cublas_product whole_product (const kernel_work *w) {
  return (cublas_product){ .dtype = w->c.dtype,
                           .count = 1,
                           .alpha = 1,
                           .workspace = w->workspace,
                           .workspace_bytes = w->workspace_bytes };
}

/* x: rows, in; w: out, in; y: rows, out. */
static cublas_product linear_product (const kernel_work *w) {
  const compute_linear *s = &w->c.linear;
  cublas_product p = whole_product (w);
  bool weights = w->c.kind == COMPUTE_linear_bwd_weights;
  bool data = w->c.kind == COMPUTE_linear_bwd_data;
  int64_t rows = w->items * s->rows;
  p.m = weights ? s->out : rows;
  p.n = weights || data ? s->in : s->out;
  p.k = weights ? rows : data ? s->out : s->in;
  p.transpose_a = weights;
  p.transpose_b = !weights && !data;
  p.a_row = weights || data ? s->out : s->in;
  p.b_row = s->in;
  p.c_row = weights || data ? s->in : s->out;
  p.beta = weights;
  p.a = w->at[weights ? 1 : 0];
  p.b = w->at[weights ? 0 : 1];
  p.c = w->at[weights || data ? 2 : 3];
  return p;
}

/* The product of one item, or of all where one step leads from any head to the next. */
static cublas_product heads_product (const kernel_work *w, int64_t item) {
  const compute_matmul *s = &w->c.matmul;
  cublas_product p = whole_product (w);
  int64_t bytes = compute_element_bytes (w->c.dtype, DATA);
  const char *a = w->at[0], *b = s->b_in_a ? w->at[0] : w->at[1];
  char *c = w->at[2];
  p.m = s->m;
  p.n = s->n;
  p.k = s->k;
  p.count = s->heads;
  p.transpose_a = s->transpose_a;
  p.transpose_b = s->transpose_b;
  p.a_row = s->a_row;
  p.b_row = s->b_row;
  p.c_row = s->c_row;
  p.a_next = s->a_head;
  p.b_next = s->b_head;
  p.c_next = s->c_head;
  p.alpha = s->root > 0 ? 1 / sqrtf ((float)s->root) : 1;
  p.a = a + (item * s->a_item + s->a_offset) * bytes;
  p.b = b + (item * s->b_item + s->b_offset) * bytes;
  p.c = c + (item * s->c_item + s->c_offset) * bytes;
  return p;
}

static bool joins_items (const compute_matmul *s) {
  return s->a_item == s->heads * s->a_head && s->b_item == s->heads * s->b_head &&
         s->c_item == s->heads * s->c_head;
}

static bool is_linear (const kernel_work *w) {
  return w->c.kind == COMPUTE_linear_fwd || w->c.kind == COMPUTE_linear_bwd_data ||
         w->c.kind == COMPUTE_linear_bwd_weights;
}

static bool takes_product (const kernel_work *w) {
  cublas_product p;
  if (!is_linear (w) && w->c.kind != COMPUTE_matmul)
    return false;
  p = is_linear (w) ? linear_product (w) : heads_product (w, 0);
  if (w->c.kind == COMPUTE_matmul && joins_items (&w->c.matmul))
    p.count *= w->items;
  return cublas_takes (&p);
}

static bool multiply (libraries *l, CUstream s, const kernel_work *w, bool *done, error *err) {
  cublas_product p = is_linear (w) ? linear_product (w) : heads_product (w, 0);
  bool all = is_linear (w) || joins_items (&w->c.matmul);
  if (!is_linear (w) && all)
    p.count *= w->items;
  if (!cublas_multiply (l->blas, s, &p, done, err))
    return false;
  /* The others are alike, so they are done where the first is. */
  for (int64_t i = 1; *done && !all && i < w->items; i++) {
    p = heads_product (w, i);
    if (!cublas_multiply (l->blas, s, &p, done, err))
      return false;
  }
  return true;
}

/* ---- convolutions ---- */

static void three (int64_t d, int64_t h, int64_t w, int64_t least, int64_t out[3]) {
  out[0] = d > least ? d : least;
  out[1] = h > least ? h : least;
  out[2] = w > least ? w : least;
}

/* A transposed convolution is one from its out to its in. */
static bool shape_of (const kernel_work *w, cudnn_shape *out) {
  const compute_conv *s = &w->c.conv;
  bool turned = w->c.kind == COMPUTE_deconv_fwd || w->c.kind == COMPUTE_deconv_bwd_data ||
                w->c.kind == COMPUTE_deconv_bwd_weights;
  *out = (cudnn_shape){ .dtype = w->c.dtype,
                        .items = w->items,
                        .a_channels = turned ? s->out_channels : s->in_channels,
                        .b_channels = turned ? s->in_channels : s->out_channels,
                        .groups = s->groups > 0 ? s->groups : 1,
                        .workspace_bytes = w->workspace != NULL ? w->workspace_bytes : 0 };
  three (s->in_d, s->in_h, s->in_w, 1, turned ? out->b : out->a);
  three (s->out_d, s->out_h, s->out_w, 1, turned ? out->a : out->b);
  three (s->kernel_d, s->kernel_h, s->kernel_w, 1, out->kernel);
  three (s->stride_d, s->stride_h, s->stride_w, 1, out->stride);
  three (s->pad_d, s->pad_h, s->pad_w, 0, out->pad);
  switch (w->c.kind) {
  case COMPUTE_conv_fwd:
  case COMPUTE_deconv_bwd_data:
    out->way = CUDNN_TO_B;
    return true;
  case COMPUTE_conv_bwd_data:
  case COMPUTE_deconv_fwd:
    out->way = CUDNN_TO_A;
    return true;
  case COMPUTE_conv_bwd_weights:
  case COMPUTE_deconv_bwd_weights:
    out->way = CUDNN_TO_WEIGHTS;
    return true;
  default:
    return false;
  }
}

static bool convolve (libraries *l, CUstream s, const library_call *c, const kernel_work *w,
                      error *err) {
  bool weights = w->c.kind == COMPUTE_conv_bwd_weights || w->c.kind == COMPUTE_deconv_bwd_weights;
  bool forward = w->c.kind == COMPUTE_conv_fwd || w->c.kind == COMPUTE_deconv_fwd;
  int x = w->c.kind == COMPUTE_deconv_bwd_weights ? 1 : 0; /* side a of the weights' gradient */
  cudnn_operands o = { .x = w->at[x],
                       .y = w->at[1 - x],
                       .workspace = w->workspace,
                       .out = w->at[forward ? 3 : 2],
                       .adds = weights };
  return cudnn_run (l->dnn, s, c->conv, &o, err);
}

/* ---- both ---- */

library_call libraries_prepare (libraries *l, const kernel_work *w) {
  library_call c = { .takes = false };
  cudnn_shape shape;
  if (l->dnn != NULL && shape_of (w, &shape))
    c.conv = cudnn_choose (l->dnn, &shape);
  c.takes = c.conv != NULL || (l->blas != NULL && takes_product (w));
  return c;
}

void libraries_forget (libraries *l, library_call *c) {
  if (c->conv != NULL)
    cudnn_forget (l->dnn, c->conv);
  c->conv = NULL;
}

static bool has_bias (const kernel_work *w) {
  return (w->c.kind == COMPUTE_linear_fwd || w->c.kind == COMPUTE_conv_fwd ||
          w->c.kind == COMPUTE_deconv_fwd) &&
         w->at[2] != NULL;
}

bool libraries_run (libraries *l, CUstream s, const library_call *c, const kernel_work *w,
                    bool *done, bool *bias, error *err) {
  assert (c && w);
  *done = true;
  *bias = has_bias (w);
  return c->conv != NULL ? convolve (l, s, c, w, err) : multiply (l, s, w, done, err);
}

kernel_work libraries_bias (const kernel_work *w) {
  const compute_conv *s = &w->c.conv;
  bool linear = w->c.kind == COMPUTE_linear_fwd;
  kernel_work b = { .c = { .kind = COMPUTE_bias_bwd, .dtype = w->c.dtype }, .items = w->items };
  int64_t out[3];
  three (s->out_d, s->out_h, s->out_w, 1, out);
  b.c.bias = (compute_bias){ .batch = w->items,
                             .outer = linear ? w->c.linear.rows : 1,
                             .channels = linear ? w->c.linear.out : s->out_channels,
                             .inner = linear ? 1 : out[0] * out[1] * out[2] };
  b.at[0] = w->at[2];
  b.at[1] = w->at[3];
  return b;
}
