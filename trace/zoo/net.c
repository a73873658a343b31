/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/zoo/net.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace/roofline.h"

/* Column buffers of a convolution that is done as a matrix product: as many images as fit in here.
 */
#define WORKSPACE_BYTES ((int64_t)256 << 20)

/* ---- making and failing ---- */

bool net_fail (net *n, const char *format, ...) {
  char text[400];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  n->failed = true;
  return error_set (n->err, ERR_usage, "%s: %s", n->r->name, text);
}

static void *grown (net *n, void *things, int64_t *capacity, int64_t need, size_t size) {
  if (n->failed)
    return things;
  void *moved = arena_grow (n->a, things, capacity, need, size, n->err);
  if (moved == NULL)
    n->failed = true;
  return moved != NULL ? moved : things;
}

/* Is there room for `need` things in that array of the net? */
#define ROOM(n, array, need) \
  ((n)->array = grown (n, (n)->array, &(n)->array##_room, need, sizeof *(n)->array), !(n)->failed)

/* Number 0 of values, params and nodes is what a failed call returns. */
net *net_new (const zoo_request *r, const zoo_network *network, arena *a, error *err) {
  net *n = NEW (a, 1, net, err);
  if (n == NULL)
    return NULL;
  n->a = a;
  n->err = err;
  n->r = r;
  n->scope = "";
  n->batch = r->batch;
  n->image = r->image > 0 ? r->image : network->image;
  n->seq = r->seq > 0 ? r->seq : network->seq;
  const char *name = arena_format (a, err, "%s-b%lld", r->name, (long long)r->batch);
  if (name == NULL)
    return NULL;
  n->b = build_new (a, name, r->batch, err);
  if (n->b == NULL || !ROOM (n, values, 64) || !ROOM (n, params, 64) || !ROOM (n, nodes, 64))
    return NULL;
  n->values[0] = (value_info){ "", NO_TENSOR, NO_TENSOR, 1, 1, 1, 1, false };
  n->params[0] = (param_info){ .name = "", .tensor = NO_TENSOR, .gradient = NO_TENSOR };
  n->n_values = n->n_params = n->n_nodes = 1;
  return n;
}

trace *net_finish (net *n, error *err) {
  if (n->failed && !build_failed (n->b))
    return NULL; /* else the builder tells */
  for (int64_t i = 0; i < n->n_losses; i++)
    build_tensor_at (n->b, n->losses[i])->dies_after = build_ops (n->b) - 1;
  return build_finish (n->b, err);
}

/* ---- names and sizes ---- */

static const char *joined (net *n, const char *front, const char *between, const char *back) {
  const char *name = arena_format (n->a, n->err, "%s%s%s", front, between, back);
  if (name == NULL)
    n->failed = true;
  return name != NULL ? name : "";
}

void net_scope (net *n, const char *format, ...) {
  char text[200];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  const char *copy = arena_string (n->a, text, n->err);
  if (copy == NULL)
    n->failed = true;
  else
    n->scope = copy;
}

void net_scope_end (net *n) {
  n->scope = "";
}

const char *net_join (net *n, const char *front, const char *back) {
  return joined (n, front, ".", back);
}

const char *net_name (net *n, const char *layer) {
  return joined (n, n->scope, "", layer);
}

static int64_t divided (int64_t number, int64_t divisor) {
  int64_t part = divisor > 1 ? number / divisor : number;
  return part > 0 ? part : 1;
}

int64_t net_thin (const net *n, int64_t channels) {
  return divided (channels, n->r->width_divisor);
}

int64_t net_few (const net *n, int64_t blocks) {
  return divided (blocks, n->r->depth_divisor);
}

/* ---- values ---- */

value_info *net_at (net *n, value v) {
  return &n->values[v];
}

int64_t net_size (net *n, value v) {
  const value_info *i = &n->values[v];
  return i->c * i->d * i->h * i->w;
}

int32_t net_tensor (net *n, value v) {
  return n->values[v].tensor;
}

value net_value (net *n, const char *name, int32_t tensor, int64_t c, int64_t d, int64_t h,
                 int64_t w) {
  if (!ROOM (n, values, n->n_values + 1))
    return 0;
  n->values[n->n_values] = (value_info){ name, tensor, NO_TENSOR, c, d, h, w, false };
  return (value)n->n_values++;
}

value net_reshape (net *n, value v, int64_t c, int64_t d, int64_t h, int64_t w) {
  value_info *i = &n->values[v];
  assert (v == 0 || c * d * h * w == net_size (n, v));
  i->c = c;
  i->d = d;
  i->h = h;
  i->w = w;
  return v;
}

static int32_t input_tensor (net *n, const char *name, int64_t bytes) {
  int32_t t = build_tensor (n->b, name, bytes, TENSOR_INPUT);
  build_tensor_at (n->b, t)->born_before = 0;
  build_tensor_at (n->b, t)->split = true;
  return t;
}

value net_input (net *n, const char *name, int64_t c, int64_t d, int64_t h, int64_t w) {
  if (n->failed)
    return 0;
  int64_t bytes = n->batch * c * d * h * w * compute_element_bytes (n->r->dtype, DATA);
  return net_value (n, name, input_tensor (n, name, bytes), c, d, h, w);
}

value net_tokens (net *n, const char *name, int64_t rows) {
  if (n->failed)
    return 0;
  int64_t bytes = n->batch * rows * compute_element_bytes (n->r->dtype, INDEX);
  return net_value (n, name, input_tensor (n, name, bytes), 1, 1, rows, 1);
}

/* ---- parameters ---- */

param net_param (net *n, const char *layer, const char *part, int64_t elements) {
  if (n->sharing)
    return n->shared_param < n->n_params ? n->shared_param++ : 0;
  const char *name = joined (n, layer, ".", part);
  if (!ROOM (n, params, n->n_params + 1))
    return 0;
  int64_t bytes = elements * compute_element_bytes (n->r->dtype, DATA);
  int32_t t = build_tensor (n->b, name, bytes, TENSOR_PARAMETER);
  n->params[n->n_params] = (param_info){ .name = name,
                                         .tensor = t,
                                         .gradient = NO_TENSOR,
                                         .state = { NO_TENSOR, NO_TENSOR, NO_TENSOR },
                                         .elements = elements };
  return (param)n->n_params++;
}

int32_t net_param_tensor (net *n, param p) {
  return p == NO_PARAM ? NO_TENSOR : n->params[p].tensor;
}

bool net_param_wanted (net *n, param p) {
  return p != NO_PARAM && !n->params[p].frozen;
}

int32_t net_param_gradient (net *n, param p, int64_t *accumulate) {
  int32_t gradient = n->params[p].gradient;
  *accumulate = gradient != NO_TENSOR;
  return gradient != NO_TENSOR ? gradient : MADE;
}

void net_param_give (net *n, param p, int32_t tensor) {
  n->params[p].gradient = tensor;
}

int32_t net_state (net *n, const char *layer, const char *part, int64_t elements) {
  if (n->failed)
    return NO_TENSOR;
  if (n->sharing)
    return n->states[n->shared_state++];
  if (!ROOM (n, states, n->n_states + 1))
    return NO_TENSOR;
  int32_t t = build_tensor (n->b, joined (n, layer, ".", part), elements * 4, TENSOR_OPTIMIZER);
  n->states[n->n_states++] = t;
  return t;
}

void net_share (net *n, param from_param, int64_t from_state) {
  n->sharing = from_param > 0;
  n->shared_param = from_param;
  n->shared_state = from_state;
}

/* ---- ops ---- */

static int64_t workspace_bytes (const compute *c, int64_t batch) {
  const compute_conv *s = &c->conv;
  bool transposed = c->kind >= COMPUTE_deconv_fwd && c->kind <= COMPUTE_deconv_bwd_weights;
  if (!transposed && !(c->kind >= COMPUTE_conv_fwd && c->kind <= COMPUTE_conv_bwd_weights))
    return 0;
  int64_t kernel = s->kernel_d * s->kernel_h * s->kernel_w;
  if (kernel == 1 && s->stride_d * s->stride_h * s->stride_w == 1)
    return 0; /* a matrix product as it stands */
  int64_t rows = (transposed ? s->out_channels : s->in_channels) * kernel;
  int64_t columns = transposed ? s->in_d * s->in_h * s->in_w : s->out_d * s->out_h * s->out_w;
  int64_t image_bytes = rows * columns * compute_element_bytes (c->dtype, DATA);
  int64_t images = WORKSPACE_BYTES / image_bytes;
  return image_bytes * (images < 1 ? 1 : images > batch ? batch : images);
}

/* number: of the tensor among the op's that have one name; < 0: it has its own. */
static void make_tensor (net *n, const char *name, const operand *o, int number, int32_t *tensor) {
  tensor_kind kind = n->phase == OP_FORWARD ? TENSOR_ACTIVATION : TENSOR_GRADIENT;
  if (o->elements <= 0 || o->bytes > MOST_TENSOR_BYTES) {
    net_fail (n, "%s.%s would have %lld elements: another image, sequence or batch is needed", name,
              o->name, (long long)o->elements);
    return;
  }
  const char *full = joined (n, name, ".", o->name);
  if (number >= 0 && !n->failed) {
    char text[16];
    snprintf (text, sizeof text, "%d", number);
    full = joined (n, full, "", text);
  }
  *tensor = build_tensor (n->b, full, o->bytes, kind);
  build_tensor_at (n->b, *tensor)->split = o->item;
}

void net_op (net *n, const char *name, compute *c, int32_t *tensors) {
  operand operands[COMPUTE_MOST_OPERANDS];
  c->dtype = n->r->dtype;
  if (n->failed)
    return;
  int count = compute_operands (c, operands);
  for (int i = 0; i < count && !n->failed; i++)
    if (operands[i].use == WRITE && tensors[i] == MADE)
      make_tensor (n, name, &operands[i], c->kind == COMPUTE_concat_bwd ? i - 1 : -1, &tensors[i]);
  int64_t ns = 0;
  if (n->failed)
    return;
  const char *text = compute_text (c, n->a, n->err);
  if (text == NULL || !roofline_ns (n->r->device, c, &ns, n->err)) {
    n->failed = true;
    return;
  }
  int32_t at = build_op (n->b, joined (n, name, ".", compute_kind_names[c->kind]), n->phase, ns);
  op *o = build_op_at (n->b, at);
  o->parts = compute_parts (c);
  if (n->r->workspaces)
    o->workspace_bytes = workspace_bytes (c, n->batch);
  build_compute (n->b, text);
  for (int i = 0; i < count; i++) {
    const operand *p = &operands[i];
    if (p->use == ABSENT)
      continue;
    assert (build_failed (n->b) ||
            (tensors[i] >= 0 && build_tensor_at (n->b, tensors[i])->bytes == p->bytes));
    if (operand_reads (p))
      build_read (n->b, tensors[i]);
    if (p->use == SIDE)
      build_side (n->b, tensors[i]);
    else if (operand_writes (p))
      build_write (n->b, tensors[i]);
  }
}

int64_t net_draw (net *n, int64_t size) {
  int64_t first = n->random_numbers;
  if (__builtin_mul_overflow (size, n->batch, &size) ||
      __builtin_add_overflow (first, size, &n->random_numbers))
    net_fail (n, "a batch of %lld draws too many random numbers", (long long)n->batch);
  return first;
}

node *net_node (net *n, const char *name, void (*back) (net *n, const node *k), const compute *c,
                value out) {
  if (!ROOM (n, nodes, n->n_nodes + 1))
    return NULL;
  node *k = &n->nodes[n->n_nodes++];
  *k = (node){ .back = back, .name = name, .c = *c, .out = out };
  n->values[out].wants_gradient = true;
  return k;
}

/* ---- gradients ---- */

/* Good until another tensor is made. */
static int32_t *users_of (net *n, int32_t tensor) {
  int64_t before = n->users_room;
  if (tensor < 0 || !ROOM (n, users, build_tensors (n->b)))
    return NULL;
  if (n->users_room > before)
    memset (n->users + before, 0, (size_t)(n->users_room - before) * sizeof *n->users);
  return &n->users[tensor];
}

bool net_wants (net *n, value v) {
  return n->values[v].wants_gradient;
}

int32_t net_take (net *n, value v, bool *alone) {
  int32_t gradient = n->values[v].gradient;
  n->values[v].gradient = NO_TENSOR;
  int32_t *users = gradient == NO_TENSOR ? NULL : users_of (n, gradient);
  if (users != NULL)
    *alone = --*users == 0;
  return n->failed ? NO_TENSOR : gradient;
}

void net_give (net *n, value v, int32_t tensor) {
  int32_t *users = users_of (n, tensor);
  if (users == NULL || !net_wants (n, v))
    return;
  value_info *i = &n->values[v];
  if (i->gradient == NO_TENSOR) {
    i->gradient = tensor;
    ++*users;
    return;
  }
  /* The sum stands where one of the two was, if nobody else needs that one. */
  int32_t *old_users = users_of (n, i->gradient);
  if (old_users == NULL)
    return;
  bool onto_old = *old_users == 1, onto_new = !onto_old && *users == 0;
  compute c = { .kind = COMPUTE_add };
  c.map = (compute_map){ n->batch, net_size (n, v), onto_old || onto_new };
  int32_t t[] = { onto_new ? tensor : i->gradient, onto_new ? i->gradient : tensor,
                  onto_old || onto_new ? NO_TENSOR : MADE };
  net_op (n, joined (n, i->name, ".", "gradient"), &c, t);
  if (n->failed)
    return;
  int32_t sum = onto_old || onto_new ? t[0] : t[2];
  --*users_of (n, n->values[v].gradient);
  int32_t *sum_users = users_of (n, sum);
  if (sum_users != NULL)
    ++*sum_users;
  n->values[v].gradient = sum;
}

void net_give_both (net *n, value a, value b, int32_t tensor) {
  int32_t *users = users_of (n, tensor);
  if (users == NULL)
    return;
  ++*users; /* or the first sum could be made in it */
  net_give (n, a, tensor);
  users = users_of (n, tensor);
  if (users == NULL)
    return;
  --*users;
  net_give (n, b, tensor);
}

void net_loss (net *n, int32_t tensor) {
  if (tensor >= 0 && ROOM (n, losses, n->n_losses + 1))
    n->losses[n->n_losses++] = tensor;
}

void net_backward (net *n, int64_t down_to) {
  op_phase before = n->phase;
  n->phase = OP_BACKWARD;
  while (n->n_nodes > (down_to < 1 ? 1 : down_to) && !n->failed) {
    node k = n->nodes[--n->n_nodes];
    k.back (n, &k);
  }
  n->phase = before;
}

/* ---- update ---- */

/* The usual settings of each; they matter to nobody but the executor. */
static compute update_of (const net *n, int64_t elements) {
  static const compute_kind kinds[ZOO_OPTIMIZERS] = { COMPUTE_sgd, COMPUTE_momentum, COMPUTE_adam };
  compute c = { .kind = kinds[n->r->optimizer] };
  c.update = (compute_update){ .count = elements, .rate_ppb = 10000000 };
  c.update.master = n->r->dtype == DTYPE_BF16;
  if (n->r->optimizer == ZOO_MOMENTUM)
    c.update.momentum_ppm = 900000;
  if (n->r->optimizer == ZOO_ADAM) {
    c.update.rate_ppb = 1000000;
    c.update.beta1_ppm = 900000;
    c.update.beta2_ppm = 999000;
    c.update.eps_ppt = 10000;
  }
  return c;
}

static void update_param (net *n, param_info *p) {
  static const char *const states[] = { "main", "m", "v" };
  compute c = update_of (n, p->elements);
  bool needed[] = { c.update.master != 0, c.kind == COMPUTE_adam, c.kind != COMPUTE_sgd };
  for (int i = 0; i < 3; i++)
    if (needed[i] && p->state[i] == NO_TENSOR && !n->failed)
      p->state[i] = build_tensor (n->b, joined (n, p->name, ".", states[i]), p->elements * 4,
                                  TENSOR_OPTIMIZER);
  int32_t adam[] = { p->tensor, p->gradient, p->state[0], p->state[1], p->state[2] };
  int32_t other[] = { p->tensor, p->gradient, p->state[0], p->state[2] };
  net_op (n, p->name, &c, c.kind == COMPUTE_adam ? adam : other);
  p->gradient = NO_TENSOR;
}

void net_update (net *n, param from, param to) {
  op_phase before = n->phase;
  n->phase = OP_UPDATE;
  int64_t end = to < 0 ? n->n_params : to;
  for (int64_t i = from < 1 ? 1 : from; i < end && !n->failed; i++)
    if (n->params[i].gradient != NO_TENSOR)
      update_param (n, &n->params[i]);
  n->phase = before;
}
