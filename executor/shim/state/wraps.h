/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Our entries in place of the driver's, one a row of wraps.def. */
#pragma once

#include "executor/driver/types.h"

#define WRAP(name, version, per_thread, symbol, wrapper, parameters) CUresult wrapper parameters;
#include "executor/shim/state/wraps.def"
#undef WRAP

/* Stream 0 of a per-thread entry is the thread's own. */
static inline CUstream own_stream (CUstream stream) {
  return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}
