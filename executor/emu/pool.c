/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stream-ordered allocation, from the one default pool. */
#include <string.h>

#include "executor/emu/core.h"

/* The next free that is queued on the stream: its memory may be given to what comes after it. The
   host waits for it, where a driver would hand the memory over at once. */
static command *queued_free (const stream *s) {
  for (command *c = s->head; c != NULL; c = c->next)
    if (c->kind == COMMAND_FREE)
      return c;
  return NULL;
}

/* There for all launches of the graph. */
static CUresult allocate_captured (machine *m, stream *s, CUdeviceptr *out, size_t bytes) {
  uint64_t at = 0;
  CUresult r = bytes > (size_t)1 << 53 ? CUDA_ERROR_OUT_OF_MEMORY
                                       : memory_allocate (m, (int64_t)bytes, RANGE_ALLOC, &at);
  if (r == CUDA_SUCCESS && (r = capture_allocation (m, s, at)) != CUDA_SUCCESS)
    memory_allocation_drop (m, at);
  if (r == CUDA_SUCCESS)
    *out = at;
  return r;
}

CUresult cuMemAllocAsync (CUdeviceptr *out, size_t bytes, CUstream on) {
  ENTER (m, machine_enter (true, &refused));
  stream *s = stream_of (m, on);
  if (out == NULL || bytes == 0 || s == NULL)
    return machine_leave (m, s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE);
  uint64_t at = 0;
  if (s->capture != NULL)
    return machine_leave (m, allocate_captured (m, s, out, bytes));
  CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
  while (bytes <= (size_t)1 << 53 &&
         (r = memory_allocate (m, (int64_t)bytes, RANGE_ASYNC, &at)) == CUDA_ERROR_OUT_OF_MEMORY) {
    command *f = queued_free (s);
    if (f == NULL || command_finish (m, f) != CUDA_SUCCESS)
      break;
  }
  command *c = r == CUDA_SUCCESS ? command_new (m, s, COMMAND_RECORD) : NULL;
  if (c == NULL) {
    if (r == CUDA_SUCCESS)
      memory_allocation_drop (m, at);
    return machine_leave (m, m->stuck != CUDA_SUCCESS ? m->stuck : CUDA_ERROR_OUT_OF_MEMORY);
  }
  m->pool_used += memory_range (m, at)->bytes;
  if (m->pool_used > m->pool_used_high)
    m->pool_used_high = m->pool_used;
  if (m->pool_used > m->pool_reserved_high)
    m->pool_reserved_high = m->pool_used;
  (void)command_touch (c, &(touch){ .at = at,
                                    .bytes = (int64_t)bytes,
                                    .how = EMU_WRITES | EMU_BEGINS }); /* there is room for one */
  *out = at;
  return machine_leave (m, command_issue (m, c));
}

CUresult cuMemAllocFromPoolAsync (CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream on) {
  CUmemoryPool own;
  CUresult r = cuDeviceGetDefaultMemPool (&own, 0); /* which is every device's */
  if (r != CUDA_SUCCESS)
    return r;
  return pool == own ? cuMemAllocAsync (out, bytes, on) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync (CUdeviceptr at, CUstream on) {
  ENTER (m, machine_enter (true, &refused));
  stream *s = stream_of (m, on);
  range *r = memory_range (m, at);
  if (s == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  if (r == NULL || r->at != at || (r->kind != RANGE_ASYNC && r->kind != RANGE_ALLOC) || r->freed)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (s->capture != NULL)
    return machine_leave (m, capture_free (m, s, at));
  if (capture_keeps (m, at))
    return machine_leave (m, CUDA_SUCCESS);
  command *c = command_new (m, s, COMMAND_FREE);
  if (c == NULL)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  (void)command_touch (c, &(touch){ .at = at,
                                    .bytes = r->bytes,
                                    .how = EMU_WRITES | EMU_BEGINS }); /* there is room for one */
  c->as.freed = at;
  r->freed = true;
  return machine_leave (m, command_issue (m, c));
}

void memory_free_now (machine *m, uint64_t at) {
  const range *r = memory_range (m, at);
  if (r->kind == RANGE_ASYNC)
    m->pool_used -= r->bytes;
  memory_allocation_drop (m, at);
}

static bool is_pool (const machine *m, CUmemoryPool pool) {
  return (const void *)pool == (const void *)&m->pool_used;
}

CUresult cuDeviceGetDefaultMemPool (CUmemoryPool *out, CUdevice d) {
  ENTER (m, machine_enter (false, &refused));
  if (out == NULL || d < 0 || d >= m->n_cards)
    return machine_leave (m, out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
  *out = (CUmemoryPool)(void *)&m->pool_used;
  return machine_leave (m, CUDA_SUCCESS);
}

/* The pool reserves as much as is used: freed memory goes back at once, as far as anyone can see.
 */
static bool pool_value (machine *m, CUmemPool_attribute a, void *value, bool set) {
  int64_t *high = a == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ? &m->pool_reserved_high
                  : a == CU_MEMPOOL_ATTR_USED_MEM_HIGH   ? &m->pool_used_high
                                                         : NULL;
  uint64_t v = 0;
  if (a >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
      a <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    int *flag = &m->pool_reuse[a - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
    memcpy (set ? (void *)flag : value, set ? value : (void *)flag, sizeof *flag);
    return true;
  }
  if (set)
    memcpy (&v, value, sizeof v);
  if (a == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    if (set)
      m->pool_threshold = (int64_t)v;
    v = (uint64_t)m->pool_threshold;
  } else if (high != NULL) {
    if (set && v != 0)
      return false;
    if (set)
      *high = m->pool_used;
    v = (uint64_t)*high;
  } else if (!set &&
             (a == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || a == CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
    v = (uint64_t)m->pool_used;
  else
    return false;
  if (!set)
    memcpy (value, &v, sizeof v);
  return true;
}

static CUresult pool_attribute (CUmemoryPool pool, CUmemPool_attribute a, void *value, bool set) {
  ENTER (m, machine_enter (false, &refused));
  bool good = is_pool (m, pool) && value != NULL && pool_value (m, a, value, set);
  return machine_leave (m, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemPoolSetAttribute (CUmemoryPool pool, CUmemPool_attribute a, void *value) {
  return pool_attribute (pool, a, value, true);
}

CUresult cuMemPoolGetAttribute (CUmemoryPool pool, CUmemPool_attribute a, void *value) {
  return pool_attribute (pool, a, value, false);
}

CUresult cuMemPoolTrimTo (CUmemoryPool pool, size_t keep) {
  (void)keep;
  ENTER (m, machine_enter (false, &refused));
  return machine_leave (m, is_pool (m, pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
