/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GoogLeNet and Inception v3, as torchvision builds them: batch norm after every convolution. */
#include <stdio.h>

#include "trace/zoo/families.h"

static value normed (net *n, const char *name, value x) {
  char text[64];
  snprintf (text, sizeof text, "%s.bn", name);
  return relu (n, name, batchnorm (n, text, x, true, EPS_3), 0);
}

static value unit (net *n, const char *name, value x, int64_t channels, window w) {
  return normed (n, name, conv (n, name, x, net_thin (n, channels), w, false));
}

static value one (net *n, const char *name, value x, int64_t channels) {
  return unit (n, name, x, channels, (window){ 1, 1, 0 });
}

static value flat_unit (net *n, const char *name, value x, int64_t channels, int64_t h, int64_t w) {
  return normed (n, name, conv_flat (n, name, x, net_thin (n, channels), h, w));
}

static value pooled_features (net *n, value x) {
  x = adaptive (n, "avgpool", x, 1);
  return net_reshape (n, x, net_size (n, x), 1, 1, 1);
}

/* ---- GoogLeNet (without its auxiliary classifiers; the "5 x 5" branch has 3 x 3 kernels there)
 * ---- */

typedef struct mixture {
  const char *name;
  int64_t direct, reduce3, out3, reduce5, out5, pooled;
  window pool_after; /* kernel 0: none */
} mixture;

static const mixture mixtures[] = {
  { "3a", 64, 96, 128, 16, 32, 32, { 0 } },
  { "3b", 128, 128, 192, 32, 96, 64, { 3, 2, 0 } },
  { "4a", 192, 96, 208, 16, 48, 64, { 0 } },
  { "4b", 160, 112, 224, 24, 64, 64, { 0 } },
  { "4c", 128, 128, 256, 24, 64, 64, { 0 } },
  { "4d", 112, 144, 288, 32, 64, 64, { 0 } },
  { "4e", 256, 160, 320, 32, 128, 128, { 2, 2, 0 } },
  { "5a", 256, 160, 320, 32, 128, 128, { 0 } },
  { "5b", 384, 192, 384, 48, 128, 128, { 0 } },
};

static value mixed (net *n, const mixture *m, value x) {
  window three = { 3, 1, 1 };
  value branch[4];
  branch[0] = one (n, "branch1", x, m->direct);
  branch[1] = unit (n, "branch2b", one (n, "branch2a", x, m->reduce3), m->out3, three);
  branch[2] = unit (n, "branch3b", one (n, "branch3a", x, m->reduce5), m->out5, three);
  branch[3] = one (n, "branch4", maxpool (n, "branch4.pool", x, three, true), m->pooled);
  return concat (n, "concat", branch, 4);
}

void googlenet_step (net *n) {
  window pool = { 3, 2, 0 };
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  x = maxpool (n, "pool1", unit (n, "conv1", x, 64, (window){ 7, 2, 3 }), pool, true);
  x = unit (n, "conv3", one (n, "conv2", x, 64), 192, (window){ 3, 1, 1 });
  x = maxpool (n, "pool2", x, pool, true);
  for (size_t i = 0; i < sizeof mixtures / sizeof mixtures[0]; i++) {
    const mixture *m = &mixtures[i];
    net_scope (n, "inception%s.", m->name);
    x = mixed (n, m, x);
    if (m->pool_after.kernel > 0)
      x = maxpool (n, "pool", x, m->pool_after, true);
  }
  net_scope_end (n);
  classify (n, dropout (n, "drop", pooled_features (n, x), 200000));
}

/* ---- Inception v3; the blocks are called A to E as there ---- */

static const window same3 = { 3, 1, 1 }, halve3 = { 3, 2, 0 };

static value block_a (net *n, value x, int64_t pooled) {
  value double3 = unit (n, "dbl2", one (n, "dbl1", x, 64), 96, same3);
  value branch[4];
  branch[0] = one (n, "b1x1", x, 64);
  branch[1] = unit (n, "b5x5_2", one (n, "b5x5_1", x, 48), 64, (window){ 5, 1, 2 });
  branch[2] = unit (n, "dbl3", double3, 96, same3);
  branch[3] = one (n, "bpool", avgpool (n, "pool", x, same3), pooled);
  return concat (n, "concat", branch, 4);
}

static value block_b (net *n, value x) {
  value double3 = unit (n, "dbl2", one (n, "dbl1", x, 64), 96, same3);
  value branch[3];
  branch[0] = unit (n, "b3x3", x, 384, halve3);
  branch[1] = unit (n, "dbl3", double3, 96, halve3);
  branch[2] = maxpool (n, "pool", x, halve3, false);
  return concat (n, "concat", branch, 3);
}

static value block_c (net *n, value x, int64_t c7) {
  value seven = flat_unit (n, "b7_2", one (n, "b7_1", x, c7), c7, 1, 7);
  value twice = flat_unit (n, "dbl2", one (n, "dbl1", x, c7), c7, 7, 1);
  twice = flat_unit (n, "dbl4", flat_unit (n, "dbl3", twice, c7, 1, 7), c7, 7, 1);
  value branch[4];
  branch[0] = one (n, "b1x1", x, 192);
  branch[1] = flat_unit (n, "b7_3", seven, 192, 7, 1);
  branch[2] = flat_unit (n, "dbl5", twice, 192, 1, 7);
  branch[3] = one (n, "bpool", avgpool (n, "pool", x, same3), 192);
  return concat (n, "concat", branch, 4);
}

static value block_d (net *n, value x) {
  value seven = flat_unit (n, "b7_2", one (n, "b7_1", x, 192), 192, 1, 7);
  value branch[3];
  branch[0] = unit (n, "b3x3_2", one (n, "b3x3_1", x, 192), 320, halve3);
  branch[1] = unit (n, "b7_4", flat_unit (n, "b7_3", seven, 192, 7, 1), 192, halve3);
  branch[2] = maxpool (n, "pool", x, halve3, false);
  return concat (n, "concat", branch, 3);
}

static value block_e (net *n, value x) {
  value three = one (n, "b3x3_1", x, 384);
  value twice = unit (n, "dbl2", one (n, "dbl1", x, 448), 384, same3);
  value wide[2];
  wide[0] = flat_unit (n, "b3x3_2a", three, 384, 1, 3);
  wide[1] = flat_unit (n, "b3x3_2b", three, 384, 3, 1);
  value deep[2];
  deep[0] = flat_unit (n, "dbl3a", twice, 384, 1, 3);
  deep[1] = flat_unit (n, "dbl3b", twice, 384, 3, 1);
  value branch[4];
  branch[0] = one (n, "b1x1", x, 320);
  branch[1] = concat (n, "b3x3", wide, 2);
  branch[2] = concat (n, "dbl", deep, 2);
  branch[3] = one (n, "bpool", avgpool (n, "pool", x, same3), 192);
  return concat (n, "concat", branch, 4);
}

/* The auxiliary classifier has four tenths of the loss's weight. */
static void auxiliary (net *n, value x, value target) {
  net_scope (n, "aux.");
  x = one (n, "conv0", avgpool (n, "pool", x, (window){ 5, 3, 0 }), 128);
  x = unit (n, "conv1", x, 768, (window){ 5, 1, 0 });
  x = linear (n, "fc", pooled_features (n, x), n->classes, true);
  entropy (n, "loss", x, target, false, 400000);
  net_scope_end (n);
}

void inception_step (net *n) {
  static const int64_t pooled[] = { 32, 64, 64 }, sevens[] = { 128, 160, 160, 192 };
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  x = unit (n, "conv1a", x, 32, halve3);
  x = unit (n, "conv2a", x, 32, (window){ 3, 1, 0 });
  x = maxpool (n, "pool1", unit (n, "conv2b", x, 64, same3), halve3, false);
  x = unit (n, "conv4a", one (n, "conv3b", x, 80), 192, (window){ 3, 1, 0 });
  x = maxpool (n, "pool2", x, halve3, false);
  for (int i = 0; i < 3; i++) {
    net_scope (n, "mixed5%c.", 'b' + i);
    x = block_a (n, x, pooled[i]);
  }
  net_scope (n, "mixed6a.");
  x = block_b (n, x);
  for (int i = 0; i < 4; i++) {
    net_scope (n, "mixed6%c.", 'b' + i);
    x = block_c (n, x, sevens[i]);
  }
  net_scope_end (n);
  value target = net_tokens (n, "labels", 1);
  auxiliary (n, x, target);
  net_scope (n, "mixed7a.");
  x = block_d (n, x);
  for (int i = 0; i < 2; i++) {
    net_scope (n, "mixed7%c.", 'b' + i);
    x = block_e (n, x);
  }
  net_scope_end (n);
  x = dropout (n, "drop", pooled_features (n, x), 500000);
  entropy (n, "loss", linear (n, "fc", x, n->classes, true), target, false, 0);
  learn (n);
}
