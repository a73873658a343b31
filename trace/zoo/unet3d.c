/* SPDX-License-Identifier: GPL-3.0-or-later */
/* 3D U-Net (Cicek et al. 2016): three levels down and up, unpadded convolutions, the way across
   cropped. Its published 19,069,955 parameters are those of convolutions with biases and transposed
   ones without; the norms have none. */
#include <stdio.h>

#include "trace/zoo/families.h"

enum { LEVELS = 3, SMALLEST_UNPADDED = 108 };

static value unit (net *n, const char *name, value x, int64_t channels) {
  char norm[32];
  snprintf (norm, sizeof norm, "%s.bn", name);
  window w = { 3, 1, n->image < SMALLEST_UNPADDED };
  x = conv (n, name, x, net_thin (n, channels), w, true);
  return relu (n, name, batchnorm (n, norm, x, false, EPS_5), 0);
}

/* The published input is 132 x 132 x 116 voxels of 3 channels; edges below 108 are too small for
   that, so there the convolutions are padded and all edges are equal. */
void unet3d_step (net *n) {
  bool padded = n->image < SMALLEST_UNPADDED;
  if (padded && n->image % 8 != 0) {
    net_fail (n, "an image of %lld: below 108 it must be a multiple of 8", (long long)n->image);
    return;
  }
  value across[LEVELS];
  value x = net_input (n, "image", 3, padded ? n->image : n->image - 16, n->image, n->image);
  for (int i = 0; i < LEVELS; i++) {
    net_scope (n, "down%d.", i + 1);
    x = unit (n, "conv1", x, 32LL << i);
    across[i] = unit (n, "conv2", x, 64LL << i);
    x = maxpool (n, "pool", across[i], (window){ 2, 2, 0 }, false);
  }
  net_scope (n, "bottom.");
  x = unit (n, "conv2", unit (n, "conv1", x, 256), 512);
  for (int i = LEVELS - 1; i >= 0; i--) {
    net_scope (n, "up%d.", i + 1);
    x = deconv (n, "deconv", x, net_at (n, x)->c, (window){ 2, 2, 0 }, false);
    value both[2];
    both[0] = crop (n, "crop", across[i], x);
    both[1] = x;
    x = concat (n, "concat", both, 2);
    x = unit (n, "conv2", unit (n, "conv1", x, 64LL << i), 64LL << i);
  }
  net_scope_end (n);
  x = conv (n, "classes", x, n->classes, (window){ 1, 1, 0 }, true);
  const value_info i = *net_at (n, x);
  entropy (n, "loss", x, net_tokens (n, "labels", i.d * i.h * i.w), true, 0);
  learn (n);
}
