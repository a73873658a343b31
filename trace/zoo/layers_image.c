/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution, pooling, batch norm and concatenation. */
#include <stdio.h>

#include "trace/zoo/layers.h"

/* ---- convolution ---- */

static value conv_op (net *n, const char *layer, value x, compute *c, bool bias) {
  const char *name = net_name (n, layer);
  compute_conv *s = &c->conv;
  if (s->out_d < 1 || s->out_h < 1 || s->out_w < 1) {
    net_fail (n, "nothing is left of the image at %s: give a larger --image", name);
    return 0;
  }
  s->batch = n->batch;
  s->groups = 1;
  s->bias = bias;
  int64_t weights = s->in_channels * s->out_channels * s->kernel_d * s->kernel_h * s->kernel_w;
  param w = net_param (n, name, "weight", weights);
  param b = bias ? net_param (n, name, "bias", s->out_channels) : NO_PARAM;
  source from[LAYER_OPERANDS] = { from_value (x), from_param (w), from_param (b) };
  return net_layer (n, name, c, from, (extent){ s->out_channels, s->out_d, s->out_h, s->out_w });
}

static int64_t shrunk (int64_t in, window w) {
  int64_t span = in + 2 * w.pad - w.kernel;
  return span < 0 ? 0 : span / w.stride + 1;
}

static compute_conv conv_shape (net *n, value x, int64_t channels, window w) {
  const value_info *i = net_at (n, x);
  bool deep = i->d > 1;
  window depth = deep ? w : (window){ 1, 1, 0 };
  return (compute_conv){ .in_channels = i->c,
                         .out_channels = channels,
                         .in_d = i->d,
                         .in_h = i->h,
                         .in_w = i->w,
                         .out_d = shrunk (i->d, depth),
                         .out_h = shrunk (i->h, w),
                         .out_w = shrunk (i->w, w),
                         .kernel_d = depth.kernel,
                         .kernel_h = w.kernel,
                         .kernel_w = w.kernel,
                         .stride_d = depth.stride,
                         .stride_h = w.stride,
                         .stride_w = w.stride,
                         .pad_d = depth.pad,
                         .pad_h = w.pad,
                         .pad_w = w.pad };
}

value conv (net *n, const char *name, value x, int64_t channels, window w, bool bias) {
  compute c = { .kind = COMPUTE_conv_fwd };
  c.conv = conv_shape (n, x, channels, w);
  return conv_op (n, name, x, &c, bias);
}

value conv_flat (net *n, const char *name, value x, int64_t channels, int64_t kernel_h,
                 int64_t kernel_w) {
  compute c = { .kind = COMPUTE_conv_fwd };
  c.conv = conv_shape (n, x, channels, (window){ 1, 1, 0 });
  c.conv.kernel_h = kernel_h;
  c.conv.kernel_w = kernel_w;
  c.conv.pad_h = kernel_h / 2;
  c.conv.pad_w = kernel_w / 2;
  return conv_op (n, name, x, &c, false);
}

static int64_t widened (int64_t in, window w) {
  return (in - 1) * w.stride - 2 * w.pad + w.kernel;
}

value deconv (net *n, const char *name, value x, int64_t channels, window w, bool bias) {
  compute c = { .kind = COMPUTE_deconv_fwd };
  const value_info *i = net_at (n, x);
  c.conv = conv_shape (n, x, channels, w);
  if (i->d > 1)
    c.conv.out_d = widened (i->d, w);
  c.conv.out_h = widened (i->h, w);
  c.conv.out_w = widened (i->w, w);
  return conv_op (n, name, x, &c, bias);
}

/* ---- pooling ---- */

/* With ceil, a last window that is only partly inside counts too, if it begins inside. */
static int64_t pooled (int64_t in, window w, bool ceil) {
  int64_t out = shrunk (in, w);
  if (ceil && (out - 1) * w.stride + w.kernel < in + 2 * w.pad && out * w.stride < in + w.pad)
    out++;
  return out;
}

static value pool_op (net *n, const char *layer, value x, compute *c) {
  const char *name = net_name (n, layer);
  compute_pool *s = &c->pool;
  if (s->out_d < 1 || s->out_h < 1 || s->out_w < 1) {
    net_fail (n, "nothing is left of the image at %s: give a larger --image", name);
    return 0;
  }
  source from[LAYER_OPERANDS] = { from_value (x) };
  return net_layer (n, name, c, from, (extent){ s->channels, s->out_d, s->out_h, s->out_w });
}

static compute pool_of (net *n, compute_kind kind, value x) {
  const value_info *i = net_at (n, x);
  compute c = { .kind = kind };
  c.pool = (compute_pool){
    .batch = n->batch, .channels = i->c, .in_d = i->d, .in_h = i->h, .in_w = i->w
  };
  return c;
}

static value windowed (net *n, compute_kind kind, const char *name, value x, window w, bool ceil) {
  compute c = pool_of (n, kind, x);
  compute_pool *s = &c.pool;
  window depth = s->in_d > 1 ? w : (window){ 1, 1, 0 };
  s->out_d = pooled (s->in_d, depth, ceil);
  s->out_h = pooled (s->in_h, w, ceil);
  s->out_w = pooled (s->in_w, w, ceil);
  s->kernel_d = depth.kernel;
  s->stride_d = depth.stride;
  s->pad_d = depth.pad;
  s->kernel_h = s->kernel_w = w.kernel;
  s->stride_h = s->stride_w = w.stride;
  s->pad_h = s->pad_w = w.pad;
  return pool_op (n, name, x, &c);
}

value maxpool (net *n, const char *name, value x, window w, bool ceil) {
  return windowed (n, COMPUTE_maxpool_fwd, name, x, w, ceil);
}

value avgpool (net *n, const char *name, value x, window w) {
  return windowed (n, COMPUTE_avgpool_fwd, name, x, w, false);
}

value adaptive (net *n, const char *name, value x, int64_t edge) {
  if (net_at (n, x)->h == edge && net_at (n, x)->w == edge)
    return x;
  compute c = pool_of (n, COMPUTE_adaptive_fwd, x);
  c.pool.out_d = c.pool.in_d;
  c.pool.out_h = c.pool.out_w = edge;
  return pool_op (n, name, x, &c);
}

value crop (net *n, const char *name, value x, value like) {
  const value_info *i = net_at (n, like);
  compute c = pool_of (n, COMPUTE_crop_fwd, x);
  c.pool.out_d = i->d;
  c.pool.out_h = i->h;
  c.pool.out_w = i->w;
  if (i->d == c.pool.in_d && i->h == c.pool.in_h && i->w == c.pool.in_w)
    return x;
  return pool_op (n, name, x, &c);
}

/* ---- batch norm ---- */

value batchnorm (net *n, const char *layer, value x, bool affine, int64_t eps_ppt) {
  const char *name = net_name (n, layer);
  const value_info i = *net_at (n, x);
  compute c = { .kind = COMPUTE_batchnorm_fwd };
  c.batchnorm = (compute_batchnorm){ .batch = n->batch,
                                     .channels = i.c,
                                     .inner = i.d * i.h * i.w,
                                     .affine = affine,
                                     .eps_ppt = eps_ppt,
                                     .momentum_ppm = 100000 };
  param w = affine ? net_param (n, name, "weight", i.c) : NO_PARAM;
  param b = affine ? net_param (n, name, "bias", i.c) : NO_PARAM;
  int32_t mean = net_state (n, name, "running_mean", i.c);
  int32_t variance = net_state (n, name, "running_var", i.c);
  source from[LAYER_OPERANDS] = { from_value (x), from_param (w), from_param (b),
                                  from_tensor (mean), from_tensor (variance) };
  return net_layer (n, name, &c, from, (extent){ i.c, i.d, i.h, i.w });
}

/* ---- concatenation ---- */

static void concat_back (net *n, const node *k) {
  bool alone;
  int32_t t[COMPUTE_MOST_OPERANDS] = { net_take (n, k->out, &alone) };
  if (t[0] == NO_TENSOR)
    return;
  compute c = k->c;
  c.kind = COMPUTE_concat_bwd;
  int64_t count = c.concat.sizes_count;
  for (int64_t i = 0; i < count; i++)
    t[1 + i] = MADE;
  net_op (n, k->name, &c, t);
  for (int64_t i = 0; i < count; i++)
    net_give (n, k->list[i], t[1 + i]);
}

/* More than one op may list: pieces are joined, then these. */
static value concat_of_pieces (net *n, const char *layer, const value *x, int count) {
  int pieces = (count + COMPUTE_MOST_LIST - 1) / COMPUTE_MOST_LIST;
  value *joined = NEW (n->a, pieces, value, n->err);
  if (joined == NULL) {
    n->failed = true;
    return 0;
  }
  for (int i = 0; i < pieces; i++) {
    char name[64];
    int from = i * COMPUTE_MOST_LIST, left = count - from;
    snprintf (name, sizeof name, "%s.piece%d", layer, i);
    joined[i] = concat (n, name, x + from, left < COMPUTE_MOST_LIST ? left : COMPUTE_MOST_LIST);
  }
  return concat (n, layer, joined, pieces);
}

value concat (net *n, const char *layer, const value *x, int count) {
  if (count > COMPUTE_MOST_LIST)
    return concat_of_pieces (n, layer, x, count);
  const char *name = net_name (n, layer);
  const value_info first = *net_at (n, x[0]);
  compute c = { .kind = COMPUTE_concat_fwd };
  c.concat = (compute_concat){ .batch = n->batch, .outer = 1, .sizes_count = count };
  int32_t t[COMPUTE_MOST_OPERANDS];
  value *list = NEW (n->a, count, value, n->err);
  if (list == NULL) {
    n->failed = true;
    return 0;
  }
  int64_t sum = 0;
  for (int i = 0; i < count; i++) {
    t[i] = net_tensor (n, x[i]);
    list[i] = x[i];
    c.concat.sizes[i] = net_size (n, x[i]);
    sum += c.concat.sizes[i];
  }
  t[count] = MADE;
  net_op (n, name, &c, t);
  int64_t inner = first.d * first.h * first.w;
  value y = net_value (n, name, t[count], sum / inner, first.d, first.h, first.w);
  node *k = net_node (n, name, concat_back, &c, y);
  if (k != NULL)
    k->list = list;
  return y;
}
