/* Device memory: places in a memfd, handles to them, mappings of them; pinned host memory. With
   --bytes none there are addresses and no bytes.  A place is used once, so what was freed can never
   be mistaken for what came after; the memfd is given back by holes. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "executor/emu/core.h"

enum { PAGE = 4096, ALLOC_ROUND = 512 };
static const int64_t memfd_bytes = (int64_t)1 << 60;
static const uint64_t first_fake = (uint64_t)1 << 44; /* below any address that mmap gives */

static int64_t round_up (int64_t bytes, int64_t to) {
  return (bytes + to - 1) / to * to;
}

/* ---- tables by address ---- */

static uint64_t address_of (const table *t, int64_t i) {
  uint64_t at;
  memcpy (&at, t->rows + i * (int64_t)t->size, sizeof at);
  return at;
}

/* How many rows have an address not above. */
static int64_t rank (const table *t, uint64_t at) {
  int64_t low = 0, high = t->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (address_of (t, middle) <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool table_insert (table *t, const void *row) {
  if (t->count == t->capacity) {
    int64_t capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
    char *moved = realloc (t->rows, (size_t)capacity * t->size);
    if (moved == NULL)
      return false;
    t->rows = moved;
    t->capacity = capacity;
  }
  uint64_t at;
  memcpy (&at, row, sizeof at);
  int64_t i = rank (t, at);
  char *place = t->rows + i * (int64_t)t->size;
  memmove (place + t->size, place, (size_t)(t->count - i) * t->size);
  memcpy (place, row, t->size);
  t->count++;
  return true;
}

void *table_find (const table *t, uint64_t at) {
  int64_t i = rank (t, at);
  return i == 0 ? NULL : t->rows + (i - 1) * (int64_t)t->size;
}

void table_remove (table *t, void *row, int64_t count) {
  char *next = (char *)row + (size_t)count * t->size;
  memmove (row, next, (size_t)(t->rows + t->count * (int64_t)t->size - next));
  t->count -= count;
}

/* ---- looking things up ---- */

static range *range_at (const machine *m, uint64_t at) {
  range *r = table_find (&m->ranges, at);
  return r != NULL && at - r->at < (uint64_t)r->bytes ? r : NULL;
}

static mapping *mapping_at (const machine *m, uint64_t at) {
  mapping *p = table_find (&m->mappings, at);
  return p != NULL && at - p->at < (uint64_t)p->bytes ? p : NULL;
}

bool memory_is_pinned (const machine *m, uint64_t at) {
  const range *r = range_at (m, at);
  return r != NULL && (r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED);
}

bool memory_is_device (const machine *m, uint64_t at) {
  const range *r = range_at (m, at);
  return r != NULL && r->kind != RANGE_HOST && r->kind != RANGE_REGISTERED;
}

bool memory_reachable (const machine *m, uint64_t at, int64_t bytes, bool writes) {
  const range *r = range_at (m, at);
  if (r != NULL && (r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED))
    return (uint64_t)bytes <= r->at + (uint64_t)r->bytes - at;
  while (bytes > 0) {
    const mapping *p = mapping_at (m, at);
    unsigned int need = writes ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
    if (p == NULL || (p->access & need) != need)
      return false;
    int64_t here = p->bytes - (int64_t)(at - p->at);
    here = here < bytes ? here : bytes;
    at += (uint64_t)here;
    bytes -= here;
  }
  return true;
}

void memory_places (const machine *m, const touch *t,
                    void (*piece) (void *context, int64_t place, int64_t bytes, bool writes),
                    void *context) {
  if (!memory_is_device (m, t->at)) {
    piece (context, (int64_t)t->at, t->bytes, t->writes);
    return;
  }
  uint64_t at = t->at;
  for (int64_t left = t->bytes; left > 0;) {
    const mapping *p = mapping_at (m, at);
    if (p == NULL)
      return; /* a fault when it runs */
    int64_t into = (int64_t)(at - p->at);
    int64_t here = p->bytes - into < left ? p->bytes - into : left;
    /* Host addresses are below 2^47: places move above them. */
    piece (context, ((int64_t)1 << 61) + p->place + into, here, t->writes);
    at += (uint64_t)here;
    left -= here;
  }
}

bool memory_in_use (const machine *m, uint64_t at, int64_t bytes) {
  for (int32_t i = 0; i < m->n_streams; i++)
    for (const command *c = m->streams[i]->head; c != NULL; c = c->next)
      for (int32_t k = 0; k < c->n_touches; k++)
        if (c->touches[k].at < at + (uint64_t)bytes &&
            at < c->touches[k].at + (uint64_t)c->touches[k].bytes)
          return true;
  return false;
}

/* ---- bytes behind addresses ---- */

static bool has_bytes (const machine *m) {
  return m->config.bytes == EMU_ALL;
}

/* Inaccessible address space, aligned. 0: none. */
static uint64_t space_take (machine *m, int64_t bytes, int64_t align) {
  if (!has_bytes (m)) {
    uint64_t at = (uint64_t)round_up ((int64_t)m->next_fake, align);
    if (bytes > ((int64_t)1 << 45) - (int64_t)(at - first_fake))
      return 0;
    m->next_fake = at + (uint64_t)round_up (bytes, PAGE);
    return at;
  }
  char *all = mmap (NULL, (size_t)(bytes + align), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return 0;
  uint64_t from = (uintptr_t)all, at = (uint64_t)round_up ((int64_t)from, align);
  if (at > from)
    munmap (all, at - from);
  if (from + (uint64_t)align > at)
    munmap ((char *)all + (at - from) + bytes, from + (uint64_t)align - at);
  return at;
}

static void space_give (const machine *m, uint64_t at, int64_t bytes) {
  if (has_bytes (m))
    munmap ((void *)(uintptr_t)at, (size_t)bytes);
}

static bool bytes_map (const machine *m, uint64_t at, int64_t bytes, int64_t place,
                       int protection) {
  return !has_bytes (m) || mmap ((void *)(uintptr_t)at, (size_t)bytes, protection,
                                 MAP_SHARED | MAP_FIXED, m->memory, place) != MAP_FAILED;
}

static bool bytes_unmap (const machine *m, uint64_t at, int64_t bytes) {
  return !has_bytes (m) ||
         mmap ((void *)(uintptr_t)at, (size_t)bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* A place of so many bytes, or -1. */
static int64_t place_take (machine *m, int64_t bytes) {
  if (bytes > m->config.memory_bytes - m->config.missing_bytes - m->used_bytes)
    return -1;
  int64_t place = m->next_place;
  m->next_place += round_up (bytes, PAGE);
  m->used_bytes += bytes;
  return place;
}

static void place_give (machine *m, int64_t place, int64_t bytes) {
  m->used_bytes -= bytes;
  if (has_bytes (m))
    (void)!fallocate (m->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place,
                      round_up (bytes, PAGE));
}

void memory_start (machine *m) {
  m->ranges.size = sizeof (range);
  m->mappings.size = sizeof (mapping);
  m->next_fake = first_fake;
  m->memory = -1;
  m->pool_reuse[0] = m->pool_reuse[1] = m->pool_reuse[2] = 1;
  if (!has_bytes (m))
    return;
  m->memory = memfd_create ("emulated device memory", MFD_CLOEXEC);
  if (m->memory >= 0 && ftruncate (m->memory, memfd_bytes) != 0) {
    close (m->memory);
    m->memory = -1;
  }
}

void memory_stop (machine *m) {
  for (int64_t i = 0; i < m->ranges.count; i++) {
    range r;
    memcpy (&r, m->ranges.rows + i * (int64_t)sizeof r, sizeof r);
    if (r.kind == RANGE_HOST)
      munmap ((void *)(uintptr_t)r.at, (size_t)round_up (r.bytes, PAGE));
    else if (r.kind != RANGE_REGISTERED)
      space_give (m, r.at, round_up (r.bytes, PAGE));
  }
  if (m->memory >= 0)
    close (m->memory);
  free (m->ranges.rows);
  free (m->mappings.rows);
  free (m->handles);
}

/* ---- virtual memory management ---- */

static bool is_granular (const machine *m, uint64_t a) {
  return a % (uint64_t)m->config.granule_bytes == 0;
}

static bool is_plain (const CUmemAllocationProp *p) {
  return p != NULL && p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && p->location.id == 0;
}

CUresult cuMemGetAllocationGranularity (size_t *out, const CUmemAllocationProp *p,
                                        CUmemAllocationGranularity_flags flags) {
  CUresult refused;
  machine *m = machine_enter (false, &refused);
  if (m == NULL)
    return refused;
  bool good = out != NULL && is_plain (p) && flags <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
  if (good)
    *out = (size_t)m->config.granule_bytes;
  return machine_leave (m, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemAddressReserve (CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr wish,
                              unsigned long long flags) {
  (void)wish; /* a hint */
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  int64_t granule = m->config.granule_bytes;
  if (out == NULL || bytes == 0 || bytes > (size_t)1 << 46 || !is_granular (m, bytes) ||
      flags != 0 || (align & (align - 1)) != 0 || align > (size_t)1 << 40)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  range r = { .bytes = (int64_t)bytes, .kind = RANGE_RESERVED };
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
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  range *r = range_at (m, at);
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
  place_give (m, h->place, h->bytes);
  h->live = false;
}

CUresult cuMemCreate (CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *p,
                      unsigned long long flags) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (out == NULL || bytes == 0 || bytes > (size_t)1 << 53 || !is_granular (m, bytes) ||
      !is_plain (p) || flags != 0)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (m->n_handles == m->handles_capacity) {
    int64_t capacity = m->handles_capacity == 0 ? 64 : 2 * m->handles_capacity;
    handle *moved = realloc (m->handles, (size_t)capacity * sizeof *moved);
    if (moved == NULL)
      return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
    m->handles = moved;
    m->handles_capacity = capacity;
  }
  int64_t place = place_take (m, (int64_t)bytes);
  if (place < 0)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  m->handles[m->n_handles++] = (handle){ .bytes = (int64_t)bytes, .place = place, .live = true };
  *out = (CUmemGenericAllocationHandle)m->n_handles;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuMemRelease (CUmemGenericAllocationHandle h) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  handle *x = handle_of (m, h);
  if (x == NULL || x->released)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  x->released = true;
  handle_settle (m, x);
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuMemMap (CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle h,
                   unsigned long long flags) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  handle *x = handle_of (m, h);
  const range *r = range_at (m, at);
  const mapping *p = bytes == 0 ? NULL : table_find (&m->mappings, at + bytes - 1);
  if (x == NULL || x->released || offset != 0 || flags != 0 || (int64_t)bytes != x->bytes ||
      !is_granular (m, at) || r == NULL || r->kind != RANGE_RESERVED ||
      at + bytes > r->at + (uint64_t)r->bytes || (p != NULL && p->at + (uint64_t)p->bytes > at))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  mapping n = { .at = at, .bytes = x->bytes, .place = x->place, .handle = (int32_t)h - 1 };
  if (!table_insert (&m->mappings, &n))
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  if (!bytes_map (m, at, n.bytes, n.place, PROT_NONE)) {
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
    const mapping *p = mapping_at (m, at);
    if (p == NULL || p->handle < 0 || p->at != at || p->bytes > bytes)
      return false;
    at += (uint64_t)p->bytes;
    bytes -= p->bytes;
  }
  return true;
}

CUresult cuMemUnmap (CUdeviceptr at, size_t size) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  int64_t bytes = (int64_t)size;
  if (!are_whole (m, at, bytes) || (!m->config.lenient && memory_in_use (m, at, bytes)))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (!bytes_unmap (m, at, bytes))
    return machine_leave (m, CUDA_ERROR_OPERATING_SYSTEM);
  mapping *first = mapping_at (m, at), *p = first;
  for (; bytes > 0; bytes -= (p++)->bytes) {
    handle *h = &m->handles[p->handle];
    h->maps--;
    handle_settle (m, h);
  }
  table_remove (&m->mappings, first, p - first);
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuMemSetAccess (CUdeviceptr at, size_t size, const CUmemAccessDesc *d, size_t count) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  int64_t bytes = (int64_t)size;
  if (d == NULL || count != 1 || d->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      d->location.id != 0 || !are_whole (m, at, bytes) ||
      (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && d->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
       d->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  int protection = d->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE   ? PROT_NONE
                   : d->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                               : PROT_READ | PROT_WRITE;
  if (has_bytes (m) && mprotect ((void *)(uintptr_t)at, size, protection) != 0)
    return machine_leave (m, CUDA_ERROR_OPERATING_SYSTEM);
  while (bytes > 0) {
    mapping *p = mapping_at (m, at);
    p->access = d->flags;
    at += (uint64_t)p->bytes;
    bytes -= p->bytes;
  }
  return machine_leave (m, CUDA_SUCCESS);
}

/* ---- allocations ---- */

static CUresult allocate (machine *m, int64_t bytes, range_kind kind, uint64_t *out) {
  int64_t counted = round_up (bytes, ALLOC_ROUND), whole = round_up (bytes, PAGE);
  int64_t place = place_take (m, counted);
  if (place < 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  range r = { .bytes = counted, .kind = kind };
  r.at = space_take (m, whole, PAGE);
  mapping p = { .at = r.at,
                .bytes = counted,
                .place = place,
                .handle = -1,
                .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  if (r.at != 0 && table_insert (&m->ranges, &r)) {
    if (bytes_map (m, r.at, whole, place, PROT_READ | PROT_WRITE) &&
        table_insert (&m->mappings, &p)) {
      *out = r.at;
      return CUDA_SUCCESS;
    }
    table_remove (&m->ranges, range_at (m, r.at), 1);
  }
  if (r.at != 0)
    space_give (m, r.at, whole);
  place_give (m, place, counted);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static void allocation_drop (machine *m, uint64_t at) {
  range *r = range_at (m, at);
  mapping *p = mapping_at (m, at);
  place_give (m, p->place, p->bytes);
  space_give (m, r->at, round_up (r->bytes, PAGE));
  table_remove (&m->mappings, p, 1);
  table_remove (&m->ranges, r, 1);
}

CUresult cuMemAlloc_v2 (CUdeviceptr *out, size_t bytes) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (out == NULL || bytes == 0)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  uint64_t at = 0;
  CUresult r = bytes > (size_t)1 << 53 ? CUDA_ERROR_OUT_OF_MEMORY
                                       : allocate (m, (int64_t)bytes, RANGE_ALLOC, &at);
  if (r == CUDA_SUCCESS)
    *out = at;
  return machine_leave (m, r);
}

static CUresult finish_all (machine *m) {
  CUresult r = CUDA_SUCCESS;
  for (int32_t i = 0; i < m->n_streams && r == CUDA_SUCCESS; i++)
    if (m->streams[i]->last != NULL)
      r = command_finish (m, m->streams[i]->last);
  return r;
}

/* A driver waits for the device here and does not promise it, so the race checker does not count
   on it. */
CUresult cuMemFree_v2 (CUdeviceptr at) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  range *r = range_at (m, at);
  if (r == NULL || r->at != at || (r->kind != RANGE_ALLOC && r->kind != RANGE_ASYNC) || r->freed)
    return machine_leave (m, at == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  if (!machine_host_touches (m, at, r->bytes, true, "free"))
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  CUresult done = finish_all (m);
  if (done == CUDA_SUCCESS) {
    r = range_at (m, at);
    if (r->kind == RANGE_ASYNC)
      m->pool_used -= r->bytes;
    allocation_drop (m, at);
  }
  return machine_leave (m, done);
}

CUresult cuMemGetInfo_v2 (size_t *free_bytes, size_t *total) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (free_bytes == NULL || total == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *total = (size_t)m->config.memory_bytes;
  *free_bytes = (size_t)(m->config.memory_bytes - m->used_bytes);
  return machine_leave (m, CUDA_SUCCESS);
}

/* ---- stream-ordered allocation, from the one default pool ---- */

/* The next free that is queued on the stream: its memory may be given to what comes after it. The
   host waits for it, where a driver would hand the memory over at once. */
static command *queued_free (const stream *s) {
  for (command *c = s->head; c != NULL; c = c->next)
    if (c->kind == COMMAND_FREE)
      return c;
  return NULL;
}

CUresult cuMemAllocAsync (CUdeviceptr *out, size_t bytes, CUstream on) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  stream *s = stream_of (m, on);
  if (out == NULL || bytes == 0 || s == NULL)
    return machine_leave (m, s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE);
  uint64_t at = 0;
  CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
  while (bytes <= (size_t)1 << 53 &&
         (r = allocate (m, (int64_t)bytes, RANGE_ASYNC, &at)) == CUDA_ERROR_OUT_OF_MEMORY) {
    command *f = queued_free (s);
    if (f == NULL || command_finish (m, f) != CUDA_SUCCESS)
      break;
  }
  command *c = r == CUDA_SUCCESS ? command_new (m, s, COMMAND_RECORD) : NULL;
  touch *t = c == NULL ? NULL : malloc (sizeof *t);
  if (t == NULL) {
    if (c != NULL)
      command_drop (c);
    if (r == CUDA_SUCCESS)
      allocation_drop (m, at);
    return machine_leave (m, m->stuck != CUDA_SUCCESS ? m->stuck : CUDA_ERROR_OUT_OF_MEMORY);
  }
  m->pool_used += range_at (m, at)->bytes;
  if (m->pool_used > m->pool_used_high)
    m->pool_used_high = m->pool_used;
  if (m->pool_used > m->pool_reserved_high)
    m->pool_reserved_high = m->pool_used;
  *t = (touch){ at, (int64_t)bytes, true };
  c->touches = t;
  c->n_touches = 1;
  *out = at;
  return machine_leave (m, command_issue (m, c));
}

CUresult cuMemAllocFromPoolAsync (CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream on) {
  CUmemoryPool own;
  CUresult r = cuDeviceGetDefaultMemPool (&own, 0);
  if (r != CUDA_SUCCESS)
    return r;
  return pool == own ? cuMemAllocAsync (out, bytes, on) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync (CUdeviceptr at, CUstream on) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  stream *s = stream_of (m, on);
  range *r = range_at (m, at);
  if (s == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  if (r == NULL || r->at != at || (r->kind != RANGE_ASYNC && r->kind != RANGE_ALLOC) || r->freed)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  command *c = command_new (m, s, COMMAND_FREE);
  touch *t = c == NULL ? NULL : malloc (sizeof *t);
  if (t == NULL) {
    free (c);
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  }
  *t = (touch){ at, r->bytes, true };
  c->touches = t;
  c->n_touches = 1;
  c->as.freed = at;
  r->freed = true;
  return machine_leave (m, command_issue (m, c));
}

void memory_free_now (machine *m, uint64_t at) {
  const range *r = range_at (m, at);
  if (r->kind == RANGE_ASYNC)
    m->pool_used -= r->bytes;
  allocation_drop (m, at);
}

static bool is_pool (const machine *m, CUmemoryPool pool) {
  return (const void *)pool == (const void *)&m->pool_used;
}

CUresult cuDeviceGetDefaultMemPool (CUmemoryPool *out, CUdevice d) {
  CUresult refused;
  machine *m = machine_enter (false, &refused);
  if (m == NULL)
    return refused;
  if (out == NULL || d != 0)
    return machine_leave (m, out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
  *out = (CUmemoryPool)(void *)&m->pool_used;
  return machine_leave (m, CUDA_SUCCESS);
}

/* What is reserved is what is used: freed memory goes back at once, as far as anyone can see. */
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
  CUresult refused;
  machine *m = machine_enter (false, &refused);
  if (m == NULL)
    return refused;
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
  CUresult refused;
  machine *m = machine_enter (false, &refused);
  if (m == NULL)
    return refused;
  return machine_leave (m, is_pool (m, pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- pinned host memory ---- */

static CUresult pin (machine *m, range r) {
  if (m->config.pinned_bytes > 0 && r.bytes > m->config.pinned_bytes - m->pinned_bytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!table_insert (&m->ranges, &r))
    return CUDA_ERROR_OUT_OF_MEMORY;
  m->pinned_bytes += r.bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc (void **out, size_t bytes, unsigned int flags) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (out == NULL || bytes == 0 || flags > 7)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (bytes > (size_t)1 << 46)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  range r = { .bytes = (int64_t)bytes, .kind = RANGE_HOST };
  size_t whole = (size_t)round_up (r.bytes, PAGE);
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
  range *r = range_at (m, (uintptr_t)at);
  if (r == NULL || r->at != (uintptr_t)at || r->kind != kind)
    return kind == RANGE_HOST ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (!machine_host_touches (m, r->at, r->bytes, true, "free"))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (memory_in_use (m, r->at, r->bytes)) {
    if (!m->config.lenient)
      return CUDA_ERROR_INVALID_VALUE;
    CUresult done = finish_all (m);
    if (done != CUDA_SUCCESS)
      return done;
    r = range_at (m, (uintptr_t)at);
  }
  m->pinned_bytes -= r->bytes;
  if (kind == RANGE_HOST)
    munmap (at, (size_t)round_up (r->bytes, PAGE));
  table_remove (&m->ranges, r, 1);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost (void *at) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  return machine_leave (m, unpin (m, at, RANGE_HOST));
}

CUresult cuMemHostRegister_v2 (void *at, size_t bytes, unsigned int flags) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (at == NULL || bytes == 0 || bytes > (size_t)1 << 46 || flags > 15)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  range r = { .at = (uintptr_t)at, .bytes = (int64_t)bytes, .kind = RANGE_REGISTERED };
  const range *below = table_find (&m->ranges, r.at + bytes - 1);
  if (below != NULL && below->at + (uint64_t)below->bytes > r.at)
    return machine_leave (m, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  return machine_leave (m, pin (m, r));
}

CUresult cuMemHostUnregister (void *at) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  return machine_leave (m, unpin (m, at, RANGE_REGISTERED));
}

/* ---- questions about addresses ---- */

static bool answer (const machine *m, CUpointer_attribute a, void *out, uint64_t at) {
  const range *r = range_at (m, at);
  bool host = r != NULL && (r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED);
  const void *pool = r != NULL && r->kind == RANGE_ASYNC ? (const void *)&m->pool_used : NULL;
  switch (a) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    *(const void **)out = m;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned int *)out = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *)out = at;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *(void **)out = (void *)(uintptr_t)at;
    return host;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    *(int *)out = 0;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *(CUdeviceptr *)out = r == NULL ? 0 : r->at;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *(size_t *)out = r == NULL ? 0 : (size_t)r->bytes;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_MAPPED:
    *(int *)out = host || mapping_at (m, at) != NULL;
    return true;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    *(const void **)out = pool;
    return r != NULL;
  default:
    return false;
  }
}

CUresult cuPointerGetAttribute (void *out, CUpointer_attribute a, CUdeviceptr at) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  bool good = out != NULL && answer (m, a, out, at);
  return machine_leave (m, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* Unknown addresses are no error here: the answers are zero. */
CUresult cuPointerGetAttributes (unsigned int count, CUpointer_attribute *a, void **out,
                                 CUdeviceptr at) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  bool good = a != NULL && out != NULL;
  for (unsigned int i = 0; good && i < count; i++) {
    good = out[i] != NULL;
    if (good && !answer (m, a[i], out[i], at))
      memset (out[i], 0,
              a[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || a[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                      a[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
                      a[i] == CU_POINTER_ATTRIBUTE_MAPPED ||
                      a[i] == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
                  ? sizeof (int)
                  : sizeof (void *));
  }
  return machine_leave (m, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemGetAddressRange_v2 (CUdeviceptr *base, size_t *size, CUdeviceptr at) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  const mapping *p = mapping_at (m, at);
  if (p == NULL)
    return machine_leave (m, CUDA_ERROR_NOT_FOUND);
  if (base != NULL)
    *base = p->at;
  if (size != NULL)
    *size = (size_t)p->bytes;
  return machine_leave (m, CUDA_SUCCESS);
}
