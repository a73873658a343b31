/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DCGAN: one step of the discriminator on real and on made images, then one of the generator. */
#include <stdio.h>

#include "trace/zoo/families.h"

enum { NOISE = 100, WIDTH = 64 };

static const window first = { 4, 1, 0 }, twice = { 4, 2, 1 };

static value generator (net *n, value z, int stages) {
  char name[32];
  net_scope (n, "g.");
  value x = z;
  for (int i = 0; i < stages; i++) {
    snprintf (name, sizeof name, "deconv%d", i + 1);
    x = deconv (n, name, x, net_thin (n, WIDTH) << (stages - 1 - i), i == 0 ? first : twice, false);
    snprintf (name, sizeof name, "bn%d", i + 1);
    x = relu (n, name, batchnorm (n, name, x, true, EPS_5), 0);
  }
  snprintf (name, sizeof name, "deconv%d", stages + 1);
  return tanh_layer (n, "tanh", deconv (n, name, x, 3, twice, false));
}

static void discriminator (net *n, const char *run, value x, int stages, bool label) {
  char name[32];
  net_scope (n, "d.%s.", run);
  for (int i = 0; i < stages; i++) {
    snprintf (name, sizeof name, "conv%d", i + 1);
    x = conv (n, name, x, net_thin (n, WIDTH) << i, twice, false);
    snprintf (name, sizeof name, "bn%d", i + 1);
    if (i > 0)
      x = batchnorm (n, name, x, true, EPS_5);
    x = relu (n, name, x, 200000);
  }
  snprintf (name, sizeof name, "conv%d", stages + 1);
  x = sigmoid (n, "sigmoid", conv (n, name, x, 1, first, false));
  binary_entropy (n, "loss", x, label);
}

static void freeze (net *n, param from, param to, bool frozen) {
  for (param p = from; p < to; p++)
    n->params[p].frozen = frozen;
}

void dcgan_step (net *n) {
  int stages = 1;
  while (stages < 16 && 4LL << stages < n->image)
    stages++;
  if (n->image < 8 || 4LL << stages != n->image) {
    net_fail (n, "an image of %lld: it must be 8, 16, 32, 64, ...", (long long)n->image);
    return;
  }
  value real = net_input (n, "image", 3, 1, n->image, n->image);
  value noise = net_input (n, "noise", NOISE, 1, 1, 1);
  value made = generator (n, noise, stages);
  int64_t after_generator = n->n_nodes;
  param d_from = (param)n->n_params;
  int64_t d_states = n->n_states;

  discriminator (n, "real", real, stages, true);
  param d_to = (param)n->n_params;
  net_backward (n, after_generator);
  /* The same image, but the generator learns nothing from it yet. */
  value apart = net_value (n, "made", net_tensor (n, made), 3, 1, n->image, n->image);
  net_share (n, d_from, d_states);
  discriminator (n, "made", apart, stages, false);
  net_backward (n, after_generator);
  net_update (n, d_from, d_to);

  freeze (n, d_from, d_to, true);
  net_share (n, d_from, d_states);
  discriminator (n, "judged", made, stages, true);
  net_share (n, 0, 0);
  net_scope_end (n);
  net_backward (n, 0);
  net_update (n, 1, d_from);
}
