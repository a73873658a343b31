/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers on rows: products with weights, norms over a row, tables. */
#include "trace/zoo/layers.h"

/* ---- linear ---- */

/* The weights' gradient first: then the input may go before its gradient comes. */
static void linear_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  const compute_linear *s = &k->c.linear;
  if (net_param_wanted (n, k->b)) {
    compute sum = { .kind = COMPUTE_bias_bwd };
    sum.bias = (compute_bias){ n->batch, s->rows, s->out, 1, 0 };
    int32_t t[] = { dy, net_param_gradient (n, k->b, &sum.bias.accumulate) };
    net_op (n, k->name, &sum, t);
    net_param_give (n, k->b, t[1]);
  }
  c.linear.bias = 0;
  if (net_param_wanted (n, k->w)) {
    c.kind = COMPUTE_linear_bwd_weights;
    int32_t t[] = { net_tensor (n, k->in[0]), dy,
                    net_param_gradient (n, k->w, &c.linear.accumulate) };
    net_op (n, k->name, &c, t);
    net_param_give (n, k->w, t[2]);
  }
  if (net_wants (n, k->in[0])) {
    c.kind = COMPUTE_linear_bwd_data;
    c.linear.accumulate = 0;
    int32_t t[] = { dy, net_param_tensor (n, k->w), MADE };
    net_op (n, k->name, &c, t);
    net_give (n, k->in[0], t[2]);
  }
}

value linear_with (net *n, const char *layer, value x, int64_t out, param w, param b) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_linear_fwd };
  c.linear = (compute_linear){ n->batch, i.h, i.c, out, b != NO_PARAM, 0 };
  int32_t t[] = { i.tensor, net_param_tensor (n, w), net_param_tensor (n, b), MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[3], out, 1, i.h, 1);
  node *k = net_node (n, name, linear_back, &c, y);
  if (k != NULL) {
    k->in[0] = x;
    k->w = w;
    k->b = b;
  }
  return y;
}

value linear (net *n, const char *layer, value x, int64_t out, bool bias) {
  const char *name = net_name (n, layer);
  param w = net_param (n, name, "weight", out * net_at (n, x)->c);
  param b = bias ? net_param (n, name, "bias", out) : NO_PARAM;
  return linear_with (n, layer, x, out, w, b);
}

/* ---- norms ---- */

static void layernorm_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_layernorm_bwd;
  int32_t dw = net_param_gradient (n, k->w, &c.rownorm.accumulate);
  int32_t db = net_param_gradient (n, k->b, &c.rownorm.accumulate);
  int32_t t[] = {
    net_tensor (n, k->in[0]), dy, net_param_tensor (n, k->w), k->saved[0], k->saved[1], MADE, dw, db
  };
  net_op (n, k->name, &c, t);
  net_param_give (n, k->w, t[6]);
  net_param_give (n, k->b, t[7]);
  net_give (n, k->in[0], t[5]);
}

value layernorm (net *n, const char *layer, value x, int64_t eps_ppt) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_layernorm_fwd };
  c.rownorm = (compute_rownorm){ n->batch, i.h, i.c, eps_ppt, 0 };
  param w = net_param (n, name, "weight", i.c), b = net_param (n, name, "bias", i.c);
  int32_t t[] = { i.tensor, net_param_tensor (n, w), net_param_tensor (n, b), MADE, MADE, MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[3], i.c, 1, i.h, 1);
  node *k = net_node (n, name, layernorm_back, &c, y);
  if (k != NULL) {
    k->in[0] = x;
    k->w = w;
    k->b = b;
    k->saved[0] = t[4];
    k->saved[1] = t[5];
  }
  return y;
}

static void rmsnorm_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_rmsnorm_bwd;
  int32_t dw = net_param_gradient (n, k->w, &c.rownorm.accumulate);
  int32_t t[] = { net_tensor (n, k->in[0]), dy, net_param_tensor (n, k->w), k->saved[0], MADE, dw };
  net_op (n, k->name, &c, t);
  net_param_give (n, k->w, t[5]);
  net_give (n, k->in[0], t[4]);
}

value rmsnorm (net *n, const char *layer, value x, int64_t eps_ppt) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_rmsnorm_fwd };
  c.rownorm = (compute_rownorm){ n->batch, i.h, i.c, eps_ppt, 0 };
  param w = net_param (n, name, "weight", i.c);
  int32_t t[] = { i.tensor, net_param_tensor (n, w), MADE, MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[2], i.c, 1, i.h, 1);
  node *k = net_node (n, name, rmsnorm_back, &c, y);
  if (k != NULL) {
    k->in[0] = x;
    k->w = w;
    k->saved[0] = t[3];
  }
  return y;
}

/* ---- tables ---- */

static void embedding_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_embedding_bwd;
  int32_t t[] = { net_tensor (n, k->in[0]), dy,
                  net_param_gradient (n, k->w, &c.embedding.accumulate) };
  net_op (n, k->name, &c, t);
  net_param_give (n, k->w, t[2]);
}

value embedding (net *n, const char *layer, value token, param table, int64_t table_rows,
                 int64_t width) {
  const char *name = net_name (n, layer);
  int64_t rows = net_at (n, token)->h;
  compute c = { .kind = COMPUTE_embedding_fwd };
  c.embedding = (compute_embedding){ n->batch, rows, width, table_rows, 0 };
  int32_t t[] = { net_tensor (n, token), net_param_tensor (n, table), MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[2], width, 1, rows, 1);
  node *k = net_node (n, name, embedding_back, &c, y);
  if (k != NULL) {
    k->in[0] = token;
    k->w = table;
  }
  return y;
}

static void position_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_position_bwd;
  int32_t t[] = { dy, net_param_gradient (n, k->w, &c.position.accumulate) };
  net_op (n, k->name, &c, t);
  net_param_give (n, k->w, t[1]);
  net_give (n, k->in[0], dy);
}

value position (net *n, const char *layer, value x, param table, int64_t table_rows) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  if (i.h > table_rows) {
    net_fail (n, "%lld tokens: it knows %lld positions", (long long)i.h, (long long)table_rows);
    return 0;
  }
  compute c = { .kind = COMPUTE_position_fwd };
  c.position = (compute_position){ n->batch, i.h, i.c, table_rows, 0 };
  int32_t t[] = { i.tensor, net_param_tensor (n, table) };
  net_op (n, name, &c, t);
  value y = net_value (n, name, i.tensor, i.c, 1, i.h, 1);
  node *k = net_node (n, name, position_back, &c, y);
  if (k != NULL) {
    k->in[0] = x;
    k->w = table;
  }
  return y;
}

/* ---- rows put before, taken out, added, turned ---- */

static void prepend_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_prepend_bwd;
  int32_t t[] = { dy, MADE, net_param_gradient (n, k->w, &c.rows.accumulate) };
  net_op (n, k->name, &c, t);
  net_param_give (n, k->w, t[2]);
  net_give (n, k->in[0], t[1]);
}

value prepend (net *n, const char *layer, value x) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_prepend_fwd };
  c.rows = (compute_rows){ .batch = n->batch, .rows = i.h, .width = i.c };
  param token = net_param (n, name, "token", i.c);
  int32_t t[] = { i.tensor, net_param_tensor (n, token), MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[2], i.c, 1, i.h + 1, 1);
  node *k = net_node (n, name, prepend_back, &c, y);
  if (k != NULL) {
    k->in[0] = x;
    k->w = token;
  }
  return y;
}

static void moved_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  if (c.kind == COMPUTE_select_fwd) {
    c.kind = COMPUTE_select_bwd;
  } else {
    c.rows.rows = k->c.rows.width;
    c.rows.width = k->c.rows.rows;
  }
  int32_t t[] = { dy, MADE };
  net_op (n, k->name, &c, t);
  net_give (n, k->in[0], t[1]);
}

static value moved (net *n, const char *layer, value x, compute *c, int64_t width, int64_t rows) {
  const char *name = net_name (n, layer);
  int32_t t[] = { net_tensor (n, x), MADE };
  net_op (n, name, c, t);
  value y = net_value (n, name, t[1], width, 1, rows, 1);
  node *k = net_node (n, name, moved_back, c, y);
  if (k != NULL)
    k->in[0] = x;
  return y;
}

value select_row (net *n, const char *name, value x, int64_t row) {
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_select_fwd };
  c.rows = (compute_rows){ .batch = n->batch, .rows = i.h, .width = i.c, .row = row };
  return moved (n, name, x, &c, i.c, 1);
}

value transpose (net *n, const char *name, value x) {
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_transpose };
  c.rows = (compute_rows){ .batch = n->batch, .rows = i.c, .width = i.d * i.h * i.w };
  return moved (n, name, x, &c, i.c, i.d * i.h * i.w);
}

static void add_row_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_addrow_bwd;
  int32_t t[] = { dy, MADE };
  net_op (n, k->name, &c, t);
  net_give (n, k->in[0], dy);
  net_give (n, k->in[1], t[1]);
}

value add_row (net *n, const char *layer, value x, value one) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_addrow_fwd };
  c.rows = (compute_rows){ .batch = n->batch, .rows = i.h, .width = i.c };
  int32_t t[] = { i.tensor, net_tensor (n, one), MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[2], i.c, 1, i.h, 1);
  node *k = net_node (n, name, add_row_back, &c, y);
  if (k != NULL) {
    k->in[0] = x;
    k->in[1] = one;
  }
  return y;
}

/* ---- product of two values, softmax over a row ---- */

static compute product_of (const net *n, int64_t m, int64_t inner, int64_t columns) {
  compute c = { .kind = COMPUTE_matmul };
  c.matmul = (compute_matmul){ .batch = n->batch,
                               .heads = 1,
                               .m = m,
                               .n = columns,
                               .k = inner,
                               .a_item = m * inner,
                               .a_row = inner,
                               .b_item = inner * columns,
                               .b_row = columns,
                               .c_item = m * columns,
                               .c_row = columns };
  return c;
}

static void product_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  const compute_matmul *s = &k->c.matmul;
  int32_t a = net_tensor (n, k->in[0]), b = net_tensor (n, k->in[1]);
  compute da = product_of (n, s->m, s->n, s->k);
  da.matmul.transpose_b = 1;
  da.matmul.b_row = s->n;
  int32_t ta[] = { dy, b, MADE };
  net_op (n, k->name, &da, ta);
  compute db = product_of (n, s->k, s->m, s->n);
  db.matmul.transpose_a = 1;
  db.matmul.a_row = s->k;
  int32_t tb[] = { a, dy, MADE };
  net_op (n, k->name, &db, tb);
  net_give (n, k->in[0], ta[2]);
  net_give (n, k->in[1], tb[2]);
}

value product (net *n, const char *layer, value a, value b) {
  const char *name = net_name (n, layer);
  const value_info left = *net_at (n, a), right = *net_at (n, b);
  compute c = product_of (n, left.h, left.c, right.c);
  int32_t t[] = { left.tensor, right.tensor, MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[2], right.c, 1, left.h, 1);
  node *k = net_node (n, name, product_back, &c, y);
  if (k != NULL) {
    k->in[0] = a;
    k->in[1] = b;
  }
  return y;
}

static void softmax_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_softmax_bwd;
  c.softmax.in_place = alone;
  int32_t t[] = { net_tensor (n, k->out), dy, alone ? NO_TENSOR : MADE };
  net_op (n, k->name, &c, t);
  net_give (n, k->in[0], alone ? dy : t[2]);
}

value softmax (net *n, const char *layer, value x) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_softmax_fwd };
  c.softmax = (compute_softmax){ n->batch, 1, i.h, i.c, 0, 0 };
  int32_t t[] = { i.tensor, MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[1], i.c, 1, i.h, 1);
  node *k = net_node (n, name, softmax_back, &c, y);
  if (k != NULL)
    k->in[0] = x;
  return y;
}
