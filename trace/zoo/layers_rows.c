/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers on rows: products with weights, norms over a row, tables. */
#include "trace/zoo/layers.h"

/* ---- products with weights, norms ---- */

value linear_with (net *n, const char *layer, value x, int64_t out, param w, param b) {
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_linear_fwd };
  c.linear = (compute_linear){ n->batch, i.h, i.c, out, b != NO_PARAM, 0 };
  source from[LAYER_OPERANDS] = { from_value (x), from_param (w), from_param (b) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ out, 1, i.h, 1 });
}

value linear (net *n, const char *layer, value x, int64_t out, bool bias) {
  const char *name = net_name (n, layer);
  param w = net_param (n, name, "weight", out * net_at (n, x)->c);
  param b = bias ? net_param (n, name, "bias", out) : NO_PARAM;
  return linear_with (n, layer, x, out, w, b);
}

value layernorm (net *n, const char *layer, value x, int64_t eps_ppt) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_layernorm_fwd };
  c.rownorm = (compute_rownorm){ n->batch, i.h, i.c, eps_ppt, 0 };
  param w = net_param (n, name, "weight", i.c), b = net_param (n, name, "bias", i.c);
  source from[LAYER_OPERANDS] = { from_value (x), from_param (w), from_param (b) };
  return net_layer (n, name, &c, from, (extent){ i.c, 1, i.h, 1 });
}

value rmsnorm (net *n, const char *layer, value x, int64_t eps_ppt) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_rmsnorm_fwd };
  c.rownorm = (compute_rownorm){ n->batch, i.h, i.c, eps_ppt, 0 };
  source from[LAYER_OPERANDS] = { from_value (x), from_param (net_param (n, name, "weight", i.c)) };
  return net_layer (n, name, &c, from, (extent){ i.c, 1, i.h, 1 });
}

/* ---- tables ---- */

value embedding (net *n, const char *layer, value token, param table, int64_t table_rows,
                 int64_t width) {
  int64_t rows = net_at (n, token)->h;
  compute c = { .kind = COMPUTE_embedding_fwd };
  c.embedding = (compute_embedding){ n->batch, rows, width, table_rows, 0 };
  source from[LAYER_OPERANDS] = { from_value (token), from_param (table) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ width, 1, rows, 1 });
}

value position (net *n, const char *layer, value x, param table, int64_t table_rows) {
  const value_info i = *net_at (n, x);
  if (i.h > table_rows) {
    net_fail (n, "%lld tokens: it knows %lld positions", (long long)i.h, (long long)table_rows);
    return 0;
  }
  compute c = { .kind = COMPUTE_position_fwd };
  c.position = (compute_position){ n->batch, i.h, i.c, table_rows, 0 };
  source from[LAYER_OPERANDS] = { from_value (x), from_param (table) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ i.c, 1, i.h, 1 });
}

/* ---- rows put before, taken out, added, turned ---- */

static compute rows_of (const net *n, compute_kind kind, const value_info *i) {
  compute c = { .kind = kind };
  c.rows = (compute_rows){ .batch = n->batch, .rows = i->h, .width = i->c };
  return c;
}

value prepend (net *n, const char *layer, value x) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = rows_of (n, COMPUTE_prepend_fwd, &i);
  source from[LAYER_OPERANDS] = { from_value (x), from_param (net_param (n, name, "token", i.c)) };
  return net_layer (n, name, &c, from, (extent){ i.c, 1, i.h + 1, 1 });
}

value select_row (net *n, const char *layer, value x, int64_t row) {
  const value_info i = *net_at (n, x);
  compute c = rows_of (n, COMPUTE_select_fwd, &i);
  c.rows.row = row;
  source from[LAYER_OPERANDS] = { from_value (x) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ i.c, 1, 1, 1 });
}

value add_row (net *n, const char *layer, value x, value one) {
  const value_info i = *net_at (n, x);
  compute c = rows_of (n, COMPUTE_addrow_fwd, &i);
  source from[LAYER_OPERANDS] = { from_value (x), from_value (one) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ i.c, 1, i.h, 1 });
}

static void transpose_back (net *n, const node *k) {
  bool alone;
  int32_t t[] = { net_take (n, k->out, &alone), MADE };
  if (t[0] == NO_TENSOR)
    return;
  compute c = k->c;
  c.rows.rows = k->c.rows.width;
  c.rows.width = k->c.rows.rows;
  net_op (n, k->name, &c, t);
  net_give (n, k->in[0], t[1]);
}

value transpose (net *n, const char *layer, value x) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_transpose };
  c.rows = (compute_rows){ .batch = n->batch, .rows = i.c, .width = i.d * i.h * i.w };
  int32_t t[] = { i.tensor, MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, t[1], i.c, 1, i.d * i.h * i.w, 1);
  node *k = net_node (n, name, transpose_back, &c, y);
  if (k != NULL)
    k->in[0] = x;
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

value softmax (net *n, const char *layer, value x) {
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_softmax_fwd };
  c.softmax = (compute_softmax){ n->batch, 1, i.h, i.c, 0, 0 };
  source from[LAYER_OPERANDS] = { from_value (x) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ i.c, 1, i.h, 1 });
}
