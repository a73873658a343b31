/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Allocations are served from the arena, and questions about its addresses are answered as the
   driver would of its own memory, whatever is on the device just then. */
#include <string.h>

#include "executor/shim/calls/calls.h"
#include "executor/shim/calls/capture.h"
#include "executor/shim/follow/follow.h"
#include "executor/shim/record/order.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/wraps.h"

/* The memory that the program is told of: the budget, and what the host takes. */
static int64_t told_total (const shim *s) {
  return s->all_chunks * s->chunk_bytes +
         (s->block->config.mode == SHIM_RUN ? s->block->config.host_bytes : 0);
}

/* Small tensors take granules, which stay. */
static int64_t told_free (const shim *s) {
  int64_t bytes = told_total (s) - s->live_bytes - s->n_slabs * s->chunk_bytes;
  return bytes < 0 ? 0 : bytes;
}

static bool can_be_had (const shim *s, int64_t bytes) {
  return bytes <= (s->all_chunks - s->n_slabs) * s->chunk_bytes && bytes <= told_free (s);
}

CUresult memory_serve (shim *s, CUdeviceptr *out, size_t bytes, CUstream stream, bool waits) {
  CUcontext now = NULL;
  if (out == NULL || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult r = s->real.ctx_get_current (&now);
  if (r != CUDA_SUCCESS)
    return r; /* the driver has ended, as it does while the program's other threads go on */
  if (now != s->context) {
    if (!s->block->refused)
      shim_say (s, "a second gpu context allocated memory; one gpu and one context per process is "
                   "supported; use the primary context in all threads");
    s->block->refused = 1;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (bytes > (size_t)1 << 46 || !can_be_had (s, (int64_t)bytes)) {
    if (!s->said_short && s->block->config.mode == SHIM_RUN)
      shim_say (s,
                "an allocation of %lld bytes is more than the budget of %lld bytes leaves, beside "
                "small tensors, or than --host can hold with the %lld bytes that are there; raise "
                "--host or the budget",
                (long long)bytes, (long long)s->block->config.budget_bytes,
                (long long)s->live_bytes);
    s->said_short = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if ((int64_t)bytes < s->chunk_bytes / 2) {
    CUdeviceptr at = small_allocate (s, (int64_t)bytes, stream, waits);
    if (at != 0)
      *out = at;
    return at != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  int32_t slot = follow_allocate (s, (int64_t)bytes);
  int32_t t = area_allocate (s, (int64_t)bytes, slot);
  if (t == NONE)
    return CUDA_ERROR_OUT_OF_MEMORY;
  s->tensors[t].pooled = !waits;
  if (!waits)
    pool_took (s, (int64_t)bytes);
  record_allocate (s, t);
  follow_allocated (s, t);
  *out = s->tensors[t].at;
  return CUDA_SUCCESS;
}

static bool is_shut (void) {
  shim *s = shim_of_process ();
  if (s == NULL || !s->shut)
    return false;
  if (__atomic_exchange_n (&s->over, false, __ATOMIC_RELAXED))
    shim_say (s, "the program ended its context and goes on: under a budget there is no memory in "
                 "another one; give what comes after it a run of its own");
  return true;
}

CUresult wrap_alloc (CUdeviceptr *out, size_t bytes) {
  shim *s;
  if (!shim_enter (&s))
    return is_shut () ? CUDA_ERROR_OUT_OF_MEMORY : shim_real ()->mem_alloc (out, bytes);
  return shim_leave (s, memory_serve (s, out, bytes, NULL, true));
}

/* Rows begin at multiples of 512 bytes. */
CUresult wrap_alloc_pitch (CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                           unsigned int element) {
  CUresult (*real) (CUdeviceptr *, size_t *, size_t, size_t, unsigned int) =
      shim_symbol ("cuMemAllocPitch_v2");
  shim *s;
  if (!shim_enter (&s))
    return is_shut ()     ? CUDA_ERROR_OUT_OF_MEMORY
           : real == NULL ? CUDA_ERROR_NOT_FOUND
                          : real (out, pitch, width, height, element);
  if (pitch == NULL || width > (size_t)1 << 40 || height > (size_t)1 << 40)
    return shim_leave (s, CUDA_ERROR_INVALID_VALUE);
  *pitch = (width + 511) / 512 * 512;
  size_t bytes;
  if (__builtin_mul_overflow (*pitch, height, &bytes))
    return shim_leave (s, CUDA_ERROR_OUT_OF_MEMORY);
  return shim_leave (s, memory_serve (s, out, bytes, NULL, true));
}

CUresult wrap_alloc_async (CUdeviceptr *out, size_t bytes, CUstream stream) {
  shim *s;
  if (!shim_enter (&s))
    return is_shut () ? CUDA_ERROR_OUT_OF_MEMORY
                      : shim_real ()->mem_alloc_async (out, bytes, stream);
  return shim_leave (s, capture_has (s, stream) ? capture_allocate (s, out, bytes, stream)
                                                : memory_serve (s, out, bytes, stream, false));
}

CUresult wrap_alloc_async_ptsz (CUdeviceptr *out, size_t bytes, CUstream stream) {
  return wrap_alloc_async (out, bytes, own_stream (stream));
}

CUresult wrap_alloc_pool (CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  shim *s;
  if (!shim_enter (&s))
    return is_shut () ? CUDA_ERROR_OUT_OF_MEMORY
                      : shim_real ()->mem_alloc_from_pool (out, bytes, pool, stream);
  return shim_leave (s, capture_has (s, stream) ? capture_allocate (s, out, bytes, stream)
                                                : memory_serve (s, out, bytes, stream, false));
}

CUresult wrap_alloc_pool_ptsz (CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return wrap_alloc_pool (out, bytes, pool, own_stream (stream));
}

CUresult memory_release (shim *s, CUdeviceptr at, uint64_t stream_bits) {
  if (capture_keeps (s, at))
    return CUDA_SUCCESS;
  int32_t t = area_tensor_at (s, at);
  if (t == NONE || s->tensors[t].at != at)
    return small_free (s, at, stream_bits) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (!s->tensors[t].live)
    return CUDA_ERROR_INVALID_VALUE;
  record_free (s, t);
  area_free (s, t, stream_bits, follow_frees (s, t));
  return CUDA_SUCCESS;
}

/* The driver waits for the device here. */
CUresult wrap_free (CUdeviceptr at) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->mem_free (at);
  if (!area_has (s, at))
    return shim_leave (s, s->real.mem_free (at));
  (void)shim_leave (s, CUDA_SUCCESS); /* nobody waits for the device with the lock */
  bool was = shim_set_inside (true);
  CUresult r = shim_real ()->ctx_synchronize ();
  (void)shim_set_inside (was);
  if (r != CUDA_SUCCESS || !shim_enter (&s))
    return shim_look (r);
  order_device (s->order);
  return shim_leave (s, memory_release (s, at, 0));
}

CUresult wrap_free_async (CUdeviceptr at, CUstream stream) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->mem_free_async (at, stream);
  if (!area_has (s, at))
    return shim_leave (s, s->real.mem_free_async (at, stream));
  if (capture_has (s, stream))
    return shim_leave (s, capture_free (s, at, stream));
  return shim_leave (s, memory_release (s, at, (uint64_t)1 << stream_bit (s, stream)));
}

CUresult wrap_free_async_ptsz (CUdeviceptr at, CUstream stream) {
  return wrap_free_async (at, own_stream (stream));
}

CUresult wrap_get_info (size_t *free_bytes, size_t *total) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->mem_get_info (free_bytes, total);
  if (free_bytes == NULL || total == NULL)
    return shim_leave (s, CUDA_ERROR_INVALID_VALUE);
  *total = (size_t)told_total (s);
  *free_bytes = (size_t)told_free (s);
  return shim_leave (s, CUDA_SUCCESS);
}

/* ---- the pool, as a framework asks for it ---- */

CUresult wrap_pool_get (CUmemoryPool pool, CUmemPool_attribute a, void *value) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->pool_get (pool, a, value);
  uint64_t v;
  switch (a) {
  case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
  case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    v = (uint64_t)s->pool_bytes;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    v = (uint64_t)s->pool_reserved_high;
    break;
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    v = (uint64_t)s->pool_used_high;
    break;
  default:
    return shim_leave (s, s->real.pool_get (pool, a, value));
  }
  if (value == NULL)
    return shim_leave (s, CUDA_ERROR_INVALID_VALUE);
  memcpy (value, &v, sizeof v);
  return shim_leave (s, CUDA_SUCCESS);
}

CUresult wrap_pool_set (CUmemoryPool pool, CUmemPool_attribute a, void *value) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->pool_set (pool, a, value);
  if (a != CU_MEMPOOL_ATTR_USED_MEM_HIGH && a != CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
    return shim_leave (s, s->real.pool_set (pool, a, value));
  uint64_t v = 1;
  if (value != NULL)
    memcpy (&v, value, sizeof v);
  if (v != 0) /* a driver takes no other */
    return shim_leave (s, CUDA_ERROR_INVALID_VALUE);
  *(a == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? &s->pool_used_high : &s->pool_reserved_high) =
      s->pool_bytes;
  return shim_leave (s, CUDA_SUCCESS);
}

/* ---- questions about addresses ---- */

/* The tensor or the small piece around an address. */
static bool stretch_at (const shim *s, CUdeviceptr at, CUdeviceptr *first, size_t *bytes) {
  int32_t i = area_tensor_at (s, at);
  if (i >= 0 && s->tensors[i].live && at - s->tensors[i].at < (uint64_t)s->tensors[i].bytes) {
    *first = s->tensors[i].at;
    *bytes = (size_t)s->tensors[i].bytes;
    return true;
  }
  int64_t small = i >= 0 ? 0 : small_bytes_at (s, at, first);
  *bytes = (size_t)small;
  return small > 0;
}

/* The value of an attribute, and how many of its bytes count. */
typedef struct attribute {
  uint64_t word;
  size_t bytes; /* 0: only the driver knows it */
} attribute;

static uint64_t pool_word (const shim *s) {
  CUmemoryPool pool = NULL;
  if (s->real.device_default_pool != NULL)
    s->real.device_default_pool (&pool, s->real.device);
  return (uintptr_t)pool;
}

static attribute attribute_at (const shim *s, CUpointer_attribute a, CUdeviceptr at,
                               CUdeviceptr first, size_t bytes) {
  switch (a) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    return (attribute){ (uintptr_t)s->context, sizeof (void *) };
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return (attribute){ CU_MEMORYTYPE_DEVICE, sizeof (int) };
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    return (attribute){ at, sizeof at };
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    return (attribute){ 0, sizeof (void *) };
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    return (attribute){ 0, sizeof (int) };
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    return (attribute){ (uint64_t)s->real.device, sizeof (int) };
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    return (attribute){ first, sizeof first };
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    return (attribute){ bytes, sizeof bytes };
  case CU_POINTER_ATTRIBUTE_MAPPED:
    return (attribute){ 1, sizeof (int) };
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    return (attribute){ pool_word (s), sizeof (void *) };
  default:
    return (attribute){ 0, 0 };
  }
}

/* False: there is no answer, and nothing is written but whether it is mapped, and zeros where
   `else_zero`. */
static bool answer (const shim *s, CUpointer_attribute a, void *out, CUdeviceptr at,
                    bool else_zero) {
  CUdeviceptr first = 0;
  size_t bytes = 0;
  bool known = stretch_at (s, at, &first, &bytes);
  attribute v = attribute_at (s, a, at, first, bytes);
  if (v.bytes == 0)
    return else_zero ? s->real.pointer_attributes (1, &a, &out, at) == CUDA_SUCCESS
                     : s->real.pointer_attribute (out, a, at) == CUDA_SUCCESS;
  bool said = a == CU_POINTER_ATTRIBUTE_MAPPED;
  known = known && a != CU_POINTER_ATTRIBUTE_HOST_POINTER;
  if (!known)
    v.word = 0;
  if (known || said || else_zero)
    memcpy (out, &v.word, v.bytes);
  return known || said;
}

CUresult wrap_pointer (void *out, CUpointer_attribute a, CUdeviceptr at) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->pointer_attribute (out, a, at);
  if (!area_has (s, at))
    return shim_leave (s, s->real.pointer_attribute (out, a, at));
  bool good = out != NULL && answer (s, a, out, at, false);
  return shim_leave (s, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* No answer is no error here, but zero. */
CUresult wrap_pointers (unsigned int count, CUpointer_attribute *a, void **out, CUdeviceptr at) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->pointer_attributes (count, a, out, at);
  if (!area_has (s, at) || a == NULL || out == NULL)
    return shim_leave (s, s->real.pointer_attributes (count, a, out, at));
  for (unsigned int i = 0; i < count; i++)
    if (out[i] == NULL)
      return shim_leave (s, CUDA_ERROR_INVALID_VALUE);
  for (unsigned int i = 0; i < count; i++)
    (void)answer (s, a[i], out[i], at, true);
  return shim_leave (s, CUDA_SUCCESS);
}

CUresult wrap_range (CUdeviceptr *base, size_t *size, CUdeviceptr at) {
  shim *s;
  CUdeviceptr first = 0;
  size_t bytes = 0;
  if (!shim_enter (&s))
    return shim_real ()->address_range (base, size, at);
  if (!area_has (s, at))
    return shim_leave (s, s->real.address_range (base, size, at));
  if (!stretch_at (s, at, &first, &bytes))
    return shim_leave (s, CUDA_ERROR_NOT_FOUND);
  if (base != NULL)
    *base = first;
  if (size != NULL)
    *size = bytes;
  return shim_leave (s, CUDA_SUCCESS);
}

/* ---- the end of a stream ---- */

static void turn (uint64_t *bits, uint64_t gone, uint64_t successor) {
  if ((*bits & gone) != 0)
    *bits = (*bits & ~gone) | successor;
}

uint64_t stream_all (const shim *s) {
  uint64_t all = (uint64_t)1 << STREAM_LEGACY;
  for (int32_t i = FIRST_USER_STREAM; i < s->n_streams; i++)
    if (s->streams[i] != NULL)
      all |= (uint64_t)1 << i;
  return all;
}

static void turn_all (shim *s, int32_t from) {
  const uint64_t bit = (uint64_t)1 << from, successor = (uint64_t)1 << STREAM_IN;
  for (int32_t t = 0; t < s->n_tensors; t++) {
    turn (&s->tensors[t].users, bit, successor);
    turn (&s->tensors[t].past, bit, successor);
    if ((s->tensors[t].behind & bit) != 0)
      s->tensors[t].behind_copy[STREAM_IN] = s->work[STREAM_IN];
    turn (&s->tensors[t].behind, bit, successor);
    turn (&s->tensors[t].behind_seen, bit, 0);
    s->tensors[t].first = s->tensors[t].first == from ? NONE : s->tensors[t].first;
  }
  for (int32_t c = 0; c < s->n_chunks; c++)
    turn (&s->chunks[c].pending, bit, successor);
  turn (&s->fence, bit, successor);
  turn (&s->fence_seen, bit, 0);
  turn (&s->small_pending, bit, successor);
  turn (&s->small_seen, bit, 0);
}

void stream_hand_over (shim *s, CUstream stream) {
  for (int32_t i = FIRST_USER_STREAM; i < s->n_streams && stream != NULL; i++)
    if (s->streams[i] == stream) {
      wait_for (s, s->in, STREAM_IN, (uint64_t)1 << i);
      (void)copy_issued (s, STREAM_IN);
      memset (s->behind[i], 0, sizeof s->behind[i]);
      turn_all (s, i);
      order_stream_ended (s->order, i);
    }
}

/* Nobody can ask it for an event any more. */
CUresult wrap_stream_destroy (CUstream stream) {
  shim *s;
  if (!shim_enter (&s))
    return shim_real ()->stream_destroy (stream);
  for (int32_t i = FIRST_USER_STREAM; i < s->n_streams && stream != NULL; i++)
    if (s->streams[i] == stream) {
      follow_disturbed (s);
      stream_hand_over (s, stream);
      s->streams[i] = NULL;
    }
  return shim_leave (s, s->real.stream_destroy (stream));
}
