/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/libraries/cudnn.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "executor/libraries/cudnn_types.h"
#include "executor/driver/symbols.h"

enum { MOST_CHOICES = 16, SPACE = 3, DIMENSIONS = SPACE + 2 };

struct cudnn {
  void *library;
  cudnnHandle_t handle;
  size_t (*get_version) (void);
#define CUDNN(field, symbol, parameters) cudnnStatus_t (*field) parameters;
#include "executor/libraries/cudnn.def"
#undef CUDNN
};

struct cudnn_convolution {
  cudnn_way way;
  cudnnTensorDescriptor_t a, b;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  unsigned int algorithm;
  size_t workspace_bytes;
};

static const symbol_row rows[] = {
#define CUDNN(field, symbol, parameters) { offsetof (cudnn, field), #symbol, true },
#include "executor/libraries/cudnn.def"
#undef CUDNN
  { offsetof (cudnn, get_version), "cudnnGetVersion", true },
};

bool cudnn_open (const char *path, cudnn **out, error *err) {
  *out = NULL;
  void *library = dlopen (path != NULL ? path : "libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return path == NULL || error_set (err, ERR_unreachable, "no cuDNN: %s", dlerror ());
  cudnn *d = calloc (1, sizeof *d);
  if (d == NULL) {
    dlclose (library);
    return error_set (err, ERR_memory, "no memory for cuDNN");
  }
  d->library = library;
  const char *missing = symbols_take (library, rows, sizeof rows / sizeof rows[0], d);
  if (missing != NULL) {
    cudnn_close (d);
    return error_set (err, ERR_unreachable, "cuDNN has no %s; version 9 is needed", missing);
  }
  cudnnStatus_t s = d->create (&d->handle);
  if (s == CUDNN_STATUS_SUCCESS) {
    *out = d;
    return true;
  }
  d->handle = NULL;
  cudnn_close (d);
  return error_set (err, ERR_device, "cudnnCreate: status %u", s);
}

void cudnn_close (cudnn *d) {
  if (d == NULL)
    return;
  if (d->handle != NULL)
    d->destroy (d->handle);
  dlclose (d->library);
  free (d);
}

int64_t cudnn_version (const cudnn *d) {
  return (int64_t)d->get_version ();
}

/* ---- descriptors ---- */

/* Two dimensions at least, three only where there is a depth. */
typedef struct sizes {
  int first; /* of the three dimensions */
  int a[DIMENSIONS], b[DIMENSIONS], w[DIMENSIONS], a_steps[DIMENSIONS], b_steps[DIMENSIONS];
  int kernel[SPACE], stride[SPACE], pad[SPACE], dilation[SPACE];
  int count; /* of dimensions, those of items and channels included */
} sizes;

static bool narrow (int64_t from, int *to) {
  *to = (int)from;
  return from >= 0 && from <= INT_MAX;
}

static bool steps_of (const int *dims, int count, int *steps) {
  int64_t step = 1;
  for (int i = count - 1; i >= 0; i--) {
    if (!narrow (step, &steps[i]))
      return false;
    step *= dims[i];
  }
  return step <= INT_MAX;
}

/* cuDNN tells the size of the results itself, and there is room for exactly these. */
static bool agrees (const cudnn_shape *s, int i) {
  return (s->a[i] + 2 * s->pad[i] - s->kernel[i]) / s->stride[i] + 1 == s->b[i];
}

static bool sizes_of (const cudnn_shape *s, sizes *z) {
  bool deep = s->a[0] > 1 || s->b[0] > 1 || s->kernel[0] > 1;
  z->first = deep ? 0 : 1;
  z->count = 2;
  if (!narrow (s->items, &z->a[0]) || !narrow (s->items, &z->b[0]) ||
      !narrow (s->a_channels, &z->a[1]) || !narrow (s->b_channels, &z->b[1]) ||
      !narrow (s->b_channels, &z->w[0]) || !narrow (s->a_channels / s->groups, &z->w[1]))
    return false;
  for (int i = z->first; i < SPACE; i++, z->count++) {
    int k = i - z->first;
    if (!agrees (s, i) || !narrow (s->a[i], &z->a[2 + k]) || !narrow (s->b[i], &z->b[2 + k]) ||
        !narrow (s->kernel[i], &z->w[2 + k]) || !narrow (s->kernel[i], &z->kernel[k]) ||
        !narrow (s->stride[i], &z->stride[k]) || !narrow (s->pad[i], &z->pad[k]))
      return false;
    z->dilation[k] = 1;
  }
  return steps_of (z->a, z->count, z->a_steps) && steps_of (z->b, z->count, z->b_steps);
}

static bool describe (cudnn *d, const cudnn_shape *s, cudnn_convolution *c) {
  sizes z = { 0 };
  cudnnDataType_t type = s->dtype == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  /* The default allows tf32. */
  cudnnMathType_t math = s->dtype == DTYPE_FP32   ? CUDNN_FMA_MATH
                         : s->dtype == DTYPE_BF16 ? CUDNN_TENSOR_OP_MATH
                                                  : CUDNN_DEFAULT_MATH;
  return sizes_of (s, &z) && d->tensor_create (&c->a) == CUDNN_STATUS_SUCCESS &&
         d->tensor_create (&c->b) == CUDNN_STATUS_SUCCESS &&
         d->filter_create (&c->w) == CUDNN_STATUS_SUCCESS &&
         d->conv_create (&c->conv) == CUDNN_STATUS_SUCCESS &&
         d->tensor_set (c->a, type, z.count, z.a, z.a_steps) == CUDNN_STATUS_SUCCESS &&
         d->tensor_set (c->b, type, z.count, z.b, z.b_steps) == CUDNN_STATUS_SUCCESS &&
         d->filter_set (c->w, type, CUDNN_TENSOR_NCHW, z.count, z.w) == CUDNN_STATUS_SUCCESS &&
         d->conv_set (c->conv, z.count - 2, z.pad, z.stride, z.dilation, CUDNN_CROSS_CORRELATION,
                      CUDNN_DATA_FLOAT) == CUDNN_STATUS_SUCCESS &&
         d->conv_groups (c->conv, (int)s->groups) == CUDNN_STATUS_SUCCESS &&
         d->conv_math (c->conv, math) == CUDNN_STATUS_SUCCESS;
}

/* ---- the choice ---- */

/* Its offers, the fastest as it thinks first; a way that rounds more than the op's type is none. */
static bool choose (cudnn *d, const cudnn_shape *s, cudnn_convolution *c) {
  cudnnConvolutionFwdAlgoPerf_t f[MOST_CHOICES];
  int count = 0;
  cudnnStatus_t r =
      s->way == CUDNN_TO_B
          ? d->forward_choices (d->handle, c->a, c->w, c->conv, c->b, MOST_CHOICES, &count, f)
      : s->way == CUDNN_TO_A
          ? d->data_choices (d->handle, c->w, c->b, c->conv, c->a, MOST_CHOICES, &count, f)
          : d->filter_choices (d->handle, c->a, c->b, c->conv, c->w, MOST_CHOICES, &count, f);
  for (int i = 0; r == CUDNN_STATUS_SUCCESS && i < count; i++) {
    bool exact = s->dtype != DTYPE_FP32 || f[i].mathType == CUDNN_FMA_MATH;
    if (f[i].status != CUDNN_STATUS_SUCCESS || f[i].determinism != CUDNN_DETERMINISTIC || !exact ||
        f[i].memory > (size_t)s->workspace_bytes)
      continue;
    c->algorithm = f[i].algo;
    c->workspace_bytes = f[i].memory;
    return d->conv_math (c->conv, f[i].mathType) == CUDNN_STATUS_SUCCESS;
  }
  return false;
}

cudnn_convolution *cudnn_choose (cudnn *d, const cudnn_shape *s) {
  cudnn_convolution *c = calloc (1, sizeof *c);
  if (c == NULL)
    return NULL;
  c->way = s->way;
  if (describe (d, s, c) && choose (d, s, c))
    return c;
  cudnn_forget (d, c);
  return NULL;
}

void cudnn_forget (cudnn *d, cudnn_convolution *c) {
  if (c == NULL)
    return;
  if (c->a != NULL)
    d->tensor_destroy (c->a);
  if (c->b != NULL)
    d->tensor_destroy (c->b);
  if (c->w != NULL)
    d->filter_destroy (c->w);
  if (c->conv != NULL)
    d->conv_destroy (c->conv);
  free (c);
}

bool cudnn_run (cudnn *d, CUstream s, const cudnn_convolution *c, const cudnn_operands *o,
                error *err) {
  const float alpha = 1, beta = o->adds ? 1 : 0;
  void *room = c->workspace_bytes > 0 ? o->workspace : NULL;
  cudnnStatus_t r = d->set_stream (d->handle, (cudaStream_t)s);
  if (r != CUDNN_STATUS_SUCCESS)
    return error_set (err, ERR_device, "cudnnSetStream: status %u", r);
  switch (c->way) {
  case CUDNN_TO_B:
    r = d->forward (d->handle, &alpha, c->a, o->x, c->w, o->y, c->conv, c->algorithm, room,
                    c->workspace_bytes, &beta, c->b, o->out);
    break;
  case CUDNN_TO_A:
    r = d->backward_data (d->handle, &alpha, c->w, o->y, c->b, o->x, c->conv, c->algorithm, room,
                          c->workspace_bytes, &beta, c->a, o->out);
    break;
  case CUDNN_TO_WEIGHTS:
    r = d->backward_filter (d->handle, &alpha, c->a, o->x, c->b, o->y, c->conv, c->algorithm, room,
                            c->workspace_bytes, &beta, c->w, o->out);
    break;
  }
  return r == CUDNN_STATUS_SUCCESS || error_set (err, ERR_device, "a convolution: status %u", r);
}
