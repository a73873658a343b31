/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers that a stream writes or waits for.  In memory of ours they would have to stay where they
   are for as long as a stream waits, and nobody says for how long that is; elsewhere they are the
   driver's affair. */
#include "executor/shim/memory/memory.h"
#include "executor/shim/state/wraps.h"

static bool is_ours (CUdeviceptr at) {
  const shim *s = shim_of_process ();
  return s != NULL && s->started && !s->alone && !shim_is_inside () && area_has (s, at);
}

#define VALUE(wrapper, name, symbol, type)                                                 \
  CUresult wrapper (CUstream stream, CUdeviceptr at, type value, unsigned int flags) {     \
    CUresult (*real) (CUstream, CUdeviceptr, type, unsigned int) = shim_symbol (symbol);   \
    if (is_ours (at))                                                                      \
      return shim_refuse (name, "a number in device memory that a stream writes or reads", \
                          "have it in memory of cuMemHostAlloc");                          \
    return real == NULL ? CUDA_ERROR_NOT_FOUND : real (stream, at, value, flags);          \
  }

#define VALUES(wrapper, name, type)                \
  VALUE (wrapper, name, name, type)                \
  VALUE (wrapper##_ptsz, name, name "_ptsz", type) \
  VALUE (wrapper##_new, name, name "_v2", type)    \
  VALUE (wrapper##_new_ptsz, name, name "_v2_ptsz", type)

VALUES (wrap_wait_32, "cuStreamWaitValue32", uint32_t)
VALUES (wrap_wait_64, "cuStreamWaitValue64", uint64_t)
VALUES (wrap_write_32, "cuStreamWriteValue32", uint32_t)
VALUES (wrap_write_64, "cuStreamWriteValue64", uint64_t)
