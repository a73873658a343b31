/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops by the GPU's kernels, which on the host are functions: what the emulated device runs where it
   stands for a GPU, and what a step by kernels is compared with in plain memory. */
#pragma once

#include "executor/gpu/kernel_work.h"

/* One for each kind, and what does a part of an op that a library leaves out. */
enum { KERNEL_ADD_BIAS = COMPUTE_KINDS, KERNELS };

typedef void kernel_on_host (const kernel_work k);
extern kernel_on_host *const kernel_ops_fp32[KERNELS], *const kernel_ops_bf16[KERNELS];

/* Names of the kernels in a module of either type. */
extern const char *const kernel_names_fp32[KERNELS], *const kernel_names_bf16[KERNELS];

/* Does the whole call, all stretches and phases, as a GPU would be made to. workspace: of the op;
   its size decides how some sums are made. */
bool kernel_ops_run (const ops_call *call, int64_t workspace_bytes, error *err) MUST_CHECK;
