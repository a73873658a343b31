/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast convolution and linear layers are beside the matrix product that they are made of: the
   same number of multiplications by one call of sgemm an item, of the same shape, whose operands
   are there already.  What is shown is the best of some turns, each side in its turn.  It fails
   where a share is under one half. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "executor/ops/blas.h"
#include "executor/ops/ops.h"

enum { TURNS = 5 };

/* Of this process: others may be at work beside. */
static double seconds (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must (bool ok, const error *err) {
  if (ok)
    return;
  fprintf (stderr, "%s\n", err->text);
  exit (1);
}

static float *numbers (int64_t count) {
  float *x = malloc ((size_t)count * sizeof *x);
  random_state r = random_seed (3);
  for (int64_t i = 0; x != NULL && i < count; i++)
    x[i] = (float)random_between (&r, -1000, 1000) / 1000;
  return x;
}

/* ---- ops beside their products ---- */

typedef struct shape {
  const char *name;
  compute c;
  blas_product p; /* of one item, or of all rows */
  int64_t items;  /* so many products */
} shape;

static void run_op (ops *o, const compute *c, float *const *data) {
  operand x[COMPUTE_MOST_OPERANDS];
  ops_piece pieces[8];
  ops_operand operands[8];
  error err = { 0 };
  int n = compute_operands (c, x);
  for (int i = 0; i < n; i++) {
    pieces[i] = (ops_piece){ data[i], x[i].item ? compute_batch (c) : 1 };
    operands[i] = (ops_operand){ &pieces[i], x[i].use != ABSENT };
  }
  ops_call call = { c, 0, compute_batch (c), 0, false, operands, n };
  must (ops_run (o, &call, &err), &err);
}

/* What is compared, and the smallest share of all. */
typedef struct comparing {
  ops *ops;
  blas blas;
  double worst_percent;
  int count;
} comparing;

static void compare (comparing *w, const shape *s) {
  operand x[COMPUTE_MOST_OPERANDS];
  float *data[8] = { NULL };
  int n = compute_operands (&s->c, x);
  for (int i = 0; i < n; i++)
    data[i] = numbers (x[i].elements);
  const blas_product *p = &s->p;
  float *a = numbers (p->m * p->k), *b = numbers (p->k * p->n), *c = numbers (p->m * p->n);
  double best_op = INFINITY, best_product = INFINITY;
  for (int turn = 0; turn < TURNS; turn++) {
    double start = seconds ();
    run_op (w->ops, &s->c, data);
    double middle = seconds ();
    for (int64_t i = 0; i < s->items; i++)
      blas_sgemm (&w->blas, p, a, b, c);
    double end = seconds ();
    best_op = fmin (best_op, middle - start);
    best_product = fmin (best_product, end - middle);
  }
  double giga = (double)compute_flops (&s->c) * 1e-9;
  printf ("%-34s %-20s %8.1f %8.1f %6.0f %%\n", s->name, compute_kind_names[s->c.kind],
          giga / best_op, giga / best_product, 100 * best_product / best_op);
  w->worst_percent = fmin (w->worst_percent, 100 * best_product / best_op);
  w->count++;
  for (int i = 0; i < n; i++)
    free (data[i]);
  free (a);
  free (b);
  free (c);
}

static void compare_conv (comparing *w, const char *name, int64_t batch, int64_t in, int64_t out,
                          int64_t depth, int64_t edge, int64_t kernel, int64_t stride) {
  int64_t pad = kernel / 2, deep = depth > 1, small = (edge + 2 * pad - kernel) / stride + 1;
  compute_conv v = { .batch = batch,
                     .in_channels = in,
                     .out_channels = out,
                     .groups = 1,
                     .in_d = depth,
                     .in_h = edge,
                     .in_w = edge,
                     .out_d = depth,
                     .out_h = small,
                     .out_w = small,
                     .kernel_d = deep ? kernel : 1,
                     .kernel_h = kernel,
                     .kernel_w = kernel,
                     .stride_d = 1,
                     .stride_h = stride,
                     .stride_w = stride,
                     .pad_d = deep ? pad : 0,
                     .pad_h = pad,
                     .pad_w = pad };
  int64_t rows = in * v.kernel_d * kernel * kernel, columns = depth * small * small;
  shape s = { name,
              { .kind = COMPUTE_conv_fwd, .conv = v },
              { out, columns, rows, false, false, rows, columns, columns, 1, 0 },
              batch };
  compare (w, &s);
  s.c.kind = COMPUTE_conv_bwd_data;
  s.p = (blas_product){ rows, columns, out, true, false, rows, columns, columns, 1, 0 };
  compare (w, &s);
  s.c.kind = COMPUTE_conv_bwd_weights;
  s.p = (blas_product){ out, rows, columns, false, true, columns, columns, rows, 1, 0 };
  compare (w, &s);
}

static void compare_linear (comparing *w, const char *name, int64_t rows, int64_t in, int64_t out) {
  compute_linear v = { .batch = rows, .rows = 1, .in = in, .out = out };
  shape s = { name,
              { .kind = COMPUTE_linear_fwd, .linear = v },
              { rows, out, in, false, true, in, in, out, 1, 0 },
              1 };
  compare (w, &s);
  s.c.kind = COMPUTE_linear_bwd_data;
  s.p = (blas_product){ rows, in, out, false, false, out, in, in, 1, 0 };
  compare (w, &s);
  s.c.kind = COMPUTE_linear_bwd_weights;
  s.p = (blas_product){ out, in, rows, true, false, out, in, in, 1, 0 };
  compare (w, &s);
}

int main (void) {
  error err = { 0 };
  comparing all = { .ops = ops_new (&err), .worst_percent = INFINITY }, *w = &all;
  must (all.ops != NULL, &err);
  blas_open (&all.blas);
  printf ("%s\n%-34s %-20s %8s %8s %8s\n", blas_name (&all.blas), "", "", "GFLOP/s", "sgemm",
          "share");
  compare_conv (w, "VGG conv1_1, 3 to 64 of 224", 2, 3, 64, 1, 224, 3, 1);
  compare_conv (w, "VGG conv1_2, 64 to 64 of 224", 1, 64, 64, 1, 224, 3, 1);
  compare_conv (w, "VGG conv3_2, 256 to 256 of 56", 2, 256, 256, 1, 56, 3, 1);
  compare_conv (w, "VGG conv5_1, 512 to 512 of 14", 4, 512, 512, 1, 14, 3, 1);
  compare_conv (w, "ResNet conv1, 3 to 64 of 224, / 2", 4, 3, 64, 1, 224, 7, 2);
  compare_conv (w, "ResNet, 64 to 256 of 56, 1 x 1", 4, 64, 256, 1, 56, 1, 1);
  compare_conv (w, "ResNet, 256 to 64 of 56, 1 x 1", 4, 256, 64, 1, 56, 1, 1);
  compare_conv (w, "ResNet, 128 to 128 of 56, / 2", 4, 128, 128, 1, 56, 3, 2);
  compare_conv (w, "ResNet, 256 to 512 of 56, 1 x 1, / 2", 4, 256, 512, 1, 56, 1, 2);
  compare_conv (w, "ResNet, 512 to 512 of 7", 8, 512, 512, 1, 7, 3, 1);
  compare_conv (w, "U-Net, 64 to 64 of 32 x 32 x 32", 1, 64, 64, 32, 32, 3, 1);
  compare_linear (w, "VGG fc7, 64 rows, 4096 to 4096", 64, 4096, 4096);
  compare_linear (w, "GPT-2, 1024 rows, 768 to 3072", 1024, 768, 3072);
  compare_linear (w, "LSTM gates, 32 rows, 512 to 2048", 32, 512, 2048);
  ops_free (all.ops);
  printf ("{\"bench\":\"ops\",\"products\":%d,\"worst_percent\":%.0f}\n", all.count,
          all.worst_percent);
  return all.worst_percent < 50 ? EXIT_FAILURE : EXIT_SUCCESS;
}
