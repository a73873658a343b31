/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Allocs and their frees.  With addresses the pairs are certain; without them the last alloc of the
   same size is taken, which is how a caching allocator behaves, and only a guess. */
#include <string.h>

#include "trace/import/kineto/kineto.h"

/* Events at one time may stand in the wrong order.  Where running totals are given they tell the
   right one: the next event is that whose total follows from the last. */
static void order_by_totals (kineto_memory *m, const int32_t *at, int32_t n, int64_t total) {
  for (int32_t i = 0; i < n && i < 64; i++) {
    int32_t next = i;
    while (next < n && next < 64 && m[at[next]].total - m[at[next]].bytes != total)
      next++;
    if (next == n || next == 64)
      return;
    kineto_memory moved = m[at[next]];
    for (int32_t j = next; j > i; j--)
      m[at[j]] = m[at[j - 1]];
    m[at[i]] = moved;
    total = moved.total;
  }
}

static void order_ties (kineto_memory *m, const int32_t *at, int32_t n) {
  int64_t total = -1;
  for (int32_t i = 0; i < n;) {
    int32_t end = i + 1;
    while (end < n && m[at[end]].at_ns == m[at[i]].at_ns)
      end++;
    if (end > i + 1 && total >= 0 && m[at[i]].total >= 0)
      order_by_totals (m, at + i, end - i, total);
    total = m[at[end - 1]].total;
    i = end;
  }
}

typedef struct pairing {
  import_job *job;
  const kineto *k;
  kineto_blocks *out;
  int64_t room;
  id_map open;     /* by address, or by size: the block opened last */
  int32_t *opened; /* per block: the one opened before it under the same key */
  int64_t opened_room;
} pairing;

/* An alloc where a block still lies ends it: a free on a thread that the profiler does not follow
   is not in the file. */
static void end_lost (pairing *p, int32_t event, int64_t address) {
  int32_t last = id_map_find (&p->open, address);
  if (last < 0)
    return;
  p->out->at[last].release = event;
  p->out->lost_frees++;
}

static bool make_room (pairing *p) {
  kineto_blocks *out = p->out;
  int64_t count = (int64_t)out->count + 1;
  out->at = arena_grow (p->job->scratch, out->at, &p->room, count, sizeof *out->at, p->job->err);
  p->opened = arena_grow (p->job->scratch, p->opened, &p->opened_room, count, sizeof *p->opened,
                          p->job->err);
  return out->at && p->opened;
}

static bool open_block (pairing *p, int32_t event, int64_t key, int64_t bytes) {
  kineto_blocks *out = p->out;
  if (out->by_address)
    end_lost (p, event, key);
  int32_t *last = make_room (p) ? id_map_at (&p->open, key, p->job->err) : NULL;
  if (!last)
    return false;
  p->opened[out->count] = out->by_address ? NONE : *last;
  *last = out->count;
  out->at[out->count++] = (kineto_block){ bytes, event, NONE };
  return true;
}

static bool add_unpaired_free (pairing *p, int32_t event, int64_t bytes) {
  kineto_blocks *out = p->out;
  if (!make_room (p))
    return false;
  out->at[out->count++] = (kineto_block){ bytes, NONE, event };
  out->unpaired_frees++;
  return true;
}

static bool close_block (pairing *p, int32_t event, int64_t key, int64_t bytes) {
  int32_t *last = id_map_at (&p->open, key, p->job->err);
  if (!last)
    return false;
  if (*last < 0)
    return add_unpaired_free (p, event, bytes);
  kineto_block *b = &p->out->at[*last];
  b->release = event;
  p->out->size_mismatches += b->bytes != bytes;
  *last = p->opened[*last];
  return true;
}

/* A free that finds nothing, or an alloc where a block still lies, with its counterpart right
   behind it at the same time, was written in the wrong order; that is moved before it. */
static void move_here (kineto_memory *m, const int32_t *at, int32_t n, int32_t i, bool by_address) {
  kineto_memory wanted = m[at[i]];
  for (int32_t j = i + 1; j < n && j < i + 64 && m[at[j]].at_ns == wanted.at_ns; j++)
    if (by_address
            ? m[at[j]].address == wanted.address && (m[at[j]].bytes < 0) != (wanted.bytes < 0)
            : m[at[j]].bytes == -wanted.bytes) {
      kineto_memory moved = m[at[j]];
      for (int32_t k = j; k > i; k--)
        m[at[k]] = m[at[k - 1]];
      m[at[i]] = moved;
      return;
    }
}

static int32_t *select_device (import_job *job, const kineto *k, int32_t device, int32_t *n) {
  int32_t *at = NEW (job->scratch, k->n_memory, int32_t, job->err);
  *n = 0;
  for (int32_t i = 0; at && i < k->n_memory; i++)
    if (k->memory[i].device == device)
      at[(*n)++] = i;
  return at;
}

bool kineto_pair (import_job *job, const kineto *k, int32_t device, kineto_blocks *out) {
  int32_t n;
  *out = (kineto_blocks){ .by_address = true, .has_totals = true };
  int32_t *at = select_device (job, k, device, &n);
  if (!at)
    return false;
  kineto_memory *m = k->memory;
  for (int32_t i = 0; i < n; i++) {
    out->by_address &= m[at[i]].has_address;
    out->has_totals &= m[at[i]].total >= 0;
  }
  if (out->has_totals)
    order_ties (m, at, n);
  pairing p = { .job = job, .k = k, .out = out, .open = id_map_new (job->scratch) };
  for (int32_t i = 0; i < n; i++) {
    const kineto_memory *e = &m[at[i]];
    if (i && out->has_totals)
      out->breaks += e->total - m[at[i - 1]].total != e->bytes;
    int64_t key = out->by_address ? e->address : e->bytes < 0 ? -e->bytes : e->bytes;
    bool lies = id_map_find (&p.open, key) >= 0;
    if (e->bytes < 0 ? !lies && !out->has_totals : lies && out->by_address)
      move_here (m, at, n, i, out->by_address); /* *e is now that event */
    int64_t size = e->bytes < 0 ? -e->bytes : e->bytes;
    if (!(e->bytes > 0 ? open_block (&p, at[i], key, size) : close_block (&p, at[i], key, size)))
      return false;
  }
  for (int32_t i = 0; i < out->count; i++)
    out->unpaired_allocs += out->at[i].release == NONE;
  return true;
}

int64_t kineto_peak_bytes (const kineto_peak *peak) {
  return peak->baseline_bytes >= 0 ? peak->peak_total_bytes : peak->above_bytes;
}

void kineto_sum (const kineto *k, int32_t device, kineto_window window, kineto_peak *out) {
  int64_t live = 0;
  bool first = true;
  *out = (kineto_peak){ .baseline_bytes = -1 };
  for (int32_t i = 0; i < k->n_memory; i++) {
    const kineto_memory *e = &k->memory[i];
    if (e->device != device || e->at_ns < window.start_ns || e->at_ns >= window.end_ns)
      continue;
    if (first && e->total >= 0)
      out->baseline_bytes = e->total - e->bytes;
    first = false;
    live += e->bytes;
    if (live > out->above_bytes)
      out->above_bytes = live;
    if (e->bytes > 0) {
      out->allocs++;
      out->allocated_bytes += e->bytes;
      if (e->bytes > out->largest_bytes)
        out->largest_bytes = e->bytes;
    } else
      out->frees++;
    if (e->total > out->peak_total_bytes)
      out->peak_total_bytes = e->total;
    if (e->reserved > out->peak_reserved_bytes)
      out->peak_reserved_bytes = e->reserved;
  }
  out->end_bytes = live;
}
