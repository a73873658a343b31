/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory by cuMemAlloc: a range with a mapping of its own. */
#include <sys/mman.h>

#include "executor/emu/core.h"

enum { ALLOC_ROUND = 512 };

CUresult memory_allocate (machine *m, int64_t bytes, range_kind kind, uint64_t *out) {
  int64_t counted = space_round (bytes, ALLOC_ROUND), whole = space_round (bytes, EMU_PAGE);
  int32_t on = contexts_card (m);
  int64_t place = place_take (m, on, counted);
  if (place < 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  range r = { .bytes = counted, .kind = kind, .card = on };
  r.at = space_take (m, whole, EMU_PAGE);
  mapping p = { .at = r.at,
                .bytes = counted,
                .place = place,
                .handle = -1,
                .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  if (r.at != 0 && table_insert (&m->ranges, &r)) {
    if (space_map (m, r.at, whole, place, PROT_READ | PROT_WRITE) &&
        table_insert (&m->mappings, &p)) {
      *out = r.at;
      return CUDA_SUCCESS;
    }
    table_remove (&m->ranges, memory_range (m, r.at), 1);
  }
  if (r.at != 0)
    space_give (m, r.at, whole);
  place_give (m, on, place, counted);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void memory_allocation_drop (machine *m, uint64_t at) {
  range *r = memory_range (m, at);
  mapping *p = memory_mapping (m, at);
  place_give (m, r->card, p->place, p->bytes);
  space_give (m, r->at, space_round (r->bytes, EMU_PAGE));
  table_remove (&m->mappings, p, 1);
  table_remove (&m->ranges, r, 1);
}

CUresult cuMemAlloc_v2 (CUdeviceptr *out, size_t bytes) {
  ENTER (m, machine_enter_uncaptured (&refused));
  if (out == NULL || bytes == 0)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  uint64_t at = 0;
  CUresult r = bytes > (size_t)1 << 53 ? CUDA_ERROR_OUT_OF_MEMORY
                                       : memory_allocate (m, (int64_t)bytes, RANGE_ALLOC, &at);
  if (r == CUDA_SUCCESS)
    *out = at;
  return machine_leave (m, r);
}

CUresult memory_finish_all (machine *m, int32_t on) {
  CUresult r = CUDA_SUCCESS;
  for (int32_t i = 0; i < m->n_streams && r == CUDA_SUCCESS; i++)
    if ((on < 0 || m->streams[i]->card == on) && m->streams[i]->last != NULL)
      r = command_finish (m, m->streams[i]->last);
  return r;
}

/* A driver waits for the device here and does not promise it, so the race checker does not count
   on it. */
CUresult cuMemFree_v2 (CUdeviceptr at) {
  ENTER (m, machine_enter_uncaptured (&refused));
  range *r = memory_range (m, at);
  if (r == NULL || r->at != at || (r->kind != RANGE_ALLOC && r->kind != RANGE_ASYNC) || r->freed)
    return machine_leave (m, at == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  if (capture_keeps (m, at))
    return machine_leave (m, CUDA_SUCCESS);
  if (!machine_host_touches (m, at, r->bytes, true, "free"))
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  CUresult done = memory_finish_all (m, r->card);
  if (done == CUDA_SUCCESS) {
    r = memory_range (m, at);
    if (r->kind == RANGE_ASYNC)
      m->pool_used -= r->bytes;
    memory_allocation_drop (m, at);
  }
  return machine_leave (m, done);
}

CUresult cuMemGetInfo_v2 (size_t *free_bytes, size_t *total) {
  ENTER (m, machine_enter (true, &refused));
  if (free_bytes == NULL || total == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *total = (size_t)m->config.memory_bytes;
  *free_bytes = (size_t)(m->config.memory_bytes - m->cards[contexts_card (m)].used_bytes);
  return machine_leave (m, CUDA_SUCCESS);
}
