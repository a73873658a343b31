/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory as equal chunks, their mappings, and the order between streams.  An event is made
   for the out stream and recorded nowhere else, so one that was recorded again only promises more;
   likewise for the in stream.  For a program's stream an event is recorded when somebody has to
   wait, and waited for at once: later than needed is still right. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "executor/shim/memory/memory.h"
#include "executor/shim/state/guard.h"

enum { RETRIES = 5000 };

static CUmemAllocationProp device_memory (const shim *s) {
  CUmemAllocationProp p = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = s->real.device;
  return p;
}

/* Memory of a process that has just ended may still be on its way back. */
static CUresult create (shim *s, CUmemGenericAllocationHandle *out) {
  const struct timespec moment = { 0, 1000000 };
  CUmemAllocationProp p = device_memory (s);
  CUresult r = s->real.mem_create (out, (size_t)s->chunk_bytes, &p, 0);
  for (int i = 0; r == CUDA_ERROR_OUT_OF_MEMORY && s->group.at != NULL && i < RETRIES; i++) {
    nanosleep (&moment, NULL);
    r = s->real.mem_create (out, (size_t)s->chunk_bytes, &p, 0);
  }
  return r;
}

int32_t chunk_new (shim *s) {
  if (s->n_chunks >= s->most_chunks)
    return NONE;
  if (s->n_chunks == s->chunks_capacity) {
    int32_t capacity = s->chunks_capacity == 0 ? 256 : 2 * s->chunks_capacity;
    chunk *moved = realloc (s->chunks, (size_t)capacity * sizeof *moved);
    if (moved == NULL)
      return NONE;
    s->chunks = moved;
    s->chunks_capacity = capacity;
  }
  chunk c = { .page = NONE, .last = NONE };
  CUresult r = create (s, &c.handle);
  if (r != CUDA_SUCCESS) { /* the device has no more, whatever the budget says */
    if (s->block->config.mode == SHIM_RUN)
      shim_say (s, "the driver gives no more than %lld bytes of the budget of %lld: %s",
                (long long)(s->n_chunks * s->chunk_bytes),
                (long long)(s->most_chunks * s->chunk_bytes), driver_error_name (&s->real, r));
    s->most_chunks = s->n_chunks;
    return NONE;
  }
  s->chunks[s->n_chunks] = c;
  s->free_chunks++;
  int64_t taken = (s->n_chunks + 1) * s->chunk_bytes;
  if (taken > s->block->seen.device_high_bytes)
    s->block->seen.device_high_bytes = taken;
  return s->n_chunks++;
}

void chunk_quiet (shim *s, const chunk *c) {
  host_wait_for (s, c->pending);
  host_wait_for_copy (s, STREAM_OUT, c->freed_by);
  host_wait_for_copy (s, STREAM_CHECK, c->checked_by);
  host_wait_for_copy (s, STREAM_IN, c->came_by);
}

bool chunk_drop (shim *s, int32_t c) {
  chunk *gone = &s->chunks[c];
  int32_t last = s->n_chunks - 1;
  chunk_quiet (s, gone);
  for (int32_t p = 0; p < s->next_page; p++) {
    page *g = &s->pages[p];
    if (g->chunk == c && g->mapped && !page_unmap (s, p))
      return false;
    if (g->chunk == c)
      g->chunk = NONE;
    else if (g->chunk == last)
      g->chunk = c;
  }
  CUresult r = s->real.mem_release (gone->handle);
  *gone = s->chunks[last];
  s->n_chunks--;
  s->free_chunks--;
  return r == CUDA_SUCCESS;
}

static void count_map (shim *s) {
  s->block->seen.map_calls++;
}

bool pages_allow (shim *s) {
  CUmemAccessDesc d = { .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  d.location.id = s->real.device;
  int64_t bytes = (s->allow_end - s->allow_first) * s->chunk_bytes;
  CUdeviceptr at = s->base + (uint64_t)s->allow_first * (uint64_t)s->chunk_bytes;
  s->allow_first = s->allow_end = 0;
  return bytes == 0 || s->real.mem_set_access (at, (size_t)bytes, &d, 1) == CUDA_SUCCESS;
}

bool page_map (shim *s, int32_t page, int32_t chunk) {
  CUdeviceptr at = s->base + (uint64_t)page * (uint64_t)s->chunk_bytes;
  if (s->allow_end != page && !pages_allow (s))
    return false;
  count_map (s);
  if (s->real.mem_map (at, (size_t)s->chunk_bytes, 0, s->chunks[chunk].handle, 0) != CUDA_SUCCESS)
    return false;
  s->allow_first = s->allow_end == page ? s->allow_first : page;
  s->allow_end = page + 1;
  s->pages[page].chunk = chunk;
  s->pages[page].mapped = true;
  return true;
}

/* The caller has waited for whatever is queued with these addresses. */
bool page_unmap (shim *s, int32_t page) {
  bool good = page < s->allow_first || page >= s->allow_end || pages_allow (s);
  s->pages[page].mapped = false;
  count_map (s);
  return s->real.mem_unmap (s->base + (uint64_t)page * (uint64_t)s->chunk_bytes,
                            (size_t)s->chunk_bytes) == CUDA_SUCCESS &&
         good;
}

int32_t stream_bit (shim *s, CUstream stream) {
  if (stream == NULL || stream == CU_STREAM_LEGACY)
    return STREAM_LEGACY;
  if (stream == CU_STREAM_PER_THREAD)
    return MANY_STREAMS;
  for (int32_t i = FIRST_USER_STREAM; i < s->n_streams; i++)
    if (s->streams[i] == stream)
      return i;
  for (int32_t i = FIRST_USER_STREAM; i < MANY_STREAMS; i++)
    if (i >= s->n_streams || s->streams[i] == NULL) {
      s->streams[i] = stream;
      s->n_streams = i >= s->n_streams ? i + 1 : s->n_streams;
      return i;
    }
  return MANY_STREAMS;
}

/* Streams that share the last bit are not told from each other. */
static bool is_behind (const shim *s, int32_t who, int32_t of, int64_t work) {
  return who != MANY_STREAMS && s->behind[who][of] >= work;
}

void wait_for (shim *s, CUstream stream, int32_t who, uint64_t bits) {
  if ((bits >> MANY_STREAMS & 1) != 0) {
    shim_note (s, s->real.ctx_synchronize ());
    return;
  }
  for (int32_t i = 0; bits != 0; i++, bits >>= 1)
    if ((bits & 1) != 0 && i != who && !is_behind (s, who, i, s->work[i])) {
      s->real.event_record (s->scratch, s->streams[i]);
      if (GUARD (waits))
        s->real.stream_wait_event (stream, s->scratch, 0);
      s->behind[who][i] = s->work[i];
    }
}

static CUevent copy_event (const shim *s, int32_t of, int64_t copy) {
  return s->ring[of][copy % RING];
}

void wait_for_copy (shim *s, CUstream stream, int32_t who, int32_t of, int64_t copy) {
  if (copy == 0 || who == of || is_behind (s, who, of, copy))
    return;
  if (GUARD (copies))
    s->real.stream_wait_event (stream, copy_event (s, of, copy), 0);
  s->behind[who][of] = copy;
}

void host_wait_for_copy (shim *s, int32_t of, int64_t copy) {
  if (copy > 0)
    shim_note (s, s->real.event_synchronize (copy_event (s, of, copy)));
}

void host_wait_for (shim *s, uint64_t bits) {
  if ((bits >> MANY_STREAMS & 1) != 0) {
    shim_note (s, s->real.ctx_synchronize ());
    return;
  }
  for (int32_t i = 0; bits != 0; i++, bits >>= 1)
    if ((bits & 1) != 0)
      shim_note (s, s->real.stream_synchronize (s->streams[i]));
}

int64_t copy_issued (shim *s, int32_t of) {
  int64_t copy = ++s->work[of];
  s->real.event_record (copy_event (s, of, copy), s->streams[of]);
  return copy;
}
