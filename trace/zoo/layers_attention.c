/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention, with the score matrix in memory and without. */
#include "trace/zoo/layers.h"

enum { SEED = 20240301 }; /* of dropout on the probabilities */

/* The place of one of q, k, v or their gradients: a tensor, and its rows and heads in an item. */
typedef struct part {
  int32_t tensor;
  int64_t item, offset, head, row;
  bool turned; /* a product reads it transposed */
} part;

/* Everything that forward and backward share, derived from the node's attention shape. */
typedef struct layout {
  part q, k, v, scores, y;
} layout;

static layout layout_of (const compute_attention *s) {
  int64_t q_row = s->packed ? (s->heads + 2 * s->kv_heads) * s->width : s->heads * s->width;
  int64_t k_row = s->packed ? q_row : s->kv_heads * s->width;
  part q = { NO_TENSOR, s->queries * q_row, 0, s->width, q_row, false };
  part k = { NO_TENSOR, s->keys * k_row, 0, s->width, k_row, false }, v = k;
  if (s->packed) {
    k.offset = s->heads * s->width;
    v.offset = (s->heads + s->kv_heads) * s->width;
  }
  part scores = { NO_TENSOR, s->heads * s->queries * s->keys, 0, s->queries * s->keys, s->keys,
                  false };
  part y = { NO_TENSOR, s->queries * s->heads * s->width, 0, s->width, s->heads * s->width, false };
  return (layout){ q, k, v, scores, y };
}

static part at (part p, int32_t tensor) {
  p.tensor = tensor;
  return p;
}

static part turned (part p, int32_t tensor) {
  p.turned = true;
  return at (p, tensor);
}

/* c = a b; returns c's tensor. */
static int32_t multiply (net *n, const char *name, int64_t heads, const int64_t mnk[3], part a,
                         part b, part c, int64_t root) {
  compute m = { .kind = COMPUTE_matmul };
  m.matmul = (compute_matmul){ .batch = n->batch,
                               .heads = heads,
                               .m = mnk[0],
                               .n = mnk[1],
                               .k = mnk[2],
                               .transpose_a = a.turned,
                               .transpose_b = b.turned,
                               .root = root,
                               .a_item = a.item,
                               .a_offset = a.offset,
                               .a_head = a.head,
                               .a_row = a.row,
                               .b_item = b.item,
                               .b_offset = b.offset,
                               .b_head = b.head,
                               .b_row = b.row,
                               .c_item = c.item,
                               .c_offset = c.offset,
                               .c_head = c.head,
                               .c_row = c.row,
                               .update_c = c.tensor != MADE,
                               .b_in_a = a.tensor == b.tensor };
  int32_t t[] = { a.tensor, b.tensor, c.tensor };
  net_op (n, name, &m, t);
  return t[2];
}

static compute softmax_of (const compute_attention *s, compute_kind kind, bool in_place) {
  compute c = { .kind = kind };
  c.softmax = (compute_softmax){ s->batch, s->heads, s->queries, s->keys, s->causal, in_place };
  return c;
}

static compute dropout_of (const compute_attention *s, compute_kind kind, bool in_place) {
  compute c = { .kind = kind };
  c.dropout = (compute_dropout){ .batch = s->batch,
                                 .size = s->heads * s->queries * s->keys,
                                 .rate_ppm = s->rate_ppm,
                                 .seed = s->seed,
                                 .offset = s->offset,
                                 .in_place = in_place };
  return c;
}

/* Saved: 0 the probabilities, 1 those that dropout left (or the same), 2 the mask. */
static int32_t explicit_forward (net *n, const char *name, const compute_attention *s,
                                 const int32_t qkv[3], int32_t saved[4]) {
  layout l = layout_of (s);
  int64_t to_scores[] = { s->queries, s->keys, s->width };
  int64_t to_y[] = { s->queries, s->width, s->keys };
  int32_t scores = multiply (n, name, s->heads, to_scores, at (l.q, qkv[0]), turned (l.k, qkv[1]),
                             at (l.scores, MADE), s->width);
  compute c = softmax_of (s, COMPUTE_softmax_fwd, false);
  int32_t t[] = { scores, MADE };
  net_op (n, net_join (n, name, "softmax"), &c, t);
  saved[0] = saved[1] = t[1];
  saved[2] = NO_TENSOR;
  if (s->rate_ppm > 0) {
    c = dropout_of (s, COMPUTE_dropout_fwd, false);
    int32_t d[] = { t[1], MADE, MADE };
    net_op (n, net_join (n, name, "dropout"), &c, d);
    saved[1] = d[1];
    saved[2] = d[2];
  }
  return multiply (n, net_join (n, name, "values"), s->heads, to_y, at (l.scores, saved[1]),
                   at (l.v, qkv[2]), at (l.y, MADE), 0);
}

static void explicit_back (net *n, const node *k) {
  bool alone;
  const compute_attention *s = &k->c.attention;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  layout l = layout_of (s);
  int64_t to_dp[] = { s->queries, s->keys, s->width };
  int64_t to_dv[] = { s->keys, s->width, s->queries };
  int64_t to_dq[] = { s->queries, s->width, s->keys };
  int32_t q = net_tensor (n, k->in[0]);
  int32_t keys = s->packed ? q : net_tensor (n, k->in[1]);
  int32_t v = s->packed ? q : net_tensor (n, k->in[2]);
  /* All three parts of a packed gradient go to one tensor; the first to come makes it. */
  int32_t dv = multiply (n, net_join (n, k->name, "dv"), s->heads, to_dv,
                         turned (l.scores, k->saved[1]), at (l.y, dy), at (l.v, MADE), 0);
  int32_t dp = multiply (n, net_join (n, k->name, "dp"), s->heads, to_dp, at (l.y, dy),
                         turned (l.v, v), at (l.scores, MADE), 0);
  if (s->rate_ppm > 0) {
    compute c = dropout_of (s, COMPUTE_dropout_bwd, true);
    int32_t t[] = { k->saved[2], dp, NO_TENSOR };
    net_op (n, net_join (n, k->name, "dropout"), &c, t);
  }
  compute c = softmax_of (s, COMPUTE_softmax_bwd, true);
  int32_t t[] = { k->saved[0], dp, NO_TENSOR };
  net_op (n, net_join (n, k->name, "softmax"), &c, t);
  int32_t dq = multiply (n, net_join (n, k->name, "dq"), s->heads, to_dq, at (l.scores, dp),
                         at (l.k, keys), at (l.q, s->packed ? dv : MADE), s->width);
  int32_t dk = multiply (n, net_join (n, k->name, "dk"), s->heads, to_dv, turned (l.scores, dp),
                         at (l.q, q), at (l.k, s->packed ? dv : MADE), s->width);
  net_give (n, k->in[0], dq);
  if (!s->packed) {
    net_give (n, k->in[1], dk);
    net_give (n, k->in[2], dv);
  }
}

/* ---- key and value heads that several query heads share ---- */

static value repeated (net *n, const char *layer, value x, const attention_form *f) {
  int64_t rows = net_at (n, x)->h;
  compute c = { .kind = COMPUTE_repeat_fwd };
  c.repeat = (compute_repeat){ n->batch, rows, f->kv_heads, f->heads / f->kv_heads, f->width };
  source from[LAYER_OPERANDS] = { from_value (x) };
  extent e = { f->heads * f->width, 1, rows, 1 };
  return net_layer (n, net_name (n, layer), &c, from, e);
}

/* ---- both ---- */

static value attend (net *n, const char *layer, const value in[3], bool packed,
                     const attention_form *f) {
  const char *name = net_name (n, layer);
  compute c = { .kind = COMPUTE_attention_fwd };
  compute_attention *s = &c.attention;
  *s = (compute_attention){ .batch = n->batch,
                            .heads = f->heads,
                            .kv_heads = f->kv_heads,
                            .queries = net_at (n, in[0])->h,
                            .keys = net_at (n, in[packed ? 0 : 1])->h,
                            .width = f->width,
                            .causal = f->causal,
                            .packed = packed,
                            .rate_ppm = f->dropout_ppm };
  if (f->dropout_ppm > 0) {
    s->seed = SEED;
    s->offset = net_draw (n, s->heads * s->queries * s->keys);
  }
  extent e = { s->heads * s->width, 1, s->queries, 1 };
  source none = from_tensor (NO_TENSOR);
  source from[LAYER_OPERANDS] = { from_value (in[0]), packed ? none : from_value (in[1]),
                                  packed ? none : from_value (in[2]) };
  if (!n->r->explicit_attention)
    return net_layer (n, name, &c, from, e);
  int32_t qkv[3], saved[4] = { NO_TENSOR };
  for (int i = 0; i < 3; i++)
    qkv[i] = net_tensor (n, in[packed ? 0 : i]);
  int32_t y = explicit_forward (n, name, s, qkv, saved);
  value out = net_value (n, name, y, e.c, e.d, e.h, e.w);
  node *k = net_node (n, name, explicit_back, &c, out);
  if (k != NULL)
    for (int i = 0; i < 3; i++) {
      k->in[i] = in[i];
      k->saved[i] = saved[i];
    }
  return out;
}

value attention (net *n, const char *name, value q, value k, value v, attention_form f) {
  if (f.heads != f.kv_heads && n->r->explicit_attention) {
    k = repeated (n, net_join (n, name, "keys"), k, &f);
    v = repeated (n, net_join (n, name, "values"), v, &f);
    f.kv_heads = f.heads;
  }
  value in[] = { q, k, v };
  return attend (n, name, in, false, &f);
}

value attention_packed (net *n, const char *name, value qkv, attention_form f) {
  value in[] = { qkv, 0, 0 };
  return attend (n, name, in, true, &f);
}

/* ---- rotary positions ---- */

value rotary (net *n, const char *layer, value x, int64_t heads, int64_t theta) {
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_rotary_fwd };
  c.rotary = (compute_rotary){ n->batch, i.h, heads, i.c / heads, theta };
  source from[LAYER_OPERANDS] = { from_value (x) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ i.c, 1, i.h, 1 });
}
