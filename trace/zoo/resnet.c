/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Residual networks of any depth, as torchvision builds them (the stride in the 3 x 3 convolution).
 */
#include <stdio.h>

#include "trace/zoo/families.h"

typedef struct depth_blocks {
  int depth;
  bool bottleneck;
  int64_t blocks[4];
} depth_blocks;

/* Published: He et al. 2016 (18 to 152), the same authors' identity mappings (200). */
static const depth_blocks published[] = {
  { 18, false, { 2, 2, 2, 2 } },  { 34, false, { 3, 4, 6, 3 } },  { 50, true, { 3, 4, 6, 3 } },
  { 101, true, { 3, 4, 23, 3 } }, { 152, true, { 3, 8, 36, 3 } }, { 200, true, { 3, 24, 36, 3 } },
};
enum { N_PUBLISHED = sizeof published / sizeof published[0] };

bool resnet_has_depth (int64_t depth) {
  for (int i = 0; i < N_PUBLISHED; i++)
    if (published[i].depth == depth)
      return true;
  /* 1001 - 2 and 2000 - 2 are multiples of three, as are those of the papers on depth and memory.
   */
  return depth >= 152 && depth <= 100000 && (depth - 2) % 3 == 0;
}

/* Greater depths: 6, 32 and 6 blocks in the first, second and last stage, the rest in the third, as
   in the depth experiments of SuperNeurons (PPoPP 2018). */
static depth_blocks blocks_of (int depth) {
  for (int i = 0; i < N_PUBLISHED; i++)
    if (published[i].depth == depth)
      return published[i];
  return (depth_blocks){ depth, true, { 6, 32, (depth - 2) / 3 - 44, 6 } };
}

static value conv_norm (net *n, const char *conv_name, const char *norm_name, value x,
                        int64_t channels, window w) {
  return batchnorm (n, norm_name, conv (n, conv_name, x, channels, w, false), true, EPS_5);
}

static value block (net *n, value x, int64_t width, bool bottleneck, int64_t stride) {
  int64_t out = bottleneck ? 4 * width : width;
  window one = { 1, 1, 0 }, three = { 3, 1, 1 }, strided = { 3, stride, 1 };
  value y;
  if (bottleneck) {
    y = relu (n, "relu1", conv_norm (n, "conv1", "bn1", x, width, one), 0);
    y = relu (n, "relu2", conv_norm (n, "conv2", "bn2", y, width, strided), 0);
    y = conv_norm (n, "conv3", "bn3", y, out, one);
  } else {
    y = relu (n, "relu1", conv_norm (n, "conv1", "bn1", x, width, strided), 0);
    y = conv_norm (n, "conv2", "bn2", y, width, three);
  }
  if (stride != 1 || net_at (n, x)->c != out)
    x = conv_norm (n, "downsample", "downsample_bn", x, out, (window){ 1, stride, 0 });
  return relu (n, "relu", add (n, "add", y, x, true), 0);
}

void resnet_step (net *n) {
  depth_blocks d = blocks_of (n->variant);
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  x = conv_norm (n, "conv1", "bn1", x, net_thin (n, 64), (window){ 7, 2, 3 });
  x = maxpool (n, "maxpool", relu (n, "relu", x, 0), (window){ 3, 2, 1 }, false);
  for (int stage = 0; stage < 4; stage++) {
    int64_t blocks = net_few (n, d.blocks[stage]), width = net_thin (n, 64LL << stage);
    for (int64_t i = 0; i < blocks && !n->failed; i++) {
      net_scope (n, "layer%d.%lld.", stage + 1, (long long)i);
      x = block (n, x, width, d.bottleneck, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  net_scope_end (n);
  x = adaptive (n, "avgpool", x, 1);
  classify (n, net_reshape (n, x, net_size (n, x), 1, 1, 1));
}
