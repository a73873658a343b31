/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A layer of one op, and its way back as compute.def has it: an operand of a backward kind is
   called as the forward one is that it stands for, or, after a d, as that one's gradient. */
#include <assert.h>
#include <string.h>

#include "trace/zoo/net.h"

static int32_t tensor_of (net *n, source s) {
  switch (s.kind) {
  case SOURCE_VALUE:
    return net_tensor (n, s.index);
  case SOURCE_PARAM:
    return net_param_tensor (n, s.index);
  case SOURCE_TENSOR:
    return s.index;
  default:
    return MADE;
  }
}

static int64_t *size_named (compute *c, const char *name) {
  const compute_field *fields = compute_fields (c->kind);
  for (int i = 0; fields[i].name; i++)
    if (strcmp (fields[i].name, name) == 0)
      return &c->at[i];
  return NULL;
}

/* ---- the way back ---- */

/* One op of it. By forward operand: `made` is the gradient that an op has made. */
typedef struct back {
  net *n;
  const node *k;
  operand forward[COMPUTE_MOST_OPERANDS];
  int count;
  int32_t dy, made[LAYER_OPERANDS];
  bool alone; /* nobody else needs dy: the gradient may take its place */
} back;

static int forward_named (const back *b, const char *name) {
  for (int i = 0; i < b->count; i++)
    if (strcmp (b->forward[i].name, name) == 0)
      return i;
  return -1;
}

/* The forward op's; -1: the operand is none. */
static int gradient_of (const back *b, const operand *o) {
  return o->name[0] == 'd' && strcmp (o->name, "dy") != 0 ? forward_named (b, o->name + 1) : -1;
}

static compute compute_back (const back *b, compute_kind kind) {
  const node *k = b->k;
  compute c = { .kind = kind };
  if (kind == COMPUTE_bias_bwd) {
    const compute_conv *s = &k->c.conv;
    const compute_linear *l = &k->c.linear;
    c.bias = k->c.kind == COMPUTE_linear_fwd ? (compute_bias){ l->batch, l->rows, l->out, 1, 0 }
                                             : (compute_bias){ s->batch, 1, s->out_channels,
                                                               s->out_d * s->out_h * s->out_w, 0 };
    return c;
  }
  c = k->c;
  c.kind = kind;
  if (kind == COMPUTE_batchnorm_bwd)
    c.batchnorm.momentum_ppm = 0;
  int64_t *bias = size_named (&c, "bias"), *in_place = size_named (&c, "in_place");
  if (bias)
    *bias = 0;
  if (in_place && kind != COMPUTE_swiglu_bwd) /* which makes two */
    *in_place = b->alone;
  return c;
}

static int32_t operand_of (back *b, const operand *o, int64_t *accumulate) {
  int of = gradient_of (b, o), same = forward_named (b, o->name);
  if (strcmp (o->name, "dy") == 0)
    return b->dy;
  if (strcmp (o->name, "y") == 0)
    return net_tensor (b->n, b->k->out);
  if (of < 0)
    return same < 0 ? NO_TENSOR : tensor_of (b->n, b->k->from[same]);
  source s = b->k->from[of];
  if (s.kind == SOURCE_PARAM)
    return s.index == NO_PARAM ? NO_TENSOR : net_param_gradient (b->n, s.index, accumulate);
  return s.kind == SOURCE_VALUE && o->use != ABSENT ? MADE : NO_TENSOR;
}

static bool is_wanted (const back *b, int of) {
  source s = b->k->from[of];
  return s.kind == SOURCE_VALUE ? net_wants (b->n, s.index) : net_param_wanted (b->n, s.index);
}

/* `whole`: it makes all gradients, and not only the one that is its last operand. */
static void back_op (back *b, compute_kind kind, bool whole) {
  compute c = compute_back (b, kind);
  operand o[COMPUTE_MOST_OPERANDS];
  int32_t t[COMPUTE_MOST_OPERANDS];
  int count = compute_operands (&c, o);
  int64_t none, *accumulate = size_named (&c, "accumulate");
  if (!whole && !is_wanted (b, gradient_of (b, &o[count - 1])))
    return;
  for (int i = 0; i < count; i++)
    t[i] = operand_of (b, &o[i], accumulate ? accumulate : &none);
  net_op (b->n, b->k->name, &c, t);
  for (int i = 0; i < count; i++) {
    int of = gradient_of (b, &o[i]);
    if (of < 0)
      continue;
    b->made[of] = t[i];
    if (b->k->from[of].kind == SOURCE_PARAM && is_wanted (b, of))
      net_param_give (b->n, b->k->from[of].index, t[i]);
  }
}

/* The parameters' gradients first: then the input may go before its gradient comes. A value whose
   gradient no kind makes gets dy itself. */
static void layer_back (net *n, const node *k) {
  compute_kind kinds[COMPUTE_MOST_BACK];
  back b = { .n = n, .k = k };
  b.dy = net_take (n, k->out, &b.alone);
  if (b.dy == NO_TENSOR)
    return;
  b.count = compute_operands (&k->c, b.forward);
  for (int i = 0; i < b.count; i++)
    b.made[i] = NO_TENSOR;
  int n_kinds = compute_back_of (k->c.kind, kinds);
  for (int i = n_kinds - 1; i >= 0; i--)
    back_op (&b, kinds[i], n_kinds == 1);
  for (int i = 0; i < b.count; i++)
    if (k->from[i].kind == SOURCE_VALUE)
      net_give (n, k->from[i].index, b.made[i] == NO_TENSOR ? b.dy : b.made[i]);
}

/* ---- forward ---- */

/* The first operand that the op makes, or else the one that it changes. */
static int result_of (const operand *o, int count) {
  int at = 0;
  while (at < count && o[at].use != WRITE)
    at++;
  for (int i = 0; i < count && at == count; i++)
    if (o[i].use == UPDATE)
      at = i;
  return at;
}

value net_layer (net *n, const char *name, compute *c, const source from[LAYER_OPERANDS],
                 extent e) {
  operand o[COMPUTE_MOST_OPERANDS];
  int32_t t[COMPUTE_MOST_OPERANDS];
  int count = compute_operands (c, o);
  assert (count <= LAYER_OPERANDS);
  for (int i = 0; i < count; i++)
    t[i] = tensor_of (n, from[i]);
  net_op (n, name, c, t);
  value y = net_value (n, name, t[result_of (o, count)], e.c, e.d, e.h, e.w);
  node *k = net_node (n, name, layer_back, c, y);
  for (int i = 0; k && i < count; i++)
    k->from[i] = from[i].kind == SOURCE_MADE ? from_tensor (t[i]) : from[i];
  return y;
}
