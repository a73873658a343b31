/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The GPU's kernels compiled for the host: each is a function that does what all threads do. */
#include "executor/gpu/kernels.cu"

#include "executor/gpu/kernel_ops.h"

kernel_on_host *const kernel_ops_fp32[KERNELS] = {
#define COMPUTE(kind, ...) ferry_op_##kind,
#include "trace/compute.def"
  ferry_op_add_bias
};
