/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Trains a small network of convolutions. Its memory is asked for with cuMemAlloc at the start, as
   older programs do, but for what the backward pass makes. */
#include "tests/programs/gpu.h"

enum { LAYERS = 5, IMAGES = 16, CHANNELS = 4, SIDE = 24, MAP = IMAGES * CHANNELS * SIDE * SIDE };
enum { WEIGHTS = CHANNELS * CHANNELS * 9 };

typedef struct net {
  CUdeviceptr weight[LAYERS], momentum[LAYERS], sum[LAYERS], out[LAYERS + 1], wanted, loss;
} net;

static void step (gpu *g, net *n, CUstream s, int number) {
  long from = CHANNELS, to = CHANNELS, side = SIDE, images = IMAGES, squares = MAP;
  float rate = 0.02f;
  for (int i = 0; i < LAYERS; i++) {
    LAUNCH (g, "conv", s, MAP, &n->sum[i], &n->out[i], &n->weight[i], &from, &to, &side);
    LAUNCH (g, "relu", s, MAP, &n->out[i + 1], &n->sum[i]);
  }
  CUdeviceptr gradient = gpu_alloc (g, MAP, s);
  LAUNCH (g, "distance", s, MAP, &gradient, &n->out[LAYERS], &n->wanted);
  LAUNCH (g, "sum_squares", s, 1, &n->loss, &gradient, &squares);
  for (int i = LAYERS - 1; i >= 0; i--) {
    CUdeviceptr back = gpu_alloc (g, MAP, s), own = gpu_alloc (g, WEIGHTS, s);
    LAUNCH (g, "relu_back", s, MAP, &back, &gradient, &n->sum[i]);
    LAUNCH (g, "conv_weight", s, WEIGHTS, &own, &back, &n->out[i], &images, &from, &to, &side);
    if (i > 0)
      LAUNCH (g, "conv_back", s, MAP, &gradient, &back, &n->weight[i], &from, &to, &side);
    LAUNCH (g, "update", s, WEIGHTS, &n->weight[i], &n->momentum[i], &own, &rate);
    gpu_free (g, back, s);
    gpu_free (g, own, s);
  }
  gpu_free (g, gradient, s);
  gpu_say_scalar (g, "loss", number, n->loss, s);
}

static CUdeviceptr kept (gpu *g, long floats) {
  CUdeviceptr at = 0;
  gpu_must (g, g->mem_alloc (&at, (size_t)floats * sizeof (float)), "cuMemAlloc");
  return at;
}

int main (int argc, char **argv) {
  gpu g;
  net n;
  CUstream s;
  gpu_open (&g, argc, argv);
  gpu_must (&g, g.stream_create (&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int i = 0; i < LAYERS; i++) {
    n.weight[i] = kept (&g, WEIGHTS);
    n.momentum[i] = kept (&g, WEIGHTS);
    n.sum[i] = kept (&g, MAP);
    n.out[i + 1] = kept (&g, MAP);
    gpu_fill (&g, n.weight[i], WEIGHTS, i + 1, s);
    g.set_words_async (n.momentum[i], 0, WEIGHTS, s);
  }
  n.out[0] = kept (&g, MAP);
  n.wanted = kept (&g, MAP);
  n.loss = kept (&g, 1);
  gpu_fill (&g, n.out[0], MAP, 100, s);
  gpu_fill (&g, n.wanted, MAP, 101, s);
  for (int i = 0; i < g.steps; i++)
    step (&g, &n, s, i);
  gpu_must (&g, g.stream_synchronize (s), "cuStreamSynchronize");
  for (int i = 0; i < LAYERS; i++)
    gpu_say_digest (&g, "weight", n.weight[i], WEIGHTS);
  gpu_must (&g, g.stream_destroy (s), "cuStreamDestroy");
  gpu_close (&g);
  return 0;
}
