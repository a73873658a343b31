/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pinned host memory. */
#include <sys/mman.h>

#include "executor/emu/core.h"

static CUresult pin (machine *m, range r) {
  if (m->config.pinned_bytes > 0 && r.bytes > m->config.pinned_bytes - m->pinned_bytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!table_insert (&m->ranges, &r))
    return CUDA_ERROR_OUT_OF_MEMORY;
  m->pinned_bytes += r.bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc (void **out, size_t bytes, unsigned int flags) {
  ENTER (m, machine_enter_uncaptured (&refused));
  if (out == NULL || bytes == 0 || flags > 7)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (bytes > (size_t)1 << 46)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  range r = { .bytes = (int64_t)bytes, .kind = RANGE_HOST, .card = contexts_card (m) };
  size_t whole = (size_t)space_round (r.bytes, EMU_PAGE);
  void *at = mmap (NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
  if (at == MAP_FAILED)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  r.at = (uintptr_t)at;
  CUresult done = pin (m, r);
  if (done == CUDA_SUCCESS)
    *out = at;
  else
    munmap (at, whole);
  return machine_leave (m, done);
}

static CUresult unpin (machine *m, void *at, range_kind kind) {
  range *r = memory_range (m, (uintptr_t)at);
  if (r == NULL || r->at != (uintptr_t)at || r->kind != kind)
    return kind == RANGE_HOST ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (!machine_host_touches (m, r->at, r->bytes, true, "free"))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (memory_in_use (m, r->at, r->bytes)) {
    if (!m->config.lenient)
      return CUDA_ERROR_INVALID_VALUE;
    CUresult done = memory_finish_all (m, -1);
    if (done != CUDA_SUCCESS)
      return done;
    r = memory_range (m, (uintptr_t)at);
  }
  m->pinned_bytes -= r->bytes;
  if (kind == RANGE_HOST)
    munmap (at, (size_t)space_round (r->bytes, EMU_PAGE));
  table_remove (&m->ranges, r, 1);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost (void *at) {
  ENTER (m, machine_enter (true, &refused));
  return machine_leave (m, unpin (m, at, RANGE_HOST));
}

CUresult cuMemHostRegister_v2 (void *at, size_t bytes, unsigned int flags) {
  ENTER (m, machine_enter (true, &refused));
  if (at == NULL || bytes == 0 || bytes > (size_t)1 << 46 || flags > 15)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  range r = { .at = (uintptr_t)at,
              .bytes = (int64_t)bytes,
              .kind = RANGE_REGISTERED,
              .card = contexts_card (m) };
  const range *below = table_find (&m->ranges, r.at + bytes - 1);
  if (below != NULL && below->at + (uint64_t)below->bytes > r.at)
    return machine_leave (m, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  return machine_leave (m, pin (m, r));
}

CUresult cuMemHostUnregister (void *at) {
  ENTER (m, machine_enter (true, &refused));
  return machine_leave (m, unpin (m, at, RANGE_REGISTERED));
}
