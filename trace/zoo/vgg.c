/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plain chains of convolutions: AlexNet, VGG, OverFeat. */
#include <stdio.h>

#include "trace/zoo/families.h"

void learn (net *n) {
  net_backward (n, 0);
  net_update (n, 0, -1);
}

void classify (net *n, value x) {
  value target = net_tokens (n, "labels", 1);
  entropy (n, "loss", linear (n, "classifier", x, n->classes, true), target, false, 0);
  learn (n);
}

static value flat (net *n, value x) {
  return net_reshape (n, x, net_size (n, x), 1, 1, 1);
}

static value conv_relu (net *n, const char *name, value x, int64_t channels, window w) {
  return relu (n, name, conv (n, name, x, net_thin (n, channels), w, true), 0);
}

static value linear_relu (net *n, const char *name, value x, int64_t out) {
  return relu (n, name, linear (n, name, x, net_thin (n, out), true), 0);
}

/* The one of torchvision: Krizhevsky's "one weird trick" network. */
void alexnet_step (net *n) {
  window three = { 3, 1, 1 }, pool = { 3, 2, 0 };
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  x = conv_relu (n, "conv1", x, 64, (window){ 11, 4, 2 });
  x = maxpool (n, "pool1", x, pool, false);
  x = conv_relu (n, "conv2", x, 192, (window){ 5, 1, 2 });
  x = maxpool (n, "pool2", x, pool, false);
  x = conv_relu (n, "conv3", x, 384, three);
  x = conv_relu (n, "conv4", x, 256, three);
  x = conv_relu (n, "conv5", x, 256, three);
  x = maxpool (n, "pool5", x, pool, false);
  x = flat (n, adaptive (n, "pool6", x, 6));
  x = dropout (n, "drop6", x, 500000);
  x = linear_relu (n, "fc6", x, 4096);
  x = dropout (n, "drop7", x, 500000);
  x = linear_relu (n, "fc7", x, 4096);
  classify (n, x);
}

void vgg_step (net *n) {
  static const int64_t channels[] = { 64, 128, 256, 512, 512 };
  int deep = n->variant == 19 ? 4 : 3;
  char name[32];
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  for (int i = 0; i < 5; i++) {
    int64_t layers = net_few (n, i < 2 ? 2 : deep);
    for (int j = 0; j < layers; j++) {
      snprintf (name, sizeof name, "conv%d_%d", i + 1, j + 1);
      x = conv_relu (n, name, x, channels[i], (window){ 3, 1, 1 });
    }
    snprintf (name, sizeof name, "pool%d", i + 1);
    x = maxpool (n, name, x, (window){ 2, 2, 0 }, false);
  }
  x = flat (n, adaptive (n, "pool6", x, 7));
  x = dropout (n, "drop6", linear_relu (n, "fc6", x, 4096), 500000);
  x = dropout (n, "drop7", linear_relu (n, "fc7", x, 4096), 500000);
  classify (n, x);
}

/* The fast model of the paper. */
void overfeat_step (net *n) {
  window three = { 3, 1, 1 }, pool = { 2, 2, 0 };
  value x = net_input (n, "image", 3, 1, n->image, n->image);
  x = conv_relu (n, "conv1", x, 96, (window){ 11, 4, 0 });
  x = maxpool (n, "pool1", x, pool, false);
  x = conv_relu (n, "conv2", x, 256, (window){ 5, 1, 0 });
  x = maxpool (n, "pool2", x, pool, false);
  x = conv_relu (n, "conv3", x, 512, three);
  x = conv_relu (n, "conv4", x, 1024, three);
  x = conv_relu (n, "conv5", x, 1024, three);
  x = maxpool (n, "pool5", x, pool, false);
  x = dropout (n, "drop6", linear_relu (n, "fc6", flat (n, x), 3072), 500000);
  x = dropout (n, "drop7", linear_relu (n, "fc7", x, 4096), 500000);
  classify (n, x);
}
