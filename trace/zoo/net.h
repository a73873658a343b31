/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A network while it is built: values and parameters, the ops so far, and the way back through
   them. Layers (layers.h) append forward ops and leave a node; net_backward walks the nodes in
   reverse, and each appends its backward ops.  A failure is remembered; everything after it does
   nothing, and net_finish tells it. */
#pragma once

#include "trace/build.h"
#include "trace/compute.h"
#include "trace/zoo/zoo.h"

typedef int32_t value; /* flows between layers: a tensor and its gradient */
typedef int32_t param;

enum { MADE = -1, NO_TENSOR = -1, NO_PARAM = -1 };

/* Images are c x d x h x w for each item; sequences are h rows of c elements. */
typedef struct value_info {
  const char *name;
  int32_t tensor, gradient;
  int64_t c, d, h, w;
  bool wants_gradient;
} value_info;

typedef struct param_info {
  const char *name;
  int32_t tensor, gradient, state[3]; /* main, m, v */
  int64_t elements;
  bool frozen; /* its gradient is not wanted */
} param_info;

typedef struct net net;

typedef enum source_kind { SOURCE_MADE, SOURCE_VALUE, SOURCE_PARAM, SOURCE_TENSOR } source_kind;

/* The meaning of an operand of a layer's op; those that are not named the op makes. */
typedef struct source {
  source_kind kind;
  int32_t index;
} source;

enum { LAYER_OPERANDS = 8 };

static inline source from_value (value v) {
  return (source){ SOURCE_VALUE, v };
}
static inline source from_param (param p) {
  return (source){ SOURCE_PARAM, p };
}
static inline source from_tensor (int32_t tensor) {
  return (source){ SOURCE_TENSOR, tensor };
}

typedef struct extent {
  int64_t c, d, h, w;
} extent;

/* One layer on the way back.  What a field holds is the layer's affair. */
typedef struct node {
  void (*back) (net *n, const struct node *k);
  const char *name;
  compute c; /* of the forward op */
  value in[4], out, second;
  int32_t saved[4];
  const value *list;
  source from[LAYER_OPERANDS]; /* of net_layer */
} node;

struct net {
  arena *a;
  error *err;
  trace_builder *b;
  const zoo_request *r;
  int64_t batch, image, seq, classes;
  int variant; /* the network, of its family */
  bool failed;
  op_phase phase;
  const char *scope; /* "" or the front of the names of layers, ending with a dot */
  value_info *values;
  param_info *params;
  node *nodes;
  int32_t *users; /* of a gradient's tensor: values whose gradient it is */
  int64_t n_values, n_params, n_nodes;
  int64_t values_room, params_room, nodes_room, users_room;
  int64_t random_numbers; /* drawn so far in the step */
  int32_t *states;        /* of net_state, in order */
  int64_t n_states, states_room;
  bool sharing;
  param shared_param;
  int64_t shared_state;
  int32_t *losses;
  int64_t n_losses, losses_room;
};

net *net_new (const zoo_request *r, const zoo_network *network, arena *a, error *err) MUST_CHECK;
trace *net_finish (net *n, error *err) MUST_CHECK;

bool net_fail (net *n, const char *format, ...) PRINTF_LIKE (2, 3);
/* Names of layers from here on begin with this. */
void net_scope (net *n, const char *format, ...) PRINTF_LIKE (2, 3);
void net_scope_end (net *n);
const char *net_name (net *n, const char *layer);
/* front.back */
const char *net_join (net *n, const char *front, const char *back);

/* Divided as the request says, never below one. */
int64_t net_thin (const net *n, int64_t channels);
int64_t net_few (const net *n, int64_t blocks);

value net_value (net *n, const char *name, int32_t tensor, int64_t c, int64_t d, int64_t h,
                 int64_t w);
/* Never NULL; valid until the next value. */
value_info *net_at (net *n, value v);
int64_t net_size (net *n, value v);
int32_t net_tensor (net *n, value v);
/* The same tensor seen in other dimensions. */
value net_reshape (net *n, value v, int64_t c, int64_t d, int64_t h, int64_t w);
/* Data from outside: images or vectors, and whole numbers below some limit. */
value net_input (net *n, const char *name, int64_t c, int64_t d, int64_t h, int64_t w);
value net_tokens (net *n, const char *name, int64_t rows);

/* Its name is layer.part. */
param net_param (net *n, const char *layer, const char *part, int64_t elements);
int32_t net_param_tensor (net *n, param p);
bool net_param_wanted (net *n, param p);
/* The place for the parameter's gradient: MADE, or the tensor to add to. */
int32_t net_param_gradient (net *n, param p, int64_t *accumulate);
void net_param_give (net *n, param p, int32_t tensor);
int32_t net_state (net *n, const char *layer, const char *part,
                   int64_t elements); /* fp32, lives across steps */

/* From here on, layers that make parameters and states are given those from these numbers on, in
   order: the same network once more.  0: no longer. */
void net_share (net *n, param from_param, int64_t from_state);

/* Appends the op.  tensors[i] stands for operand i: MADE is made and put there, NO_TENSOR where
 * absent. */
void net_op (net *n, const char *name, compute *c, int32_t *tensors);
/* Takes `size` random numbers for each item; the number of the first. */
int64_t net_draw (net *n, int64_t size);

/* A node for the way back; NULL when that has failed or nothing before it wants a gradient. */
node *net_node (net *n, const char *name, void (*back) (net *n, const node *k), const compute *c,
                value out);

/* A layer of one op, whose way back are the kinds that compute.def tells. Its value is what the op
   makes first, or changes where it makes nothing. */
value net_layer (net *n, const char *name, compute *c, const source from[LAYER_OPERANDS], extent e);

/* The gradient that has arrived at a value: NO_TENSOR where none has.  *alone: no one else needs
   that tensor, it may be overwritten. */
int32_t net_take (net *n, value v, bool *alone);
bool net_wants (net *n, value v);
/* This tensor is (a part of the sum that is) the gradient of the value. */
void net_give (net *n, value v, int32_t tensor);
/* One tensor is the gradient of two values. */
void net_give_both (net *n, value a, value b, int32_t tensor);
/* A tensor that net_op made becomes a loss: it is kept to the end of the step. */
void net_loss (net *n, int32_t tensor);

/* Walks back over the nodes from the newest to number `down_to`, which go. */
void net_backward (net *n, int64_t down_to);
/* Updates the parameters [from, to) that have a gradient; to < 0: all. */
void net_update (net *n, param from, param to);
