/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same for numbers in bf16. */
#define KERNEL_BF16 1
#include "executor/gpu/kernels.cu"

#include "executor/gpu/kernel_ops.h"

kernel_on_host *const kernel_ops_bf16[KERNELS] = {
#define COMPUTE(kind, ...) ferry_bf16_##kind,
#include "trace/compute.def"
  ferry_bf16_add_bias
};
