/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Virtual memory management: handles, reservations, mappings of the one in the other. */
#include <stdlib.h>
#include <sys/mman.h>

#include "executor/emu/core.h"

static bool is_granular (const machine *m, uint64_t a) {
  return a % (uint64_t)m->config.granule_bytes == 0;
}

static bool is_device (const machine *m, CUmemLocation at) {
  return at.type == CU_MEM_LOCATION_TYPE_DEVICE && at.id >= 0 && at.id < m->n_cards;
}

static bool is_plain (const machine *m, const CUmemAllocationProp *p) {
  return p != NULL && p->type == CU_MEM_ALLOCATION_TYPE_PINNED && is_device (m, p->location);
}

CUresult cuMemGetAllocationGranularity (size_t *out, const CUmemAllocationProp *p,
                                        CUmemAllocationGranularity_flags flags) {
  ENTER (m, machine_enter (false, &refused));
  bool good = out != NULL && is_plain (m, p) && flags <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
  if (good)
    *out = (size_t)m->config.granule_bytes;
  return machine_leave (m, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemAddressReserve (CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr wish,
                              unsigned long long flags) {
  (void)wish; /* a hint */
  ENTER (m, machine_enter (true, &refused));
  int64_t granule = m->config.granule_bytes;
  if (out == NULL || bytes == 0 || bytes > (size_t)1 << 46 || !is_granular (m, bytes) ||
      flags != 0 || (align & (align - 1)) != 0 || align > (size_t)1 << 40)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  range r = { .bytes = (int64_t)bytes, .kind = RANGE_RESERVED, .card = contexts_card (m) };
  r.at = space_take (m, r.bytes, (int64_t)align > granule ? (int64_t)align : granule);
  if (r.at == 0)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  if (!table_insert (&m->ranges, &r)) {
    space_give (m, r.at, r.bytes);
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  }
  *out = r.at;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuMemAddressFree (CUdeviceptr at, size_t bytes) {
  ENTER (m, machine_enter (true, &refused));
  range *r = memory_range (m, at);
  const mapping *p = table_find (&m->mappings, at + bytes - 1);
  if (r == NULL || r->kind != RANGE_RESERVED || r->at != at || r->bytes != (int64_t)bytes ||
      (p != NULL && p->at >= at))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  space_give (m, r->at, r->bytes);
  table_remove (&m->ranges, r, 1);
  return machine_leave (m, CUDA_SUCCESS);
}

static handle *handle_of (machine *m, CUmemGenericAllocationHandle h) {
  if (h == 0 || h > (uint64_t)m->n_handles)
    return NULL;
  handle *x = &m->handles[h - 1];
  return x->live ? x : NULL;
}

static void handle_settle (machine *m, handle *h) {
  if (!h->released || h->maps > 0)
    return;
  place_give (m, h->card, h->place, h->bytes);
  h->live = false;
}

CUresult cuMemCreate (CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *p,
                      unsigned long long flags) {
  ENTER (m, machine_enter_uncaptured (&refused));
  if (out == NULL || bytes == 0 || bytes > (size_t)1 << 53 || !is_granular (m, bytes) ||
      !is_plain (m, p) || flags != 0)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (m->n_handles == m->handles_capacity) {
    int64_t capacity = m->handles_capacity == 0 ? 64 : 2 * m->handles_capacity;
    handle *moved = realloc (m->handles, (size_t)capacity * sizeof *moved);
    if (moved == NULL)
      return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
    m->handles = moved;
    m->handles_capacity = capacity;
  }
  int32_t on = p->location.id;
  int64_t place = place_take (m, on, (int64_t)bytes);
  if (place < 0)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  m->handles[m->n_handles++] =
      (handle){ .card = on, .bytes = (int64_t)bytes, .place = place, .live = true };
  *out = (CUmemGenericAllocationHandle)m->n_handles;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuMemRelease (CUmemGenericAllocationHandle h) {
  ENTER (m, machine_enter (true, &refused));
  handle *x = handle_of (m, h);
  if (x == NULL || x->released)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  x->released = true;
  handle_settle (m, x);
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuMemMap (CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle h,
                   unsigned long long flags) {
  ENTER (m, machine_enter_uncaptured (&refused));
  handle *x = handle_of (m, h);
  const range *r = memory_range (m, at);
  const mapping *p = bytes == 0 ? NULL : table_find (&m->mappings, at + bytes - 1);
  if (x == NULL || x->released || offset != 0 || flags != 0 || (int64_t)bytes != x->bytes ||
      !is_granular (m, at) || r == NULL || r->kind != RANGE_RESERVED ||
      at + bytes > r->at + (uint64_t)r->bytes || (p != NULL && p->at + (uint64_t)p->bytes > at))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  mapping n = { .at = at, .bytes = x->bytes, .place = x->place, .handle = (int32_t)h - 1 };
  if (!table_insert (&m->mappings, &n))
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  if (!space_map (m, at, n.bytes, n.place, PROT_NONE)) {
    table_remove (&m->mappings, table_find (&m->mappings, at), 1);
    return machine_leave (m, CUDA_ERROR_OPERATING_SYSTEM);
  }
  x->maps++;
  return machine_leave (m, CUDA_SUCCESS);
}

/* True if [at, at + bytes) is made of whole mappings of handles. */
static bool are_whole (const machine *m, uint64_t at, int64_t bytes) {
  if (bytes <= 0)
    return false;
  while (bytes > 0) {
    const mapping *p = memory_mapping (m, at);
    if (p == NULL || p->handle < 0 || p->at != at || p->bytes > bytes)
      return false;
    at += (uint64_t)p->bytes;
    bytes -= p->bytes;
  }
  return true;
}

CUresult cuMemUnmap (CUdeviceptr at, size_t size) {
  ENTER (m, machine_enter_uncaptured (&refused));
  int64_t bytes = (int64_t)size;
  if (!are_whole (m, at, bytes) || (!m->config.lenient && memory_in_use (m, at, bytes)))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (!space_unmap (m, at, bytes))
    return machine_leave (m, CUDA_ERROR_OPERATING_SYSTEM);
  mapping *first = memory_mapping (m, at), *p = first;
  for (; bytes > 0; bytes -= (p++)->bytes) {
    handle *h = &m->handles[p->handle];
    h->maps--;
    handle_settle (m, h);
  }
  table_remove (&m->mappings, first, p - first);
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuMemSetAccess (CUdeviceptr at, size_t size, const CUmemAccessDesc *d, size_t count) {
  ENTER (m, machine_enter_uncaptured (&refused));
  int64_t bytes = (int64_t)size;
  if (d == NULL || count != 1 || !is_device (m, d->location) || !are_whole (m, at, bytes) ||
      (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && d->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
       d->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  int protection = d->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE   ? PROT_NONE
                   : d->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                               : PROT_READ | PROT_WRITE;
  if (space_has_bytes (m) && mprotect ((void *)(uintptr_t)at, size, protection) != 0)
    return machine_leave (m, CUDA_ERROR_OPERATING_SYSTEM);
  machine_spend (m, bytes / m->config.granule_bytes * m->config.map_ns);
  while (bytes > 0) {
    mapping *p = memory_mapping (m, at);
    p->access = d->flags;
    at += (uint64_t)p->bytes;
    bytes -= p->bytes;
  }
  return machine_leave (m, CUDA_SUCCESS);
}
