/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Address space and the bytes behind it: places in a memfd. With --bytes none there are addresses
   and no bytes.  A place is used once, so what was freed can never be mistaken for what came after;
   the memfd is given back by holes. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "executor/emu/core.h"

static const int64_t memfd_bytes = (int64_t)1 << 60;
static const uint64_t first_fake = (uint64_t)1 << 44; /* below any address that mmap gives */

int64_t space_round (int64_t bytes, int64_t to) {
  assert (to > 0);
  return (bytes + to - 1) / to * to;
}

bool space_has_bytes (const machine *m) {
  return m->config.bytes == EMU_ALL;
}

/* Inaccessible address space, aligned. 0: none. */
uint64_t space_take (machine *m, int64_t bytes, int64_t align) {
  assert (bytes > 0 && align > 0 && (align & (align - 1)) == 0);
  if (!space_has_bytes (m)) {
    uint64_t at = (uint64_t)space_round ((int64_t)m->next_fake, align);
    if (bytes > ((int64_t)1 << 45) - (int64_t)(at - first_fake))
      return 0;
    m->next_fake = at + (uint64_t)space_round (bytes, EMU_PAGE);
    return at;
  }
  char *all = mmap (NULL, (size_t)(bytes + align), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return 0;
  uint64_t from = (uintptr_t)all, at = (uint64_t)space_round ((int64_t)from, align);
  if (at > from)
    munmap (all, at - from);
  if (from + (uint64_t)align > at)
    munmap ((char *)all + (at - from) + bytes, from + (uint64_t)align - at);
  return at;
}

void space_give (const machine *m, uint64_t at, int64_t bytes) {
  if (space_has_bytes (m))
    munmap ((void *)(uintptr_t)at, (size_t)bytes);
}

bool space_map (const machine *m, uint64_t at, int64_t bytes, int64_t place, int protection) {
  return !space_has_bytes (m) || mmap ((void *)(uintptr_t)at, (size_t)bytes, protection,
                                       MAP_SHARED | MAP_FIXED, m->memory, place) != MAP_FAILED;
}

bool space_unmap (const machine *m, uint64_t at, int64_t bytes) {
  return !space_has_bytes (m) ||
         mmap ((void *)(uintptr_t)at, (size_t)bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* ---- one device, several processes ---- */

static bool shared_start (machine *m) {
  if (m->config.shared[0] == 0)
    return true;
  if (!roster_open (&m->shared, m->config.shared))
    return false;
  roster_enter (&m->shared);
  bool good = roster_take (&m->shared, 0) != ROSTER_NONE;
  roster_leave (&m->shared);
  return good;
}

/* Counted in, where there is room beside what the others have. */
static bool shared_take (machine *m, int64_t bytes) {
  roster *r = &m->shared;
  if (r->at == NULL)
    return true;
  int64_t sum = bytes;
  roster_enter (r);
  for (int i = 0; i < ROSTER_ROWS; i++)
    if (r->at->row[i].word[EMU_SHARED_USED] != 0 && roster_taken (r, i))
      sum += __atomic_load_n (&r->at->row[i].word[EMU_SHARED_USED], __ATOMIC_RELAXED);
  bool good = sum <= m->config.memory_bytes;
  if (good) {
    __atomic_fetch_add (&r->at->row[r->own].word[EMU_SHARED_USED], bytes, __ATOMIC_RELAXED);
    if (sum > r->at->word[EMU_SHARED_HIGH])
      r->at->word[EMU_SHARED_HIGH] = sum;
  }
  roster_leave (r);
  return good;
}

static void shared_give (machine *m, int64_t bytes) {
  roster *r = &m->shared;
  if (r->at != NULL)
    __atomic_fetch_sub (&r->at->row[r->own].word[EMU_SHARED_USED], bytes, __ATOMIC_RELAXED);
}

/* ---- places ---- */

int64_t place_take (machine *m, int32_t of, int64_t bytes) {
  assert (bytes >= 0);
  card *c = &m->cards[of];
  if (bytes > m->config.memory_bytes - m->config.missing_bytes - c->used_bytes ||
      !shared_take (m, bytes))
    return -1;
  int64_t place = m->next_place;
  m->next_place += space_round (bytes, EMU_PAGE);
  c->used_bytes += bytes;
  if (c->used_bytes > c->high_bytes)
    c->high_bytes = c->used_bytes;
  return place;
}

void place_give (machine *m, int32_t of, int64_t place, int64_t bytes) {
  assert (bytes >= 0 && bytes <= m->cards[of].used_bytes);
  m->cards[of].used_bytes -= bytes;
  shared_give (m, bytes);
  if (space_has_bytes (m))
    (void)!fallocate (m->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place,
                      space_round (bytes, EMU_PAGE));
}

bool memory_start (machine *m) {
  m->ranges.size = sizeof (range);
  m->mappings.size = sizeof (mapping);
  m->next_fake = first_fake;
  m->memory = -1;
  m->pool_reuse[0] = m->pool_reuse[1] = m->pool_reuse[2] = 1;
  m->shared.file = -1;
  if (!shared_start (m))
    return false;
  if (!space_has_bytes (m))
    return true;
  m->memory = memfd_create ("emulated device memory", MFD_CLOEXEC);
  if (m->memory >= 0 && ftruncate (m->memory, memfd_bytes) != 0) {
    close (m->memory);
    m->memory = -1;
  }
  return m->memory >= 0;
}

void memory_stop (machine *m) {
  for (int64_t i = 0; i < m->ranges.count; i++) {
    range r;
    memcpy (&r, m->ranges.rows + i * (int64_t)sizeof r, sizeof r);
    if (r.kind == RANGE_HOST)
      munmap ((void *)(uintptr_t)r.at, (size_t)space_round (r.bytes, EMU_PAGE));
    else if (r.kind != RANGE_REGISTERED)
      space_give (m, r.at, space_round (r.bytes, EMU_PAGE));
  }
  if (m->memory >= 0)
    close (m->memory);
  roster_close (&m->shared);
  free (m->ranges.rows);
  free (m->mappings.rows);
  free (m->handles);
}
