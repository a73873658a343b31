/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops on a GPU: a kernel of executor/gpu for each kind, and libraries where they are found.  The
   emulated device runs the same kernels, compiled for the host. */
#pragma once

#include "executor/calculate/calculate.h"
#include "executor/gpu/kernel_ops.h"

extern const calculator calculator_cuda;

/* The kernels as text that a driver compiles; NULL: not built in. */
extern const char *const calculate_ptx_fp32, *const calculate_ptx_bf16;
