/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ferry's own kernels in the program's context. */
#pragma once

#include "executor/shim/state/shim.h"

/* They are loaded when they are first asked for. false: the device takes none of ours. */
bool kernels_ready (shim *s);

/* A digest of device memory is added to *to, behind what is queued on the stream. */
bool digest_queue (shim *s, CUdeviceptr at, int64_t bytes, CUdeviceptr to, CUstream stream);

/* Bytes of the device go to pinned memory, unless the words at `a` and `b` are equal; *told is 1
   then. */
typedef struct unless {
  CUdeviceptr from;
  const void *to;
  int64_t bytes;
  CUdeviceptr a, b;
  const void *told;
} unless;
bool copy_unless_queue (shim *s, const unless *u, CUstream stream);
