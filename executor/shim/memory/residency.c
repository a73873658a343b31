/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Residency: the tensors on the device.  A tensor's pages keep the chunks in which they live, so
   that it comes back to the same ones without a call to map anything; whoever holds them then goes
   out first.  All orders are events between streams.  In strict mode what is away is also unmapped,
   for which the host waits. */
#include <string.h>
#include <time.h>

#include "executor/shim/memory/clean.h"
#include "executor/shim/memory/memory.h"
#include "executor/shim/memory/share.h"
#include "executor/shim/record/last.h"
#include "executor/shim/record/order.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/guard.h"

static int64_t span_bytes (const shim *s, const tensor *t, int32_t first, int32_t end) {
  int64_t from = (int64_t)(first - t->first_page) * s->chunk_bytes;
  int64_t to = (int64_t)(end - t->first_page) * s->chunk_bytes;
  return (to < t->bytes ? to : t->bytes) - from;
}

static CUdeviceptr page_at (const shim *s, int32_t page) {
  return s->base + (uint64_t)page * (uint64_t)s->chunk_bytes;
}

static bool copy_out (shim *s, tensor *t, int32_t first, int32_t end) {
  int64_t bytes = span_bytes (s, t, first, end);
  int64_t offset = (int64_t)(first - t->first_page) * s->chunk_bytes;
  wait_for (s, s->out, STREAM_OUT, t->users);
  wait_for_copy (s, s->out, STREAM_OUT, STREAM_IN, t->in_copy);
  wait_for_copy (s, s->out, STREAM_OUT, STREAM_CHECK, t->check);
  last_begins (s, &(last_work){ STREAM_OUT, bytes, t->number, NULL }, s->out);
  if (s->real.copy_out_async (t->host + offset, page_at (s, first), (size_t)bytes, s->out) !=
      CUDA_SUCCESS)
    return false;
  last_ends (s);
  t->out_copy = copy_issued (s, STREAM_OUT);
  s->block->seen.out_bytes += bytes;
  return true;
}

static bool run_out (shim *s, tensor *t, int32_t first, int32_t end) {
  bool clean = clean_can_leave (s, t, first, end) && clean_leave (s, t, first, end);
  if (!clean && !copy_out (s, t, first, end))
    return false;
  bool checked = clean || clean_copied (s, t, first, end);
  for (int32_t p = first; p < end; p++) {
    chunk *c = &s->chunks[s->pages[p].chunk];
    c->page = NONE;
    c->pending = 0;
    c->freed_by = clean ? 0 : t->out_copy;
    c->checked_by = checked ? t->check : 0;
    c->came_by = 0;
    s->free_chunks++;
    s->pages[p].state = PAGE_AWAY;
  }
  return true;
}

static int32_t run_end (const shim *s, int32_t from, int32_t end, page_state state) {
  while (from < end && s->pages[from].state == state)
    from++;
  return from;
}

/* No op has touched the tensor since these bytes came from the host: it has them. */
static bool is_clean (const shim *s, const tensor *t, int32_t page) {
  return s->pages[page].in_op > t->last_op;
}

static int32_t clean_end (const shim *s, const tensor *t, int32_t from, int32_t end) {
  while (from < end && s->pages[from].state == PAGE_HERE && is_clean (s, t, from))
    from++;
  return from;
}

static void drop_clean (shim *s, const tensor *t, int32_t first, int32_t end) {
  for (int32_t p = first; p < end; p++) {
    chunk *c = &s->chunks[s->pages[p].chunk];
    c->page = NONE;
    c->pending = 0;
    c->freed_by = c->checked_by = 0;
    c->came_by = t->in_copy; /* it may still be on its way */
    s->free_chunks++;
    s->pages[p].state = PAGE_AWAY;
  }
  s->block->seen.clean_bytes += span_bytes (s, t, first, end);
  if (!s->strict)
    return;
  host_wait_for_copy (s, STREAM_IN, t->in_copy);
  for (int32_t p = first; p < end; p++)
    page_unmap (s, p);
}

/* Not below a call of another thread that waits without the lock: perhaps the driver has not queued
   all of its copy yet. */
bool pages_out (shim *s, int32_t i, int32_t first, int32_t end) {
  tensor *t = &s->tensors[i];
  bool any = false;
  if (t->holds > 0)
    return false;
  for (int32_t p = first; p < end; p++) {
    int32_t clean = clean_end (s, t, p, end), to = clean;
    if (clean > p) {
      drop_clean (s, t, p, clean);
      p = clean - 1;
      continue;
    }
    while (to < end && s->pages[to].state == PAGE_HERE && !is_clean (s, t, to))
      to++;
    if (to == p)
      continue;
    if (!host_take (s, t) || !run_out (s, t, p, to))
      return false;
    any = true;
    if (s->strict) {
      host_wait_for_copy (s, STREAM_OUT, t->out_copy);
      host_wait_for_copy (s, STREAM_CHECK, t->check);
      for (int32_t q = p; q < to; q++)
        page_unmap (s, q);
    }
    p = to - 1;
  }
  s->block->seen.evictions += any;
  return true;
}

/* None where many streams share the last bit: of those nobody knows which has waited. */
static uint64_t own_bit (const op *o) {
  return o->stream_bit == MANY_STREAMS ? 0 : (uint64_t)1 << o->stream_bit;
}

/* The chunk is nobody's: before anyone writes it, what was there must be over. Several streams may
   share a tensor from its first use on; each of the others waits by itself. */
static void wait_for_chunk (shim *s, const op *o, tensor *t, chunk *c) {
  int64_t beat = record_beats (s)->n; /* the op's, in a moment */
  bool again = t->behind != 0 && t->first_beat != beat;
  t->first = again || own_bit (o) == 0 ? NONE : o->stream_bit;
  t->first_beat = beat;
  wait_for (s, o->stream, o->stream_bit, c->pending);
  wait_for_copy (s, o->stream, o->stream_bit, STREAM_OUT, c->freed_by);
  wait_for_copy (s, o->stream, o->stream_bit, STREAM_CHECK, c->checked_by);
  wait_for_copy (s, o->stream, o->stream_bit, STREAM_IN,
                 c->came_by > 0 && VARIANT (tail) ? s->work[STREAM_IN] : c->came_by);
  const int64_t copies[COPY_STREAMS] = { c->freed_by, c->came_by, c->checked_by };
  for (int i = 0; i < COPY_STREAMS; i++) {
    int64_t copy = (c->pending >> i & 1) != 0 ? s->work[i] : copies[i];
    t->behind_copy[i] = copy > t->behind_copy[i] ? copy : t->behind_copy[i];
  }
  t->behind |= c->pending | (uint64_t)(c->freed_by > 0) << STREAM_OUT |
               (uint64_t)(c->checked_by > 0) << STREAM_CHECK |
               (uint64_t)(c->came_by > 0) << STREAM_IN;
  t->behind_seen = own_bit (o);
  c->pending = 0;
  c->freed_by = c->checked_by = c->came_by = 0;
}

/* The pages have chunks that are theirs and are mapped; the bytes come. */
static bool run_in (shim *s, tensor *t, int32_t first, int32_t end) {
  uint64_t pending = 0;
  int64_t freed_by = t->out_copy, checked_by = t->check; /* the newest that it waits for */
  for (int32_t p = first; p < end; p++) {
    chunk *c = &s->chunks[s->pages[p].chunk];
    pending |= c->pending;
    freed_by = c->freed_by > freed_by ? c->freed_by : freed_by;
    checked_by = c->checked_by > checked_by ? c->checked_by : checked_by;
    c->pending = 0;
    c->freed_by = c->checked_by = c->came_by = 0; /* copies in are behind each other */
    s->pages[p].state = PAGE_HERE;
    s->pages[p].in_op = shim_next_op (s);
  }
  wait_for (s, s->in, STREAM_IN, pending);
  wait_for_copy (s, s->in, STREAM_IN, STREAM_OUT, freed_by);
  wait_for_copy (s, s->in, STREAM_IN, STREAM_CHECK, checked_by);
  int64_t bytes = span_bytes (s, t, first, end);
  int64_t offset = (int64_t)(first - t->first_page) * s->chunk_bytes;
  last_begins (s, &(last_work){ STREAM_IN, bytes, t->number, NULL }, s->in);
  if (s->real.copy_in_async (page_at (s, first), t->host + offset, (size_t)bytes, s->in) !=
      CUDA_SUCCESS)
    return false;
  last_ends (s);
  t->in_copy = copy_issued (s, STREAM_IN);
  s->block->seen.in_bytes += bytes;
  return true;
}

/* ---- room ---- */

/* True if the bytes of this page may leave for the sake of op `o`. */
static bool may_leave (const shim *s, int32_t page, const op *o) {
  int32_t i = s->pages[page].tensor - 1;
  const tensor *t = i < 0 ? NULL : &s->tensors[i];
  return t != NULL && t->holds == 0 && !t->escaped && (o == NULL || t->stamp != o->number);
}

static int32_t least_used (const shim *s, const op *o) {
  int32_t best = NONE;
  for (int32_t c = 0; c < s->n_chunks; c++) {
    int32_t page = s->chunks[c].page;
    if (page == NONE || s->chunks[c].small || s->pages[page].state != PAGE_HERE ||
        !may_leave (s, page, o))
      continue;
    int32_t t = s->pages[page].tensor - 1;
    if (best == NONE || s->tensors[t].last_op < s->tensors[best].last_op)
      best = t;
  }
  return best;
}

static bool tensor_out (shim *s, int32_t i) {
  const tensor *t = &s->tensors[i];
  return pages_out (s, i, t->first_page, t->first_page + t->n_pages);
}

/* Another address is still mapped to it, for whom it would be the next time. */
static bool is_parked (const shim *s, int32_t c) {
  const page *g = s->chunks[c].last == NONE ? NULL : &s->pages[s->chunks[c].last];
  return g != NULL && g->mapped && g->chunk == c;
}

/* In strict mode no address reaches what another one has. */
static bool unpark (shim *s, int32_t c) {
  const chunk *k = &s->chunks[c];
  if (!s->strict || !is_parked (s, c))
    return true;
  chunk_quiet (s, k);
  return page_unmap (s, k->last);
}

/* A chunk that nobody has; one that is mapped nowhere before others, since mapping is what takes
   time. Somebody leaves where there is none. */
int32_t chunk_take (shim *s, const op *o) {
  int32_t best = chunk_new (s);
  if (best != NONE)
    return best;
  if (s->free_chunks == 0) {
    int32_t t = least_used (s, o);
    if (t == NONE || !tensor_out (s, t))
      return NONE;
  }
  bool parked = true;
  for (int32_t c = 0; c < s->n_chunks && parked; c++)
    if (s->chunks[c].page == NONE) {
      parked = is_parked (s, c);
      best = best == NONE || !parked ? c : best;
    }
  return best != NONE && unpark (s, best) ? best : NONE;
}

/* Whoever is in the way goes; false: it must not, or it need not, for there is room elsewhere. */
static bool vacate (shim *s, int32_t c, const op *o) {
  int32_t page = s->chunks[c].page;
  if (page == NONE)
    return true;
  bool room = s->free_chunks > 0 || s->n_chunks < s->most_chunks;
  if ((room && !s->placed) || s->chunks[c].small || s->pages[page].state != PAGE_HERE ||
      !may_leave (s, page, o))
    return false;
  return tensor_out (s, s->pages[page].tensor - 1) && s->chunks[c].page == NONE;
}

/* Nothing that is queued uses the address any more. */
static void quiet (shim *s, tensor *t) {
  host_wait_for_copy (s, STREAM_OUT, t->past_out > t->out_copy ? t->past_out : t->out_copy);
  host_wait_for_copy (s, STREAM_IN, t->past_in > t->in_copy ? t->past_in : t->in_copy);
  host_wait_for_copy (s, STREAM_CHECK, t->check);
  host_wait_for (s, t->users | t->past);
  t->past_in = t->past_out = 0;
  t->past = 0;
}

static bool page_settle (shim *s, tensor *t, int32_t page, const op *o) {
  page_state state = s->pages[page].state;
  int32_t c = s->pages[page].chunk;
  if (state == PAGE_HERE)
    return true;
  if (c == NONE || !vacate (s, c, o)) {
    c = chunk_take (s, o);
    if (c == NONE)
      return false;
    if (s->pages[page].mapped) {
      quiet (s, t);
      page_unmap (s, page);
    }
  }
  if (s->chunks[c].last != page && !unpark (s, c))
    return false;
  if (!s->pages[page].mapped && !page_map (s, page, c))
    return false;
  s->chunks[c].page = s->chunks[c].last = page;
  s->free_chunks--;
  return true;
}

/* Granules of pages to which no bytes will come now: they are free again, and a later attempt finds
   them so. Nothing has used the pages since they were mapped. */
static void give_up (shim *s, int32_t first, int32_t end) {
  for (int32_t p = first; p < end; p++) {
    int32_t c = s->pages[p].chunk;
    if (s->pages[p].state == PAGE_HERE || c == NONE || s->chunks[c].page != p)
      continue;
    s->chunks[c].page = NONE;
    s->free_chunks++;
    if (s->strict && s->pages[p].state == PAGE_AWAY && s->pages[p].mapped)
      page_unmap (s, p);
  }
}

/* All pages have granules that are theirs, or none has one more than before. */
static bool settle_all (shim *s, tensor *t, int32_t first, int32_t end, const op *o) {
  bool good = true;
  for (int32_t p = first; good && p < end; p++)
    good = page_settle (s, t, p, o);
  good = pages_allow (s) && good;
  if (!good)
    give_up (s, first, end);
  return good;
}

bool pages_in (shim *s, int32_t i, int32_t first, int32_t end) {
  tensor *t = &s->tensors[i];
  for (int32_t p = first; p < end; p++) {
    int32_t to = run_end (s, p, end, PAGE_AWAY);
    if (to > p && !settle_all (s, t, p, to, NULL))
      return false;
    if (to > p && !run_in (s, t, p, to))
      return false;
    p = to > p ? to - 1 : p;
  }
  return true;
}

bool tensor_settle (shim *s, int32_t i) {
  tensor *t = &s->tensors[i];
  if (!tensor_out (s, i))
    return false;
  quiet (s, t);
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++)
    if (s->pages[p].mapped && !page_unmap (s, p))
      return false;
  return true;
}

/* ---- an op ---- */

static bool come (shim *s, op *o, tensor *t) {
  int32_t end = t->first_page + t->n_pages;
  if (run_end (s, t->first_page, end, PAGE_HERE) == end)
    return true;
  if (!settle_all (s, t, t->first_page, end, o))
    return false;
  for (int32_t p = t->first_page; p < end;) {
    int32_t away = run_end (s, p, end, PAGE_AWAY);
    if (away > p && !run_in (s, t, p, away)) {
      give_up (s, p, end);
      return false;
    }
    s->block->seen.unplanned += away > p;
    for (p = away; p < end && s->pages[p].state != PAGE_AWAY; p++)
      if (s->pages[p].state == PAGE_LAZY) {
        wait_for_chunk (s, o, t, &s->chunks[s->pages[p].chunk]);
        s->pages[p].state = PAGE_HERE;
        s->pages[p].in_op = NONE;
      }
  }
  return true;
}

static bool all_come (shim *s, op *o) {
  for (int32_t i = 0; i < o->n_refs; i++)
    if (!come (s, o, &s->tensors[o->refs[i]]))
      return false;
  return true;
}

/* A call of another thread that waits without the lock keeps its tensors here. */
static bool is_held (const shim *s) {
  for (int32_t i = 0; i < s->n_tensors; i++)
    if (s->tensors[i].holds > 0)
      return true;
  return false;
}

static int64_t stamp_all (shim *s, const op *o) {
  int64_t needed = 0;
  for (int32_t i = 0; i < o->n_refs; i++) {
    tensor *t = &s->tensors[o->refs[i]];
    t->stamp = o->number;
    needed += t->n_pages * s->chunk_bytes;
  }
  return needed;
}

/* For a while: what that thread waits for may be this one. */
static bool come_behind_others (shim *s, op *o) {
  enum { PATIENCE = 20000 };
  const struct timespec moment = { 0, 500000 };
  for (int i = 0; i < PATIENCE && !s->host_full && is_held (s); i++) {
    (void)shim_leave (s, CUDA_SUCCESS);
    bool was = shim_set_inside (true);
    nanosleep (&moment, NULL);
    (void)shim_set_inside (was);
    shim_begin (s);
    (void)stamp_all (s, o);
    if (all_come (s, o))
      return true;
  }
  return false;
}

/* Behind those who had its granules: of the shim's own work up to the copies that count. */
static void wait_for_turn (shim *s, const op *o, const tensor *t) {
  const uint64_t own = ((uint64_t)1 << COPY_STREAMS) - 1;
  wait_for (s, o->stream, o->stream_bit, t->behind & ~own);
  for (int32_t i = 0; i < COPY_STREAMS; i++)
    wait_for_copy (s, o->stream, o->stream_bit, i, t->behind_copy[i]);
}

bool op_make_room (shim *s, op *o) {
  s->host_full = false;
  int64_t needed = stamp_all (s, o);
  if (needed > s->block->seen.floor_bytes) {
    s->block->seen.floor_bytes = needed;
    strncpy (s->block->floor_op, s->names[o->name], sizeof s->block->floor_op - 1);
  }
  if (!all_come (s, o) && !come_behind_others (s, o) &&
      !(share_wait (s, needed + share_fixed_bytes (s)) && all_come (s, o))) {
    if (!s->host_full)
      shim_say (s,
                "op %lld `%s` needs %lld bytes resident at once, the budget is %lld bytes; small "
                "tensors and escaped ones stay beside them; raise --budget, to %lld bytes at least",
                (long long)o->number, s->names[o->name], (long long)needed,
                (long long)(s->most_chunks * s->chunk_bytes),
                (long long)(needed + share_fixed_bytes (s)));
    return false;
  }
  uint64_t bit = (uint64_t)1 << o->stream_bit;
  if (s->fence != 0 && (s->fence_seen & bit) == 0) {
    wait_for (s, o->stream, o->stream_bit, s->fence);
    s->fence_seen |= own_bit (o);
  }
  for (int32_t i = 0; i < o->n_refs; i++) {
    tensor *t = &s->tensors[o->refs[i]];
    if (t->in_copy > 0)
      wait_for_copy (s, o->stream, o->stream_bit, STREAM_IN, t->in_copy);
    if (t->behind != 0 && (t->behind_seen & bit) == 0) {
      if (!order_is_behind (s->order, o->stream_bit, t->first, t->first_beat))
        wait_for_turn (s, o, t);
      t->behind_seen |= own_bit (o);
    }
    t->users |= bit;
    t->last_op = o->number;
  }
  s->work[o->stream_bit]++;
  return true;
}

void strict_begin (shim *s) {
  if (s->strict || !GUARD (strict))
    return;
  s->strict = true;
  shim_note (s, s->real.ctx_synchronize ());
  for (int32_t p = 0; p < s->next_page; p++)
    if (s->pages[p].mapped && s->pages[p].state != PAGE_HERE)
      page_unmap (s, p);
}
