/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/memory/clean.h"

#include <stdlib.h>
#include <string.h>

#include "executor/shim/digest/kernels.h"
#include "executor/shim/memory/memory.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/guard.h"

enum { MOST_BYTES = 1 << 15, LEAST_BYTES = 1 << 10, PART = 64, LARGE_PART = 8, WORDS = 2 };

/* A run of pages with its two digests: of the host's copy, and of the bytes that leave. */
typedef struct run {
  int32_t tensor, name; /* whose it is; of the last op that used it, when it left last */
  int64_t bytes;
} run;

struct clean {
  CUdeviceptr at; /* of the digests */
  uint64_t *told; /* pinned: 1 where a kernel has copied */
  run *runs;      /* the first is nobody's */
  int32_t n_runs, capacity;
};

/* A small tensor of ferry's own, which takes no granule more; runs is NULL where there is no room.
 */
static clean *clean_of (shim *s) {
  clean *c = s->clean;
  if (c != NULL || (c = s->clean = calloc (1, sizeof *c)) == NULL)
    return c;
  int64_t part = s->chunk_bytes / PART, large = s->chunk_bytes / LARGE_PART;
  int64_t least = large < LEAST_BYTES ? large : LEAST_BYTES;
  int64_t bytes = part < least ? least : part < MOST_BYTES ? part : MOST_BYTES;
  void *told = NULL;
  c->capacity = (int32_t)(bytes / (WORDS * (int64_t)sizeof *c->told));
  c->n_runs = 1;
  c->at =
      small_has_room (s, bytes) && kernels_ready (s) ? small_allocate (s, bytes, NULL, true) : 0;
  if (c->at == 0 || s->real.mem_host_alloc (&told, (size_t)c->capacity * sizeof *c->told,
                                            CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS)
    return c;
  memset (told, 0, (size_t)c->capacity * sizeof *c->told);
  c->told = told;
  c->runs = calloc ((size_t)c->capacity, sizeof *c->runs);
  return c;
}

static CUdeviceptr word (const clean *c, int32_t run, int32_t which) {
  return c->at + ((uint64_t)run * WORDS + (uint64_t)which) * sizeof *c->told;
}

static CUdeviceptr page_at (const shim *s, int32_t page) {
  return s->base + (uint64_t)page * (uint64_t)s->chunk_bytes;
}

static int64_t bytes_of (const shim *s, const tensor *t, int32_t first, int32_t end) {
  int64_t from = (int64_t)(first - t->first_page) * s->chunk_bytes;
  int64_t to = (int64_t)(end - t->first_page) * s->chunk_bytes;
  return (to < t->bytes ? to : t->bytes) - from;
}

/* Behind its users, beside the copies: one that leaves so must not stand in line with those. */
static bool digest (shim *s, tensor *t, int32_t first, int32_t end, int32_t which) {
  CUdeviceptr to = word (s->clean, s->pages[first].run, which);
  wait_for (s, s->check, STREAM_CHECK, t->users);
  wait_for_copy (s, s->check, STREAM_CHECK, STREAM_IN, t->in_copy);
  t->check = s->work[STREAM_CHECK] + 1;
  return s->real.set_bytes_async (to, 0, sizeof (uint64_t), s->check) == CUDA_SUCCESS &&
         digest_queue (s, page_at (s, first), bytes_of (s, t, first, end), to, s->check);
}

int32_t clean_room (shim *s) {
  const clean *c = clean_of (s);
  return c == NULL || c->runs == NULL ? 0 : c->capacity - c->n_runs;
}

bool clean_can_leave (const shim *s, const tensor *t, int32_t first, int32_t end) {
  for (int32_t p = first; p < end; p++)
    if (s->pages[p].in_op <= t->last_write || s->pages[p].run_first != first ||
        s->pages[p].run_end != end)
      return false;
  return first < end && s->pages[first].run != 0;
}

static int32_t name_of (const shim *s, int64_t op) {
  int64_t beat = record_beat_of (s, op);
  return beat < 0 ? 0 : beats_at (record_beats (s), beat)->name;
}

bool clean_leave (shim *s, tensor *t, int32_t first, int32_t end) {
  clean *c = s->clean;
  int32_t i = s->pages[first].run;
  run *r = &c->runs[i];
  r->name = name_of (s, t->last_op);
  r->tensor = (int32_t)(t - s->tensors);
  r->bytes = bytes_of (s, t, first, end);
  const unless u = { .from = page_at (s, first),
                     .to = t->host + (int64_t)(first - t->first_page) * s->chunk_bytes,
                     .bytes = r->bytes,
                     .a = word (c, i, 0),
                     .b = word (c, i, GUARD (clean) ? 1 : 0),
                     .told = &c->told[i] };
  bool good = digest (s, t, first, end, 1);
  wait_for_copy (s, s->check, STREAM_CHECK, STREAM_OUT, t->out_copy);
  good = good && copy_unless_queue (s, &u, s->check);
  (void)copy_issued (s, STREAM_CHECK);
  if (!good)
    return false;
  s->block->seen.clean_bytes += r->bytes;
  s->block->seen.checks++;
  return true;
}

bool clean_copied (shim *s, tensor *t, int32_t first, int32_t end) {
  clean *c = t->checks ? clean_of (s) : s->clean;
  bool wanted = t->checks && c != NULL && c->runs != NULL;
  int32_t i = s->pages[first].run;
  if (wanted && i == 0 && c->n_runs < c->capacity)
    i = s->pages[first].run = c->n_runs++;
  bool tries = wanted && i != 0;
  wanted = tries && digest (s, t, first, end, 0);
  if (tries)
    (void)copy_issued (s, STREAM_CHECK);
  for (int32_t p = first; p < end; p++) {
    page *g = &s->pages[p];
    g->run_first = wanted ? first : 0;
    g->run_end = wanted ? end : 0;
  }
  return tries;
}

bool clean_look (shim *s, int32_t *at, int32_t *t) {
  clean *c = s->clean;
  for (*at = *at > 0 ? *at : 1; c != NULL && *at < c->n_runs; ++*at) {
    const run *r = &c->runs[*at];
    if (__atomic_exchange_n (&c->told[*at], 0, __ATOMIC_ACQUIRE) == 0)
      continue;
    shim_seen *seen = &s->block->seen;
    seen->clean_bytes -= r->bytes;
    seen->out_bytes += r->bytes;
    if (seen->changed++ == 0)
      strncpy (s->block->changed_op, s->names[r->name], sizeof s->block->changed_op - 1);
    *t = r->tensor;
    ++*at;
    return true;
  }
  return false;
}
