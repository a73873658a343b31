/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A copy or a fill as an op. */
#ifndef FERRY_EXECUTOR_SHIM_COPIES_H
#define FERRY_EXECUTOR_SHIM_COPIES_H

#include "executor/shim/shim.h"

/* The stretch of an op; a host address is nobody's. */
void copy_about (op *o, const char *name, CUdeviceptr to, CUdeviceptr from, size_t bytes);

/* A copy may name the host's memory by the same kind of address. Memory that nobody has registered
   is nobody's to the driver, and the host's. */
bool copy_is_host (CUdeviceptr at);

/* `call` makes the op's call. */
#define AS_OP(kind, stream, blocks, name, to, from, bytes, payload, call) \
  op o;                                                                   \
  if (!op_enter (&o, kind, stream, blocks))                               \
    return call;                                                          \
  copy_about (&o, name, to, from, bytes);                                      \
  if (payload)                                                            \
    op_payload (&o, to, (const void *)(uintptr_t)(from), bytes);          \
  CUresult r = op_prepare (&o);                                           \
  if (r != CUDA_SUCCESS)                                                  \
    o.waits = false;                                                      \
  else                                                                    \
    r = call;                                                             \
  return op_leave (&o, r)

#endif
