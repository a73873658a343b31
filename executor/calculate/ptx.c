/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The GPU's kernels as nvcc made them, where it was there. */
#include "config.h"

#include "executor/calculate/cuda.h"

#ifdef HAVE_CUDA_H
#include "executor/calculate/ptx.inc"
const char *const calculate_ptx_fp32 = (const char *)fp32_ptx;
const char *const calculate_ptx_bf16 = (const char *)bf16_ptx;
#else
const char *const calculate_ptx_fp32 = NULL;
const char *const calculate_ptx_bf16 = NULL;
#endif
