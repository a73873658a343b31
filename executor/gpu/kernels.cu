/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A kernel for every kind of op, all of one type of numbers: compiled by nvcc once for fp32 and, with
   KERNEL_BF16, once for bf16; and the same for the host, where host.c includes it. */
#include "executor/gpu/attention.cu"
#include "executor/gpu/conv.cu"
#include "executor/gpu/loss.cu"
#include "executor/gpu/map.cu"
#include "executor/gpu/norm.cu"
#include "executor/gpu/pool.cu"
#include "executor/gpu/products.cu"
#include "executor/gpu/recurrent.cu"
#include "executor/gpu/rotary.cu"
#include "executor/gpu/rows.cu"
#include "executor/gpu/update.cu"
