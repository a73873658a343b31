/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Trains a recurrent network on letters, unrolled: the same cell at every place of the text. */
#include "tests/programs/gpu.h"

enum { LENGTH = 8, BATCH = 256, WIDTH = 64, LETTERS = 64, ROW = BATCH * WIDTH, GATES = 4 * ROW };

typedef struct net {
  CUdeviceptr weight, momentum, head, head_momentum, letters[LENGTH], wanted, start, loss;
} net;

static void product (gpu *g, CUdeviceptr out, CUdeviceptr a, CUdeviceptr b, long m, long k, long n,
                     long mode) {
  LAUNCH (g, "matmul", NULL, m * n, &out, &a, &b, &m, &k, &n, &mode);
}

static void step (gpu *g, net *n, int number) {
  CUdeviceptr gates[LENGTH], state[LENGTH], said[LENGTH], before = n->start, heard = n->start;
  long width = WIDTH, squares = ROW;
  float rate = 0.001f;
  for (int i = 0; i < LENGTH; i++) {
    CUdeviceptr joined = gpu_alloc (g, ROW, NULL);
    LAUNCH (g, "add", NULL, ROW, &joined, &n->letters[i], &heard);
    gates[i] = gpu_alloc (g, GATES, NULL);
    product (g, gates[i], joined, n->weight, BATCH, WIDTH, 4 * WIDTH, 0);
    gpu_free (g, joined, NULL);
    state[i] = gpu_alloc (g, ROW, NULL);
    said[i] = gpu_alloc (g, ROW, NULL);
    LAUNCH (g, "cell", NULL, ROW, &state[i], &said[i], &gates[i], &before, &width);
    before = state[i];
    heard = said[i];
  }
  CUdeviceptr guess = gpu_alloc (g, ROW, NULL), gradient = gpu_alloc (g, ROW, NULL);
  product (g, guess, heard, n->head, BATCH, WIDTH, LETTERS, 0);
  LAUNCH (g, "distance", NULL, ROW, &gradient, &guess, &n->wanted);
  LAUNCH (g, "sum_squares", NULL, 1, &n->loss, &gradient, &squares);
  gpu_free (g, guess, NULL);
  CUdeviceptr own = gpu_alloc (g, WIDTH * LETTERS, NULL), back = gpu_alloc (g, ROW, NULL);
  product (g, own, heard, gradient, WIDTH, BATCH, LETTERS, 1);
  product (g, back, gradient, n->head, BATCH, LETTERS, WIDTH, 2);
  LAUNCH (g, "update", NULL, WIDTH * LETTERS, &n->head, &n->head_momentum, &own, &rate);
  gpu_free (g, own, NULL);
  gpu_free (g, gradient, NULL);
  CUdeviceptr sum = gpu_alloc (g, 4L * WIDTH * WIDTH, NULL);
  g->set_bytes_async (sum, 0, 4L * WIDTH * WIDTH * sizeof (float), NULL);
  for (int i = LENGTH - 1; i >= 0; i--) {
    CUdeviceptr earlier = i > 0 ? state[i - 1] : n->start, down = gpu_alloc (g, GATES, NULL);
    LAUNCH (g, "cell_back", NULL, GATES, &down, &back, &gates[i], &state[i], &earlier, &width);
    gpu_free (g, gates[i], NULL);
    product (g, sum, i > 0 ? said[i - 1] : n->start, down, WIDTH, BATCH, 4 * WIDTH, 1 | 4);
    product (g, back, down, n->weight, BATCH, 4 * WIDTH, WIDTH, 2);
    gpu_free (g, down, NULL);
    gpu_free (g, state[i], NULL);
    gpu_free (g, said[i], NULL);
  }
  gpu_free (g, back, NULL);
  LAUNCH (g, "update", NULL, 4L * WIDTH * WIDTH, &n->weight, &n->momentum, &sum, &rate);
  gpu_free (g, sum, NULL);
  gpu_say_scalar (g, "loss", number, n->loss, NULL);
}

int main (int argc, char **argv) {
  gpu g;
  net n;
  gpu_open (&g, argc, argv);
  n.weight = gpu_alloc (&g, 4L * WIDTH * WIDTH, NULL);
  n.momentum = gpu_alloc (&g, 4L * WIDTH * WIDTH, NULL);
  n.head = gpu_alloc (&g, WIDTH * LETTERS, NULL);
  n.head_momentum = gpu_alloc (&g, WIDTH * LETTERS, NULL);
  n.wanted = gpu_alloc (&g, ROW, NULL);
  n.start = gpu_alloc (&g, ROW, NULL);
  n.loss = gpu_alloc (&g, 1, NULL);
  gpu_fill (&g, n.weight, 4L * WIDTH * WIDTH, 1, NULL);
  gpu_fill (&g, n.head, WIDTH * LETTERS, 2, NULL);
  gpu_fill (&g, n.wanted, ROW, 3, NULL);
  g.set_bytes (n.momentum, 0, 4L * WIDTH * WIDTH * sizeof (float));
  g.set_bytes (n.head_momentum, 0, WIDTH * LETTERS * sizeof (float));
  g.set_bytes (n.start, 0, ROW * sizeof (float));
  for (int i = 0; i < LENGTH; i++) {
    n.letters[i] = gpu_alloc (&g, ROW, NULL);
    gpu_fill (&g, n.letters[i], ROW, 10 + i, NULL);
  }
  for (int i = 0; i < g.steps; i++)
    step (&g, &n, i);
  gpu_say_digest (&g, "weight", n.weight, 4L * WIDTH * WIDTH);
  gpu_say_digest (&g, "head", n.head, WIDTH * LETTERS);
  gpu_close (&g);
  return 0;
}
