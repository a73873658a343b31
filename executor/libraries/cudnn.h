/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one door to cuDNN, which is opened at run time.  Of the algorithms that it offers for a
   convolution, the first is taken that gives the same bits in every run and works in what it is
   given. */
#pragma once

#include "executor/driver/driver.h"
#include "trace/compute.h"

typedef struct cudnn cudnn;
typedef struct cudnn_convolution cudnn_convolution;

/* A convolution with data a (items, a_channels, a) and results b (items, b_channels, b). */
typedef enum cudnn_way { CUDNN_TO_B, CUDNN_TO_A, CUDNN_TO_WEIGHTS } cudnn_way;

typedef struct cudnn_shape {
  compute_dtype dtype;
  cudnn_way way;
  int64_t items, a_channels, b_channels, groups;
  int64_t a[3], b[3], kernel[3], stride[3], pad[3];
  int64_t workspace_bytes; /* no more than this */
} cudnn_shape;

/* path NULL: wherever the system finds the version that we know. A context is current. NULL and no
   error where there is none. */
bool cudnn_open (const char *path, cudnn **out, error *err) MUST_CHECK;
void cudnn_close (cudnn *d); /* NULL is allowed */
int64_t cudnn_version (const cudnn *d);

/* NULL where cuDNN has nothing that fits. Goes with cudnn_forget. */
cudnn_convolution *cudnn_choose (cudnn *d, const cudnn_shape *shape);
void cudnn_forget (cudnn *d, cudnn_convolution *c); /* NULL is allowed */

/* x: a or dy; y: weights or the other side: the operands in the order of the op's. adds: to what is
   in `out`. */
typedef struct cudnn_operands {
  const void *x, *y;
  void *workspace, *out;
  bool adds;
} cudnn_operands;

bool cudnn_run (cudnn *d, CUstream s, const cudnn_convolution *c, const cudnn_operands *o,
                error *err) MUST_CHECK;
