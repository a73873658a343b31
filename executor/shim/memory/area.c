/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The address space in which the program's tensors lie.  An address is handed out without memory
   behind it; chunks come with the first op that touches it.  Between two tensors a page stays
   empty, so that an address just outside is never a neighbour's. */
#include <stdlib.h>
#include <string.h>

#include "executor/shim/memory/memory.h"
#include "executor/shim/memory/share.h"
#include "executor/shim/state/guard.h"

enum { UNIT = 512, MOST_PAGES = 1 << 20 };

static bool make_streams (shim *s) {
  const driver *d = &s->real;
  bool good = d->stream_create (&s->out, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
              d->stream_create (&s->in, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
              d->stream_create (&s->check, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
              d->event_create (&s->scratch, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  for (int i = 0; good && i < COPY_STREAMS * RING; i++)
    good = d->event_create (&s->ring[i / RING][i % RING], CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  s->streams[STREAM_OUT] = s->out;
  s->streams[STREAM_IN] = s->in;
  s->streams[STREAM_CHECK] = s->check;
  s->streams[STREAM_LEGACY] = NULL;
  s->n_streams = FIRST_USER_STREAM;
  return good;
}

static bool reserve (shim *s) {
  int64_t most = (int64_t)1 << 40;
  for (s->space_bytes = MOST_PAGES * s->chunk_bytes < most ? MOST_PAGES * s->chunk_bytes : most;
       s->space_bytes >= 256 * s->chunk_bytes; s->space_bytes /= 2)
    if (s->real.mem_reserve (&s->base, (size_t)s->space_bytes, 0, 0, 0) == CUDA_SUCCESS)
      return true;
  return false;
}

bool area_start (shim *s) {
  CUdevice device = 0;
  if (s->real.ctx_get_device != NULL && s->real.ctx_get_device (&device) != CUDA_SUCCESS)
    return false;
  s->real.device = device;
  if (s->real.ctx_get_current (&s->context) != CUDA_SUCCESS)
    return false;
  CUmemAllocationProp p = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = device;
  size_t granule = 0, total = 0;
  if (s->real.mem_granularity (&granule, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
      s->real.device_total_mem (&total, device) != CUDA_SUCCESS)
    return false;
  s->chunk_bytes = (int64_t)granule;
  int64_t budget = s->block->config.budget_bytes;
  if (budget == 0 || budget > (int64_t)total)
    budget = (int64_t)total;
  s->most_chunks = s->all_chunks = (int32_t)(budget / s->chunk_bytes);
  if (s->most_chunks < 1 || !share_start (s) || !reserve (s) || !make_streams (s)) {
    shim_say (s,
              "the device gives no memory to serve tensors from: budget %lld bytes, granules of "
              "%lld; raise --budget",
              (long long)budget, (long long)s->chunk_bytes);
    s->shut = s->block->config.mode == SHIM_RUN;
    return false;
  }
  s->n_pages = (int32_t)(s->space_bytes / s->chunk_bytes);
  s->next_page = 1;
  s->pages = calloc ((size_t)s->n_pages, sizeof *s->pages);
  s->strict = s->block->config.mode == SHIM_RUN && GUARD (strict);
  return s->pages != NULL;
}

/* A page's tensor is stored as one more than its index, so that a page of zeros is nobody's. */
int32_t area_tensor_at (const shim *s, CUdeviceptr at) {
  if (!area_has (s, at))
    return NONE;
  int64_t page = (int64_t)(at - s->base) / s->chunk_bytes;
  int32_t t = s->pages[page].tensor - 1;
  if (t < 0 && page + 1 < s->n_pages)
    t = s->pages[page + 1].tensor - 1; /* a base before the start */
  return t;
}

static int32_t find_free (shim *s, int32_t pages) {
  int32_t best = NONE;
  for (int32_t i = 0; i < s->n_free; i++) {
    const tensor *t = &s->tensors[s->free_tensors[i]];
    if (t->n_pages == pages && t->holds == 0 &&
        (best == NONE || t->at < s->tensors[s->free_tensors[best]].at))
      best = i;
  }
  if (best == NONE)
    return NONE;
  int32_t t = s->free_tensors[best];
  s->free_tensors[best] = s->free_tensors[--s->n_free];
  return t;
}

static bool grow (void **rows, int32_t count, int32_t *capacity, size_t size) {
  if (count < *capacity)
    return true;
  int32_t more = *capacity == 0 ? 256 : 2 * *capacity;
  void *moved = realloc (*rows, (size_t)more * size);
  if (moved == NULL)
    return false;
  *rows = moved;
  *capacity = more;
  return true;
}

/* A row of the table, of which nobody has an address yet. */
int32_t area_row (shim *s) {
  for (int32_t i = 0; s->spare_rows > 0 && i < s->n_tensors; i++)
    if (s->tensors[i].n_pages == 0) {
      s->spare_rows--;
      return i;
    }
  if (!grow ((void **)&s->tensors, s->n_tensors, &s->tensors_capacity, sizeof *s->tensors) ||
      !grow ((void **)&s->free_tensors, s->n_tensors, &s->free_capacity, sizeof *s->free_tensors))
    return NONE;
  return s->n_tensors++;
}

void area_own (shim *s, int32_t i, int32_t first, int32_t end) {
  for (int32_t p = first; p < end; p++)
    s->pages[p] = (page){ .tensor = i + 1, .chunk = NONE };
}

void area_lay (shim *s, int32_t i, int32_t first, int32_t pages) {
  tensor *t = &s->tensors[i];
  *t = (tensor){ .first_page = first, .n_pages = pages, .planned = NONE };
  t->at = s->base + (uint64_t)first * (uint64_t)s->chunk_bytes;
  area_own (s, i, first, first + pages);
}

static int32_t make (shim *s, int32_t pages) {
  int32_t i = pages + 1 > s->n_pages - s->next_page ? NONE : area_row (s);
  if (i == NONE)
    return NONE;
  area_lay (s, i, s->next_page, pages);
  s->next_page += pages + 1;
  return i;
}

/* The lowest free address of the right size, so that a program that repeats itself gets the same
   addresses; or address space that is not used yet, or was used in other sizes. */
int32_t area_allocate (shim *s, int64_t bytes, int32_t slot) {
  int32_t pages = (int32_t)((bytes + s->chunk_bytes - 1) / s->chunk_bytes);
  int32_t i = slot >= 0 ? slot : find_free (s, pages);
  if (i == NONE)
    i = make (s, pages);
  if (i == NONE)
    i = vacant_take (s, pages);
  if (i == NONE)
    return NONE;
  tensor *t = &s->tensors[i];
  t->empty = false;
  t->bytes = bytes;
  t->number = s->allocations++;
  t->live = true;
  t->escaped = false;
  t->past_in = t->in_copy > 0 ? t->in_copy : t->past_in;
  t->past_out = t->out_copy > 0 ? t->out_copy : t->past_out;
  t->in_copy = t->out_copy = 0;
  t->past |= t->users;
  t->users = t->behind = 0;
  memset (t->behind_copy, 0, sizeof t->behind_copy);
  t->last_write = s->ops;
  t->checks = t->kept = t->dropped = false;
  for (int32_t p = t->first_page; p < t->first_page + pages; p++)
    s->pages[p].state = PAGE_LAZY;
  s->live_bytes += bytes;
  s->live_tensors++;
  shim_seen *seen = &s->block->seen;
  seen->tensors++;
  seen->allocated_bytes += bytes;
  if (bytes > seen->largest_bytes)
    seen->largest_bytes = bytes;
  if (s->live_bytes > seen->live_high_bytes)
    seen->live_high_bytes = s->live_bytes;
  return i;
}

/* The address is free at once; a chunk is once its users have passed. */
void area_free (shim *s, int32_t i, uint64_t stream_bits, bool keeps) {
  tensor *t = &s->tensors[i];
  uint64_t behind = t->users | stream_bits;
  t->users |= keeps ? stream_bits : 0;
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++) {
    page *g = &s->pages[p];
    if (g->state != PAGE_HERE || keeps)
      continue;
    chunk *c = &s->chunks[g->chunk];
    c->page = NONE;
    c->pending = behind;
    c->came_by = t->in_copy;
    s->free_chunks++;
    g->state = PAGE_LAZY;
  }
  if (t->pooled)
    pool_took (s, -t->bytes);
  t->live = t->pooled = false;
  s->live_bytes -= t->bytes;
  s->live_tensors--;
  if (!t->reserved)
    s->free_tensors[s->n_free++] = i;
}

/* ---- the pool's bytes, as a driver counts them ---- */

void pool_took (shim *s, int64_t bytes) {
  int64_t counted = ((bytes < 0 ? -bytes : bytes) + UNIT - 1) / UNIT * UNIT;
  s->pool_bytes += bytes < 0 ? -counted : counted;
  if (s->pool_bytes > s->pool_used_high)
    s->pool_used_high = s->pool_bytes;
  if (s->pool_bytes > s->pool_reserved_high)
    s->pool_reserved_high = s->pool_bytes;
}

/* ---- small ones: pieces of chunks that stay ---- */

#define WITHIN UINT32_MAX
#define POOLED ((uint32_t)1 << 31)

/* A chunk of small tensors is a page whose tensor is NONE and whose chunk is small; units that are
   taken are marked behind its end, in a table of their own. */
struct slab {
  int32_t page;
  uint32_t *units; /* at the first of a piece: how many it has, and POOLED; WITHIN it; 0: free */
};

static int32_t units_of (const shim *s) {
  return (int32_t)(s->chunk_bytes / UNIT);
}

static int32_t find_units (const shim *s, const slab *b, int32_t units) {
  int32_t run = 0, all = units_of (s);
  for (int32_t i = 0; i < all; i++) {
    run = b->units[i] == 0 ? run + 1 : 0;
    if (run == units)
      return i + 1 - units;
  }
  return NONE;
}

/* A page for good, and one behind it that stays empty. */
static int32_t slab_page (shim *s) {
  if (s->n_pages - s->next_page < 2)
    return vacant_page (s);
  s->next_page += 2;
  return s->next_page - 2;
}

static bool fill_slab (shim *s, slab *b) {
  int32_t c = chunk_take (s, NULL);
  if (c == NONE && share_wait (s, share_fixed_bytes (s) + s->chunk_bytes))
    c = chunk_take (s, NULL);
  b->page = c == NONE ? NONE : slab_page (s);
  if (b->page == NONE)
    return false;
  chunk *own = &s->chunks[c];
  chunk_quiet (s, own);
  if (!page_map (s, b->page, c) || !pages_allow (s))
    return false;
  s->free_chunks--;
  own->page = b->page;
  own->small = true;
  own->pending = 0;
  own->freed_by = own->checked_by = own->came_by = 0;
  s->pages[b->page].state = PAGE_HERE;
  return true;
}

static slab *add_slab (shim *s) {
  slab *moved = realloc (s->slabs, (size_t)(s->n_slabs + 1) * sizeof *moved);
  if (moved == NULL)
    return NULL;
  s->slabs = moved;
  slab *b = &s->slabs[s->n_slabs];
  b->units = calloc ((size_t)units_of (s), sizeof *b->units);
  if (b->units == NULL || !fill_slab (s, b)) {
    free (b->units);
    return NULL;
  }
  s->n_slabs++;
  return b;
}

/* Freed units may still be in use. A stream waits once behind the last of them; the host waits
   for all, as it does for streams without a bit of their own. */
static void small_wait (shim *s, CUstream stream, bool waits) {
  int32_t bit = waits || s->small_pending == 0 ? MANY_STREAMS : stream_bit (s, stream);
  uint64_t own = bit == MANY_STREAMS ? 0 : (uint64_t)1 << bit;
  if ((s->small_seen & own) != 0)
    return;
  if (waits)
    host_wait_for (s, s->small_pending);
  else
    wait_for (s, stream, MANY_STREAMS, s->small_pending);
  if (waits || (s->small_pending >> MANY_STREAMS & 1) != 0)
    s->small_pending = 0;
  s->small_seen |= own;
}

/* A granule of small ones stays half empty: else one more would be taken for the next of the
   program's own, and plans count on the rest. */
bool small_has_room (const shim *s, int64_t bytes) {
  for (int32_t i = 0; i < s->n_slabs; i++) {
    int32_t empty = 0;
    for (int32_t k = 0; k < units_of (s); k++)
      empty += s->slabs[i].units[k] == 0;
    if ((empty - bytes / UNIT) * 2 > units_of (s))
      return true;
  }
  return false;
}

bool small_make_room (shim *s) {
  enum { MANY = 256 };
  return s->most_chunks >= MANY && add_slab (s) != NULL;
}

CUdeviceptr small_allocate (shim *s, int64_t bytes, CUstream stream, bool waits) {
  int32_t units = (int32_t)((bytes + UNIT - 1) / UNIT), first = NONE;
  slab *b = s->slabs;
  for (int32_t i = 0; i < s->n_slabs && first == NONE; i++)
    if ((first = find_units (s, &s->slabs[i], units)) != NONE)
      b = &s->slabs[i];
  if (first == NONE) {
    b = add_slab (s);
    first = 0;
  }
  if (b == NULL)
    return 0;
  for (int32_t i = 0; i < units; i++)
    b->units[first + i] = i == 0 ? (uint32_t)units | (waits ? 0 : POOLED) : WITHIN;
  if (!waits)
    pool_took (s, bytes);
  small_wait (s, stream, waits);
  return s->base + (uint64_t)b->page * (uint64_t)s->chunk_bytes + (uint64_t)first * UNIT;
}

static slab *slab_at (const shim *s, CUdeviceptr at) {
  int64_t page = (int64_t)(at - s->base) / s->chunk_bytes;
  for (int32_t i = 0; i < s->n_slabs; i++)
    if (s->slabs[i].page == page)
      return &s->slabs[i];
  return NULL;
}

bool small_free (shim *s, CUdeviceptr at, uint64_t stream_bits) {
  slab *b = slab_at (s, at);
  uint64_t offset = b == NULL ? 0 : at - s->base - (uint64_t)b->page * (uint64_t)s->chunk_bytes;
  if (b == NULL || offset % UNIT != 0 || b->units[offset / UNIT] == 0 ||
      b->units[offset / UNIT] == WITHIN)
    return false;
  int32_t first = (int32_t)(offset / UNIT), units = (int32_t)(b->units[first] & ~POOLED);
  if ((b->units[first] & POOLED) != 0)
    pool_took (s, -(int64_t)units * UNIT);
  memset (&b->units[first], 0, (size_t)units * sizeof *b->units);
  s->small_pending |= stream_bits;
  s->small_seen = 0;
  return true;
}

int64_t small_bytes_at (const shim *s, CUdeviceptr at, CUdeviceptr *first) {
  const slab *b = slab_at (s, at);
  if (b == NULL)
    return 0;
  CUdeviceptr start = s->base + (uint64_t)b->page * (uint64_t)s->chunk_bytes;
  int32_t i = (int32_t)((at - start) / UNIT);
  while (i > 0 && b->units[i] == WITHIN)
    i--;
  if (b->units[i] == 0)
    return 0;
  *first = start + (uint64_t)i * UNIT;
  return (int64_t)(b->units[i] & ~POOLED) * UNIT;
}
