/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuBLAS and cuDNN, where they are found, do an op's products and convolutions.  What they do
   not take, or could only do in more memory than the plan gives the op, our kernels do. Which of
   them does an op depends on its sizes alone, so it is the same under every plan. */
#pragma once

#include "executor/libraries/cublas.h"
#include "executor/libraries/cudnn.h"
#include "executor/gpu/kernel_work.h"

typedef struct libraries_options {
  bool search;            /* in the system's folders */
  const char *blas, *dnn; /* files, whether or not they are searched for; NULL: none */
} libraries_options;

typedef struct libraries {
  cublas *blas; /* NULL: not found */
  cudnn *dnn;
} libraries;

/* A context is current. */
bool libraries_open (libraries *l, const libraries_options *o, error *err) MUST_CHECK;
void libraries_close (libraries *l);
/* "cuBLAS 13.1.0 and cuDNN 9.13.0"; empty where there is none. */
enum { LIBRARIES_TEXT = 96 };
const char *libraries_name (const libraries *l, char text[LIBRARIES_TEXT]);

/* A stretch of an op, prepared. */
typedef struct library_call {
  bool takes;              /* else our kernels */
  cudnn_convolution *conv; /* NULL: products */
} library_call;

library_call libraries_prepare (libraries *l, const kernel_work *w);
void libraries_forget (libraries *l, library_call *c);
/* *bias: a bias is still to be added. *done false: our kernels must do it after all. */
bool libraries_run (libraries *l, CUstream s, const library_call *c, const kernel_work *w,
                    bool *done, bool *bias, error *err) MUST_CHECK;
/* The work that is left then: that of the kernel that adds a bias. */
kernel_work libraries_bias (const kernel_work *w);
