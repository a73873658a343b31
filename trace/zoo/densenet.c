/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DenseNet: every layer reads what all before it in its block have made, joined again each time. */
#include "trace/zoo/families.h"

enum { GROWTH = 32, BOTTLENECK = 4 };

static value norm_relu (net *n, const char *norm, const char *name, value x) {
  return relu (n, name, batchnorm (n, norm, x, true, EPS_5), 0);
}

static value dense_layer (net *n, const value *features, int count) {
  int64_t growth = net_thin (n, GROWTH);
  value x = count > 1 ? concat (n, "concat", features, count) : features[0];
  x = conv (n, "conv1", norm_relu (n, "norm1", "relu1", x), BOTTLENECK * growth,
            (window){ 1, 1, 0 }, false);
  return conv (n, "conv2", norm_relu (n, "norm2", "relu2", x), growth, (window){ 3, 1, 1 }, false);
}

void densenet_step (net *n) {
  static const int64_t layers[] = { 6, 12, 24, 16 };
  value features[1 + 24];
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  x = conv (n, "conv0", x, 2 * net_thin (n, GROWTH), (window){ 7, 2, 3 }, false);
  x = maxpool (n, "pool0", norm_relu (n, "norm0", "relu0", x), (window){ 3, 2, 1 }, false);
  for (int i = 0; i < 4; i++) {
    int count = 0;
    features[count++] = x;
    for (int64_t j = 0; j < net_few (n, layers[i]); j++) {
      net_scope (n, "block%d.layer%lld.", i + 1, (long long)j + 1);
      x = dense_layer (n, features, count);
      features[count++] = x;
    }
    net_scope (n, "block%d.", i + 1);
    x = norm_relu (n, "norm", "relu", concat (n, "concat", features, count));
    if (i < 3) {
      x = conv (n, "transition", x, net_at (n, x)->c / 2, (window){ 1, 1, 0 }, false);
      x = avgpool (n, "transition.pool", x, (window){ 2, 2, 0 });
    }
  }
  net_scope_end (n);
  x = adaptive (n, "avgpool", x, 1);
  classify (n, net_reshape (n, x, net_size (n, x), 1, 1, 1));
}
