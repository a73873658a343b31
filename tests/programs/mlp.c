/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Trains a network of dense layers: an allocation, a launch and a free for each tensor of a step.
   At its end it may end its context too, in one of the ways that there are, or go on in it. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/gpu.h"

enum { LAYERS = 6, BATCH = 512, WIDTH = 64, ROW = BATCH * WIDTH, SQUARE = WIDTH * WIDTH };

typedef struct net {
  CUdeviceptr weight[LAYERS], momentum[LAYERS], input, wanted, loss;
} net;

static void product (gpu *g, CUdeviceptr out, CUdeviceptr a, CUdeviceptr b, long m, long k, long n,
                     long mode) {
  LAUNCH (g, "matmul", NULL, m * n, &out, &a, &b, &m, &k, &n, &mode);
}

static void step (gpu *g, net *n, int number) {
  CUdeviceptr in[LAYERS + 1], sum[LAYERS], gradient;
  long squares = ROW;
  float rate = 0.01f;
  in[0] = n->input;
  for (int i = 0; i < LAYERS; i++) {
    sum[i] = gpu_alloc (g, ROW, NULL);
    product (g, sum[i], in[i], n->weight[i], BATCH, WIDTH, WIDTH, 0);
    in[i + 1] = gpu_alloc (g, ROW, NULL);
    LAUNCH (g, "relu", NULL, ROW, &in[i + 1], &sum[i]);
  }
  gradient = gpu_alloc (g, ROW, NULL);
  LAUNCH (g, "distance", NULL, ROW, &gradient, &in[LAYERS], &n->wanted);
  LAUNCH (g, "sum_squares", NULL, 1, &n->loss, &gradient, &squares);
  gpu_free (g, in[LAYERS], NULL);
  for (int i = LAYERS - 1; i >= 0; i--) {
    CUdeviceptr back = gpu_alloc (g, ROW, NULL), own = gpu_alloc (g, SQUARE, NULL);
    LAUNCH (g, "relu_back", NULL, ROW, &back, &gradient, &sum[i]);
    gpu_free (g, gradient, NULL);
    gpu_free (g, sum[i], NULL);
    product (g, own, in[i], back, WIDTH, BATCH, WIDTH, 1);
    if (i > 0) {
      gradient = gpu_alloc (g, ROW, NULL);
      product (g, gradient, back, n->weight[i], BATCH, WIDTH, WIDTH, 2);
      gpu_free (g, in[i], NULL);
    }
    gpu_free (g, back, NULL);
    LAUNCH (g, "update", NULL, SQUARE, &n->weight[i], &n->momentum[i], &own, &rate);
    gpu_free (g, own, NULL);
  }
  gpu_say_scalar (g, "loss", number, n->loss, NULL);
}

/* One beside the primary context, in which it trains. */
static void make_context (gpu *g) {
  CUresult (*create) (CUcontext *, unsigned int, CUdevice);
  *(void **)&create = dlsym (g->library, "cuCtxCreate_v2");
  gpu_must (g, create (&g->context, 0, 0), "cuCtxCreate");
}

static void leave (gpu *g, const char *how) {
  CUdeviceptr at = 0;
  if (strcmp (how, "reset") == 0 || strcmp (how, "again") == 0)
    gpu_must (g, g->primary_reset (0), "cuDevicePrimaryCtxReset");
  if (strcmp (how, "release") == 0)
    gpu_must (g, g->primary_release (0), "cuDevicePrimaryCtxRelease");
  if (strcmp (how, "destroy") == 0)
    gpu_must (g, g->ctx_destroy (g->context), "cuCtxDestroy");
  if (strcmp (how, "again") == 0) {
    gpu_must (g, g->primary_retain (&g->context, 0), "cuDevicePrimaryCtxRetain");
    gpu_must (g, g->ctx_set_current (g->context), "cuCtxSetCurrent");
    for (int i = 0; i < 2; i++)
      printf ("again: %d\n", (int)g->mem_alloc (&at, SQUARE));
  }
}

/* Memory of another device's context. */
static void open_second (gpu *g) {
  CUcontext other;
  CUdeviceptr at = 0;
  gpu_must (g, g->primary_retain (&other, 1), "cuDevicePrimaryCtxRetain");
  gpu_must (g, g->ctx_set_current (other), "cuCtxSetCurrent");
  printf ("second: %d\n", (int)g->mem_alloc (&at, SQUARE));
  gpu_must (g, g->ctx_set_current (g->context), "cuCtxSetCurrent");
}

int main (int argc, char **argv) {
  const char *how = argc > 3 ? argv[3] : "";
  gpu g;
  net n;
  gpu_open (&g, argc, argv);
  if (strcmp (how, "destroy") == 0)
    make_context (&g);
  for (int i = 0; i < LAYERS; i++) {
    n.weight[i] = gpu_alloc (&g, SQUARE, NULL);
    n.momentum[i] = gpu_alloc (&g, SQUARE, NULL);
    gpu_fill (&g, n.weight[i], SQUARE, i + 1, NULL);
    g.set_bytes (n.momentum[i], 0, SQUARE * sizeof (float));
  }
  n.input = gpu_alloc (&g, ROW, NULL);
  n.wanted = gpu_alloc (&g, ROW, NULL);
  n.loss = gpu_alloc (&g, 1, NULL);
  gpu_fill (&g, n.input, ROW, 100, NULL);
  gpu_fill (&g, n.wanted, ROW, 101, NULL);
  for (int i = 0; i < g.steps; i++) {
    step (&g, &n, i);
    if (strcmp (how, "die") == 0 && i == g.steps / 2)
      raise (SIGKILL);
  }
  if (strcmp (how, "two") == 0)
    open_second (&g);
  for (int i = 0; i < LAYERS; i++)
    gpu_say_digest (&g, "weight", n.weight[i], SQUARE);
  gpu_close (&g);
  leave (&g, how);
  return 0;
}
