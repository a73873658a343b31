/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A cuDNN for the emulated device, in plain loops: a library that the door opens as it opens the
   real one. Of each convolution it offers four ways, of which the first is fastest and differs from
   run to run, the second takes a lot of memory, the third rounds too much, and the last is right.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "executor/ops/bf16.h"
#include "executor/libraries/cudnn_types.h"
#include "tests/fakes.h"

#pragma GCC visibility push(default) /* the build hides what is not told to be seen */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* they stand in cudnn.h */

enum { BAD = 3000, MOST = 5, RIGHT = 7 };

struct cudnnContext {
  cudaStream_t stream;
};
struct cudnnTensorStruct {
  cudnnDataType_t type;
  int count, dims[MOST];
};
struct cudnnFilterStruct {
  cudnnDataType_t type;
  int count, dims[MOST];
};
struct cudnnConvolutionStruct {
  int count, pad[3], stride[3], groups, chosen;
  cudnnMathType_t math;
};

static fake_state state;

fake_state *fake_cudnn_state (void) {
  return &state;
}

static cudnnStatus_t refuse (const char *what) {
  return fake_refuse (&state, what, BAD);
}

/* ---- descriptors ---- */

#define MAKE(Name, type)                        \
  cudnnStatus_t cudnnCreate##Name (type *out) { \
    *out = calloc (1, sizeof **out);            \
    state.open++;                               \
    return *out != NULL ? 0 : BAD;              \
  }                                             \
  cudnnStatus_t cudnnDestroy##Name (type it) {  \
    free (it);                                  \
    state.open--;                               \
    return 0;                                   \
  }
MAKE (, cudnnHandle_t)
MAKE (TensorDescriptor, cudnnTensorDescriptor_t)
MAKE (FilterDescriptor, cudnnFilterDescriptor_t)
MAKE (ConvolutionDescriptor, cudnnConvolutionDescriptor_t)

size_t cudnnGetVersion (void) {
  return 91300;
}

cudnnStatus_t cudnnSetStream (cudnnHandle_t h, cudaStream_t s) {
  h->stream = s;
  return 0;
}

static int known (cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16;
}

cudnnStatus_t cudnnSetTensorNdDescriptor (cudnnTensorDescriptor_t t, cudnnDataType_t type,
                                          int count, const int *dims, const int *steps) {
  long long step = 1;
  if (!known (type) || count < 4 || count > MOST)
    return refuse ("a tensor's dimensions");
  for (int i = count - 1; i >= 0; step *= dims[i--])
    if (dims[i] < 1 || steps[i] != step)
      return refuse ("a tensor's steps");
  t->type = type;
  t->count = count;
  memcpy (t->dims, dims, (size_t)count * sizeof *dims);
  return 0;
}

cudnnStatus_t cudnnSetFilterNdDescriptor (cudnnFilterDescriptor_t w, cudnnDataType_t type,
                                          cudnnTensorFormat_t format, int count, const int *dims) {
  if (!known (type) || format != CUDNN_TENSOR_NCHW || count < 4 || count > MOST)
    return refuse ("a filter");
  w->type = type;
  w->count = count;
  memcpy (w->dims, dims, (size_t)count * sizeof *dims);
  return 0;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor (cudnnConvolutionDescriptor_t c, int count,
                                               const int *pad, const int *stride,
                                               const int *dilation, cudnnConvolutionMode_t mode,
                                               cudnnDataType_t type) {
  if (count < 2 || count > 3 || mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT)
    return refuse ("a convolution's mode or type");
  c->count = count;
  c->groups = 1;
  for (int i = 0; i < count; i++) {
    if (pad[i] < 0 || stride[i] < 1 || dilation[i] != 1)
      return refuse ("a convolution's steps");
    c->pad[i] = pad[i];
    c->stride[i] = stride[i];
  }
  return 0;
}

cudnnStatus_t cudnnSetConvolutionGroupCount (cudnnConvolutionDescriptor_t c, int groups) {
  c->groups = groups;
  return groups > 0 ? 0 : refuse ("groups");
}

cudnnStatus_t cudnnSetConvolutionMathType (cudnnConvolutionDescriptor_t c, cudnnMathType_t math) {
  c->math = math;
  return 0;
}

/* ---- what is done ---- */

typedef struct work {
  int way; /* 0: to b, 1: to a, 2: to the weights */
  struct cudnnTensorStruct a, b;
  struct cudnnFilterStruct w;
  struct cudnnConvolutionStruct c;
  const void *x, *y;
  float beta;
  void *out;
} work;

static float number (cudnnDataType_t type, const void *at, long long i) {
  return type == CUDNN_DATA_BFLOAT16 ? bf16_number (((const uint16_t *)at)[i])
                                     : ((const float *)at)[i];
}

/* Without a depth, one of 1 is put in front. */
static int size_of (const int *dims, int count, int axis) {
  return axis + count - MOST < 0 ? 1 : dims[2 + axis + count - MOST];
}

typedef void visit (const work *k, float *sums, long long a, long long b, long long w);

static void to_b (const work *k, float *sums, long long a, long long b, long long w) {
  sums[b] += number (k->a.type, k->x, a) * number (k->w.type, k->y, w);
}
static void to_a (const work *k, float *sums, long long a, long long b, long long w) {
  sums[a] += number (k->b.type, k->x, b) * number (k->w.type, k->y, w);
}
static void to_w (const work *k, float *sums, long long a, long long b, long long w) {
  sums[w] += number (k->a.type, k->x, a) * number (k->b.type, k->y, b);
}

/* The place in a that (place of b, tap) meets; -1: outside. */
static long long meets (const work *k, const int *at, const int *tap) {
  long long place = 0;
  for (int i = 0; i < 3; i++) {
    int axis = i + k->c.count - 3, n = size_of (k->a.dims, k->a.count, i);
    int x = axis < 0 ? 0 : at[i] * k->c.stride[axis] - k->c.pad[axis] + tap[i];
    if (x < 0 || x >= n)
      return -1;
    place = place * n + x;
  }
  return place;
}

static void split (long long i, const int *sizes, int *out) {
  for (int axis = 2; axis >= 0; i /= sizes[axis--])
    out[axis] = (int)(i % sizes[axis]);
}

static void visit_all (const work *k, visit *each, float *sums) {
  int bs[3], ws[3], at[3], tap[3];
  long long a_places = 1, b_places = 1, taps = 1;
  for (int i = 0; i < 3; i++) {
    bs[i] = size_of (k->b.dims, k->b.count, i);
    ws[i] = size_of (k->w.dims, k->w.count, i);
    a_places *= size_of (k->a.dims, k->a.count, i);
    b_places *= bs[i];
    taps *= ws[i];
  }
  int a_group = k->w.dims[1], b_group = k->b.dims[1] / k->c.groups;
  for (int item = 0; item < k->b.dims[0]; item++)
    for (int channel = 0; channel < k->b.dims[1]; channel++)
      for (long long place = 0; place < b_places; place++)
        for (int from = 0; from < a_group; from++)
          for (long long t = 0; t < taps; t++) {
            split (place, bs, at);
            split (t, ws, tap);
            long long met = meets (k, at, tap);
            long long a = item * k->a.dims[1] + channel / b_group * a_group + from;
            if (met >= 0)
              each (k, sums, a * a_places + met,
                    ((long long)item * k->b.dims[1] + channel) * b_places + place,
                    ((long long)channel * a_group + from) * taps + t);
          }
}

static long long volume (const int *dims, int count) {
  long long n = 1;
  for (int i = 0; i < count; i++)
    n *= dims[i];
  return n;
}

static void convolve (void *context) {
  static visit *const ways[] = { to_b, to_a, to_w };
  work *k = context;
  cudnnDataType_t type = k->a.type;
  long long n = k->way == 0   ? volume (k->b.dims, k->b.count)
                : k->way == 1 ? volume (k->a.dims, k->a.count)
                              : volume (k->w.dims, k->w.count);
  float *sums = calloc ((size_t)n, sizeof *sums);
  visit_all (k, ways[k->way], sums);
  for (long long i = 0; i < n; i++) {
    float x = sums[i] + (k->beta != 0 ? k->beta * number (type, k->out, i) : 0);
    if (type == CUDNN_DATA_BFLOAT16)
      ((uint16_t *)k->out)[i] = bf16_of (x);
    else
      ((float *)k->out)[i] = x;
  }
  free (sums);
  free (k);
}

/* ---- the three ways ---- */

static int agree (cudnnTensorDescriptor_t a, cudnnTensorDescriptor_t b, cudnnFilterDescriptor_t w,
                  cudnnConvolutionDescriptor_t c) {
  if (a->type != b->type || a->type != w->type || a->count != b->count || a->count != w->count ||
      c->count != a->count - 2 || a->dims[0] != b->dims[0] || b->dims[1] != w->dims[0] ||
      a->dims[1] != w->dims[1] * c->groups || b->dims[1] % c->groups != 0)
    return 0;
  for (int i = 0; i < c->count; i++)
    if ((a->dims[2 + i] + 2 * c->pad[i] - w->dims[2 + i]) / c->stride[i] + 1 != b->dims[2 + i])
      return 0;
  return 1;
}

static cudnnStatus_t offer (cudnnTensorDescriptor_t a, cudnnTensorDescriptor_t b,
                            cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c, int wanted,
                            int *count, cudnnConvolutionFwdAlgoPerf_t *out) {
  cudnnMathType_t rounds = c->math == CUDNN_FMA_MATH ? CUDNN_DEFAULT_MATH : c->math;
  const cudnnConvolutionFwdAlgoPerf_t offers[] = {
    { .algo = 0, .time = 1, .determinism = 0, .mathType = c->math },
    { .algo = 1, .time = 2, .memory = (size_t)1 << 40, .determinism = 1, .mathType = c->math },
    { .algo = 2, .status = BAD, .time = 3, .determinism = 1, .mathType = c->math },
    { .algo = rounds == c->math ? RIGHT : 3, .time = 4, .determinism = 1, .mathType = rounds },
    { .algo = RIGHT,
      .time = 5,
      .memory = state.needs_bytes,
      .determinism = 1,
      .mathType = c->math },
  };
  if (!agree (a, b, w, c) || wanted < 5)
    return refuse ("shapes that do not agree");
  memcpy (out, offers, sizeof offers);
  if (rounds == c->math)
    out[3].memory = state.needs_bytes;
  *count = 5;
  return 0;
}

static cudnnStatus_t run (cudnnHandle_t h, const work *k, unsigned int algo, const void *room,
                          size_t room_bytes) {
  if (algo != RIGHT ||
      !agree ((cudnnTensorDescriptor_t)(uintptr_t)&k->a, (cudnnTensorDescriptor_t)(uintptr_t)&k->b,
              (cudnnFilterDescriptor_t)(uintptr_t)&k->w,
              (cudnnConvolutionDescriptor_t)(uintptr_t)&k->c))
    return refuse ("an algorithm that was not to be chosen");
  if (room_bytes != state.needs_bytes ||
      (room_bytes > 0 && (room == NULL || (uintptr_t)room % 16 != 0)))
    return refuse ("a workspace");
  if (k->a.type == CUDNN_DATA_FLOAT && k->c.math == CUDNN_TENSOR_OP_MATH)
    return refuse ("a math type");
  state.with_workspace += room_bytes > 0;
  return fake_do (&state, h->stream, convolve, k, sizeof *k) ? 0 : BAD;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7 (cudnnHandle_t h, cudnnTensorDescriptor_t a,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t c,
                                                      cudnnTensorDescriptor_t b, int wanted,
                                                      int *count,
                                                      cudnnConvolutionFwdAlgoPerf_t *out) {
  (void)h;
  return offer (a, b, w, c, wanted, count, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7 (
    cudnnHandle_t h, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t b,
    cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t a, int wanted, int *count,
    cudnnConvolutionBwdDataAlgoPerf_t *out) {
  (void)h;
  return offer (a, b, w, c, wanted, count, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7 (
    cudnnHandle_t h, cudnnTensorDescriptor_t a, cudnnTensorDescriptor_t b,
    cudnnConvolutionDescriptor_t c, cudnnFilterDescriptor_t w, int wanted, int *count,
    cudnnConvolutionBwdFilterAlgoPerf_t *out) {
  (void)h;
  return offer (a, b, w, c, wanted, count, out);
}

cudnnStatus_t cudnnConvolutionForward (cudnnHandle_t h, const void *alpha,
                                       cudnnTensorDescriptor_t a, const void *x,
                                       cudnnFilterDescriptor_t w, const void *y,
                                       cudnnConvolutionDescriptor_t c,
                                       cudnnConvolutionFwdAlgo_t algo, void *room,
                                       size_t room_bytes, const void *beta,
                                       cudnnTensorDescriptor_t b, void *out) {
  work k = { 0, *a, *b, *w, *c, x, y, *(const float *)beta, out };
  return *(const float *)alpha == 1 ? run (h, &k, algo, room, room_bytes) : refuse ("alpha");
}

cudnnStatus_t cudnnConvolutionBackwardData (cudnnHandle_t h, const void *alpha,
                                            cudnnFilterDescriptor_t w, const void *y,
                                            cudnnTensorDescriptor_t b, const void *x,
                                            cudnnConvolutionDescriptor_t c,
                                            cudnnConvolutionBwdDataAlgo_t algo, void *room,
                                            size_t room_bytes, const void *beta,
                                            cudnnTensorDescriptor_t a, void *out) {
  work k = { 1, *a, *b, *w, *c, x, y, *(const float *)beta, out };
  return *(const float *)alpha == 1 ? run (h, &k, algo, room, room_bytes) : refuse ("alpha");
}

cudnnStatus_t cudnnConvolutionBackwardFilter (cudnnHandle_t h, const void *alpha,
                                              cudnnTensorDescriptor_t a, const void *x,
                                              cudnnTensorDescriptor_t b, const void *y,
                                              cudnnConvolutionDescriptor_t c,
                                              cudnnConvolutionBwdFilterAlgo_t algo, void *room,
                                              size_t room_bytes, const void *beta,
                                              cudnnFilterDescriptor_t w, void *out) {
  work k = { 2, *a, *b, *w, *c, x, y, *(const float *)beta, out };
  return *(const float *)alpha == 1 ? run (h, &k, algo, room, room_bytes) : refuse ("alpha");
}
