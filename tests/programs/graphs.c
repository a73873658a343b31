/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Trains as a framework does that captures its step: graphs MODULE [STEPS] [HOW].  A warm-up on a
   stream of its own, a capture with the tensors of the step allocated in it, then launches.
   eager: without a graph; captured; two: a second graph evaluates; beside: eager launches between;
   forked: the capture has two streams; changed: nodes get other parameters, and the graph another;
   built: node by node; wide: one graph of more than that. */
#include <stdio.h>
#include <string.h>

#include "tests/programs/gpu.h"

enum {
  LAYERS = 4,
  BATCH = 512,
  WIDTH = 64,
  ROW = BATCH * WIDTH,
  SQUARE = WIDTH * WIDTH,
  WIDE = 24
};

typedef struct net {
  CUdeviceptr weight[LAYERS], momentum[LAYERS], input, wanted, loss;
} net;

static void product (gpu *g, CUstream s, CUdeviceptr out, CUdeviceptr a, CUdeviceptr b, long m,
                     long k, long n, long mode) {
  LAUNCH (g, "matmul", s, m * n, &out, &a, &b, &m, &k, &n, &mode);
}

/* Leaves the loss; all else that it allocates it frees. */
static CUdeviceptr forward (gpu *g, net *n, CUstream s, CUdeviceptr *in, CUdeviceptr *sum) {
  CUdeviceptr gradient;
  long squares = ROW;
  in[0] = n->input;
  for (int i = 0; i < LAYERS; i++) {
    sum[i] = gpu_alloc (g, ROW, s);
    product (g, s, sum[i], in[i], n->weight[i], BATCH, WIDTH, WIDTH, 0);
    in[i + 1] = gpu_alloc (g, ROW, s);
    LAUNCH (g, "relu", s, ROW, &in[i + 1], &sum[i]);
  }
  gradient = gpu_alloc (g, ROW, s);
  LAUNCH (g, "distance", s, ROW, &gradient, &in[LAYERS], &n->wanted);
  LAUNCH (g, "sum_squares", s, 1, &n->loss, &gradient, &squares);
  gpu_free (g, in[LAYERS], s);
  return gradient;
}

static void evaluate (gpu *g, net *n, CUstream s) {
  CUdeviceptr in[LAYERS + 1], sum[LAYERS];
  gpu_free (g, forward (g, n, s, in, sum), s);
  for (int i = 0; i < LAYERS; i++)
    gpu_free (g, sum[i], s);
  for (int i = 1; i < LAYERS; i++)
    gpu_free (g, in[i], s);
}

/* `beside`: the updates run on that stream, behind the gradients. */
static void train (gpu *g, net *n, CUstream s, CUstream beside) {
  CUdeviceptr in[LAYERS + 1], sum[LAYERS], gradient = forward (g, n, s, in, sum);
  CUevent done = gpu_event (g, CU_EVENT_DISABLE_TIMING), joined = gpu_event (g, 2);
  float rate = 0.01f;
  for (int i = LAYERS - 1; i >= 0; i--) {
    CUdeviceptr back = gpu_alloc (g, ROW, s), own = gpu_alloc (g, SQUARE, s);
    LAUNCH (g, "relu_back", s, ROW, &back, &gradient, &sum[i]);
    gpu_free (g, gradient, s);
    gpu_free (g, sum[i], s);
    product (g, s, own, in[i], back, WIDTH, BATCH, WIDTH, 1);
    if (i > 0) {
      gradient = gpu_alloc (g, ROW, s);
      product (g, s, gradient, back, n->weight[i], BATCH, WIDTH, WIDTH, 2);
      gpu_free (g, in[i], s);
    }
    gpu_free (g, back, s);
    gpu_must (g, g->event_record (done, s), "cuEventRecord");
    gpu_must (g, g->stream_wait_event (beside, done, 0), "cuStreamWaitEvent");
    LAUNCH (g, "update", beside, SQUARE, &n->weight[i], &n->momentum[i], &own, &rate);
    gpu_must (g, g->event_record (joined, beside), "cuEventRecord");
    gpu_must (g, g->stream_wait_event (s, joined, 0), "cuStreamWaitEvent");
    gpu_free (g, own, s);
  }
}

static CUgraphExec ready (gpu *g, CUgraph graph) {
  CUgraphExec x;
  gpu_must (g, g->graph_instantiate (&x, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
            "cuGraphInstantiate");
  return x;
}

static CUgraph capture (gpu *g, net *n, CUstream s, CUstream beside, bool trains) {
  CUgraph graph;
  gpu_must (g, g->capture_begin (s, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  if (trains)
    train (g, n, s, beside);
  else
    evaluate (g, n, s);
  gpu_must (g, g->capture_end (s, &graph), "cuStreamEndCapture");
  return graph;
}

static void launch (gpu *g, CUgraphExec x, CUstream s) {
  gpu_must (g, g->graph_launch (x, s), "cuGraphLaunch");
}

/* The next batch, where the graph reads it. */
static void feed (gpu *g, net *n, int step, CUstream s) {
  gpu_fill (g, n->input, ROW, 100 + step % 3, s);
}

static void train_captured (gpu *g, net *n, const char *how, CUstream s, CUstream beside) {
  bool two = strcmp (how, "two") == 0, more = strcmp (how, "beside") == 0;
  CUgraph graph = capture (g, n, s, strcmp (how, "forked") == 0 ? beside : s, true), copy;
  CUgraphExec x = ready (g, graph), tests = NULL;
  if (two)
    tests = ready (g, capture (g, n, s, s, false));
  if (strcmp (how, "changed") == 0) {
    CUgraphExecUpdateResultInfo info;
    gpu_must (g, g->graph_clone (&copy, graph), "cuGraphClone");
    gpu_must (g, g->exec_update (x, copy, &info), "cuGraphExecUpdate");
    gpu_must (g, g->graph_destroy (copy), "cuGraphDestroy");
  }
  gpu_must (g, g->graph_destroy (graph), "cuGraphDestroy");
  for (int i = 0; i < g->steps; i++) {
    feed (g, n, i, s);
    launch (g, x, s);
    gpu_say_scalar (g, "loss", i, n->loss, s);
    if (more)
      train (g, n, s, s);
    if (two)
      launch (g, tests, s);
    if (two || more)
      gpu_say_scalar (g, "then", i, n->loss, s);
  }
  gpu_must (g, g->exec_destroy (x), "cuGraphExecDestroy");
}

/* Two kernels and a copy between tensors that change from step to step. */
static void train_built (gpu *g, net *n, CUstream s) {
  enum { MANY = 6 };
  CUdeviceptr rows[MANY], out = gpu_alloc (g, ROW, s);
  CUfunction relu;
  CUgraph graph;
  CUgraphNode first, second;
  long count = ROW;
  for (int i = 0; i < MANY; i++)
    gpu_fill (g, rows[i] = gpu_alloc (g, ROW, s), ROW, i + 7, s);
  gpu_must (g, g->module_get_function (&relu, g->module, "relu"), "relu");
  CUDA_KERNEL_NODE_PARAMS k = { .func = relu,
                                .gridDimX = ROW / 256,
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = 256,
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .kernelParams = (void *[]){ &out, &rows[0], &count } };
  CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                      .srcDevice = out,
                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                      .dstDevice = rows[1],
                      .WidthInBytes = ROW * sizeof (float),
                      .Height = 1,
                      .Depth = 1 };
  gpu_must (g, g->graph_create (&graph, 0), "cuGraphCreate");
  gpu_must (g, g->graph_add_kernel (&first, graph, NULL, 0, &k), "cuGraphAddKernelNode");
  gpu_must (g, g->graph_add_copy (&second, graph, &first, 1, &c, g->context), "AddMemcpyNode");
  CUgraphExec x = ready (g, graph);
  for (int i = 0; i < g->steps; i++) {
    k.kernelParams[1] = &rows[i % MANY];
    c.dstDevice = rows[(i + 1) % MANY];
    gpu_must (g, g->exec_kernel (x, first, &k), "cuGraphExecKernelNodeSetParams");
    gpu_must (g, g->exec_copy (x, second, &c, g->context), "cuGraphExecMemcpyNodeSetParams");
    train (g, n, s, s);
    launch (g, x, s);
    gpu_say_scalar (g, "loss", i, n->loss, s);
    gpu_say_scalar (g, "first", i, c.dstDevice, s);
  }
  for (int i = 0; i < MANY; i++)
    gpu_say_digest (g, "row", rows[i], ROW);
}

static void launch_wide (gpu *g, CUstream s) {
  CUdeviceptr rows[WIDE];
  CUgraph graph;
  for (int i = 0; i < WIDE; i++)
    gpu_fill (g, rows[i] = gpu_alloc (g, ROW, s), ROW, i, s);
  gpu_must (g, g->capture_begin (s, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  for (int i = 1; i < WIDE; i++)
    LAUNCH (g, "relu", s, ROW, &rows[i], &rows[i - 1]);
  gpu_must (g, g->capture_end (s, &graph), "cuStreamEndCapture");
  launch (g, ready (g, graph), s);
  gpu_must (g, g->stream_synchronize (s), "cuStreamSynchronize");
  for (int i = 0; i < WIDE; i++)
    gpu_say_digest (g, "row", rows[i], ROW);
}

int main (int argc, char **argv) {
  const char *how = argc > 3 ? argv[3] : "captured";
  gpu g;
  net n;
  gpu_open (&g, argc, argv);
  CUstream s = gpu_stream (&g), beside = gpu_stream (&g);
  for (int i = 0; i < LAYERS; i++) {
    gpu_fill (&g, n.weight[i] = gpu_alloc (&g, SQUARE, s), SQUARE, i + 1, s);
    gpu_fill (&g, n.momentum[i] = gpu_alloc (&g, SQUARE, s), SQUARE, 0, s);
  }
  gpu_fill (&g, n.input = gpu_alloc (&g, ROW, s), ROW, 100, s);
  gpu_fill (&g, n.wanted = gpu_alloc (&g, ROW, s), ROW, 101, s);
  n.loss = gpu_alloc (&g, 1, s);
  for (int i = 0; i < 3; i++) /* the warm-up */
    train (&g, &n, s, s);
  gpu_must (&g, g.stream_synchronize (s), "cuStreamSynchronize");
  if (strcmp (how, "eager") == 0)
    for (int i = 0; i < g.steps; i++) {
      feed (&g, &n, i, s);
      train (&g, &n, s, s);
      gpu_say_scalar (&g, "loss", i, n.loss, s);
    }
  else if (strcmp (how, "built") == 0)
    train_built (&g, &n, s);
  else if (strcmp (how, "wide") == 0)
    launch_wide (&g, s);
  else
    train_captured (&g, &n, how, s, beside);
  for (int i = 0; i < LAYERS; i++)
    gpu_say_digest (&g, "weight", n.weight[i], SQUARE);
  gpu_close (&g);
  return 0;
}
