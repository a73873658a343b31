/* Convolution, pooling, batch norm and concatenation. */
#include "trace/zoo/layers.h"

/* ---- convolution ---- */

static void bias_back (net *n, const char *name, param b, int32_t dy, int64_t outer,
                       int64_t channels, int64_t inner) {
  if (!net_param_wanted (n, b))
    return;
  compute c = { .kind = COMPUTE_bias_bwd };
  c.bias = (compute_bias){ n->batch, outer, channels, inner, 0 };
  int32_t t[] = { dy, net_param_gradient (n, b, &c.bias.accumulate) };
  net_op (n, name, &c, t);
  net_param_give (n, b, t[1]);
}

/* The weights' gradient first: then the input may go before its gradient comes. */
static void conv_back (net *n, const node *k) {
  bool alone, transposed = k->c.kind == COMPUTE_deconv_fwd;
  int32_t dy = net_take (n, k->out, &alone);
  if (dy == NO_TENSOR)
    return;
  compute c = k->c;
  const compute_conv *s = &k->c.conv;
  bias_back (n, k->name, k->b, dy, 1, s->out_channels, s->out_d * s->out_h * s->out_w);
  c.conv.bias = 0;
  if (net_param_wanted (n, k->w)) {
    c.kind = transposed ? COMPUTE_deconv_bwd_weights : COMPUTE_conv_bwd_weights;
    int32_t t[] = { net_tensor (n, k->in[0]), dy,
                    net_param_gradient (n, k->w, &c.conv.accumulate) };
    net_op (n, k->name, &c, t);
    net_param_give (n, k->w, t[2]);
  }
  if (net_wants (n, k->in[0])) {
    c.kind = transposed ? COMPUTE_deconv_bwd_data : COMPUTE_conv_bwd_data;
    c.conv.accumulate = 0;
    int32_t t[] = { dy, net_param_tensor (n, k->w), NEW };
    net_op (n, k->name, &c, t);
    net_give (n, k->in[0], t[2]);
  }
}

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
  param w = net_param (n, net_name (n, arena_format (n->a, n->err, "%s.weight", layer)), weights);
  param b = NO_PARAM;
  if (bias)
    b = net_param (n, net_name (n, arena_format (n->a, n->err, "%s.bias", layer)),
                   s->out_channels);
  int32_t t[] = { net_tensor (n, x), net_param_tensor (n, w), net_param_tensor (n, b), NEW };
  net_op (n, name, c, t);
  value y = net_value (n, name, t[3], s->out_channels, s->out_d, s->out_h, s->out_w);
  node *k = net_node (n, name, conv_back, c, y);
  if (k != NULL) {
    k->in[0] = x;
    k->w = w;
    k->b = b;
  }
  return y;
}
