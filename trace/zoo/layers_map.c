/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that work element by element, and the losses. */
#include "trace/zoo/layers.h"

enum { SEED = 20240229 }; /* of every random number of a step; any other would do */

static value map_op (net *n, const char *layer, value x, compute *c) {
  const value_info i = *net_at (n, x);
  source from[LAYER_OPERANDS] = { from_value (x) };
  return net_layer (n, net_name (n, layer), c, from, (extent){ i.c, i.d, i.h, i.w });
}

value relu (net *n, const char *name, value x, int64_t slope_ppm) {
  compute c = { .kind = COMPUTE_relu_fwd };
  c.relu = (compute_relu){ n->batch, net_size (n, x), slope_ppm, 1 };
  return map_op (n, name, x, &c);
}

value tanh_layer (net *n, const char *name, value x) {
  compute c = { .kind = COMPUTE_tanh_fwd };
  c.map = (compute_map){ n->batch, net_size (n, x), 0 };
  return map_op (n, name, x, &c);
}

value sigmoid (net *n, const char *name, value x) {
  compute c = { .kind = COMPUTE_sigmoid_fwd };
  c.map = (compute_map){ n->batch, net_size (n, x), 0 };
  return map_op (n, name, x, &c);
}

value gelu (net *n, const char *name, value x, bool tanh) {
  compute c = { .kind = COMPUTE_gelu_fwd };
  c.gelu = (compute_gelu){ n->batch, net_size (n, x), tanh, 0 };
  return map_op (n, name, x, &c);
}

value dropout (net *n, const char *name, value x, int64_t rate_ppm) {
  if (rate_ppm == 0)
    return x;
  compute c = { .kind = COMPUTE_dropout_fwd };
  c.dropout = (compute_dropout){ .batch = n->batch,
                                 .size = net_size (n, x),
                                 .rate_ppm = rate_ppm,
                                 .seed = SEED,
                                 .offset = net_draw (n, net_size (n, x)) };
  return map_op (n, name, x, &c);
}

value swiglu (net *n, const char *layer, value gate, value up) {
  const value_info i = *net_at (n, gate);
  compute c = { .kind = COMPUTE_swiglu_fwd };
  c.map = (compute_map){ n->batch, net_size (n, gate), 0 };
  source from[LAYER_OPERANDS] = { from_value (gate), from_value (up) };
  return net_layer (n, net_name (n, layer), &c, from, (extent){ i.c, i.d, i.h, i.w });
}

/* One gradient goes to both. */
static void add_back (net *n, const node *k) {
  bool alone;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy != NO_TENSOR)
    net_give_both (n, k->in[0], k->in[1], dy);
}

value add (net *n, const char *layer, value a, value b, bool in_place) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, a);
  compute c = { .kind = COMPUTE_add };
  c.map = (compute_map){ n->batch, net_size (n, a), in_place };
  int32_t t[] = { i.tensor, net_tensor (n, b), in_place ? NO_TENSOR : MADE };
  net_op (n, name, &c, t);
  value y = net_value (n, name, in_place ? i.tensor : t[2], i.c, i.d, i.h, i.w);
  node *k = net_node (n, name, add_back, &c, y);
  if (k != NULL) {
    k->in[0] = a;
    k->in[1] = b;
  }
  return y;
}

value zeros (net *n, const char *layer, int64_t size) {
  const char *name = net_name (n, layer);
  compute c = { .kind = COMPUTE_zero };
  c.map = (compute_map){ n->batch, size, 0 };
  int32_t t[] = { MADE };
  net_op (n, name, &c, t);
  return net_value (n, name, t[0], size, 1, 1, 1);
}

/* ---- losses ---- */

static void entropy_back (net *n, const node *k) {
  compute c = k->c;
  c.kind = COMPUTE_entropy_bwd;
  int32_t t[] = { k->saved[0], net_tensor (n, k->in[1]) };
  net_op (n, k->name, &c, t);
  net_give (n, k->in[0], t[0]);
}

void entropy (net *n, const char *layer, value x, value target, bool image, int64_t weight_ppm) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_entropy_fwd };
  c.entropy = (compute_entropy){ .batch = n->batch,
                                 .rows = image ? 1 : i.h,
                                 .classes = i.c,
                                 .inner = image ? i.d * i.h * i.w : 1,
                                 .weight_ppm = weight_ppm };
  int32_t t[] = { i.tensor, net_tensor (n, target), MADE, MADE };
  net_op (n, name, &c, t);
  net_loss (n, t[3]);
  node *k = net_node (n, name, entropy_back, &c, net_value (n, name, t[3], 1, 1, 1, 1));
  if (k != NULL) {
    k->in[0] = x;
    k->in[1] = target;
    k->saved[0] = t[2];
  }
}

static void binary_back (net *n, const node *k) {
  compute c = k->c;
  c.kind = COMPUTE_binary_bwd;
  int32_t t[] = { net_tensor (n, k->in[0]), MADE };
  net_op (n, k->name, &c, t);
  net_give (n, k->in[0], t[1]);
}

void binary_entropy (net *n, const char *layer, value x, bool label) {
  const char *name = net_name (n, layer);
  compute c = { .kind = COMPUTE_binary_fwd };
  c.binary = (compute_binary){ n->batch, net_size (n, x), label };
  int32_t t[] = { net_tensor (n, x), MADE };
  net_op (n, name, &c, t);
  net_loss (n, t[1]);
  node *k = net_node (n, name, binary_back, &c, net_value (n, name, t[1], 1, 1, 1, 1));
  if (k != NULL)
    k->in[0] = x;
}
