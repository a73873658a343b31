/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/granules.h"

/* A kernel reads at the memory's speed. */
enum { DIGEST_NS = 2000, DIGEST_BYTES_PER_NS = 2000 };

void granule_empty (granule *g, thing *owner) {
  *g = (granule){ .own = { -1, -1, -1 }, .owner = owner };
}

static int64_t reading_ns (int64_t bytes) {
  return DIGEST_NS + bytes / DIGEST_BYTES_PER_NS;
}

int64_t digest_ns (const thing *x) {
  return x->pages == 0 ? 0 : reading_ns (x->bytes);
}

bool wait_for_streams (const granules *r, uint64_t streams) {
  for (int32_t i = 0; streams != 0; i++, streams >>= 1)
    if ((streams & 1) != 0 && !works_wait (r->q, r->q->last[i], r->err))
      return false;
  return true;
}

static int64_t span_bytes (const granules *r, const thing *x, int64_t first, int64_t end) {
  int64_t to = end * r->bytes;
  return (to < x->bytes ? to : x->bytes) - first * r->bytes;
}

static int64_t run_end (const thing *x, int64_t from, int64_t end, where state) {
  while (from < end && x->state[from] == state)
    from++;
  return from;
}

/* ---- out ---- */

/* Work of the shim's on one of its streams, behind all that used the tensor. */
static bool add_own (const granules *r, thing *x, int32_t stream, int64_t ns, int64_t bytes) {
  if (!works_add (r->q, stream, ns, bytes, r->err) || !works_wait (r->q, r->host, r->err) ||
      !wait_for_streams (r, x->users) || !works_wait (r->q, x->own[STREAM_IN], r->err))
    return false;
  x->own[stream] = r->q->last[stream];
  return true;
}

/* Its digest is that of the host's copy, or it is copied behind all. */
static bool check_out (const granules *r, thing *x, int64_t bytes) {
  return add_own (r, x, STREAM_CHECK, COMPARE_NS + reading_ns (bytes), 0) &&
         works_wait (r->q, x->own[STREAM_OUT], r->err);
}

/* Room for a digest of the run that begins there. */
static bool has_digest (granules *r, thing *x, int64_t first) {
  digest_run *d = &x->digests[first];
  if (x->checks && !d->has_room && r->checks > 0) {
    d->has_room = true;
    r->checks--;
  }
  return x->checks && d->has_room;
}

/* The digest of what is copied is taken meanwhile, where there is room for it. */
static bool copy_out (const granules *r, thing *x, int64_t bytes, bool digested) {
  int32_t check = x->own[STREAM_CHECK];
  return add_own (r, x, STREAM_OUT, 0, -bytes) && works_wait (r->q, check, r->err) &&
         (!digested || add_own (r, x, STREAM_CHECK, reading_ns (bytes), 0));
}

/* Nobody was seen to write these pages since they came back, and the digest is of all of them. */
static bool is_checked (const thing *x, int64_t first, int64_t end) {
  bool good = x->checks && x->digests[first].has_room && run_end (x, first, end, READ) == end;
  for (int64_t p = first; good && p < end; p++)
    good = x->digests[p].first == first && x->digests[p].end == end;
  return good;
}

static bool go_out (granules *r, thing *x, int64_t first, int64_t end) {
  int64_t bytes = span_bytes (r, x, first, end);
  bool checked = is_checked (x, first, end), digested = checked || has_digest (r, x, first);
  if (!(checked ? check_out (r, x, bytes) : copy_out (r, x, bytes, digested)))
    return false;
  for (int64_t p = first; p < end; p++) {
    granule *g = &r->at[x->homes[p]];
    granule_empty (g, NULL);
    g->own[STREAM_OUT] = checked ? -1 : x->own[STREAM_OUT];
    g->own[STREAM_CHECK] = digested ? x->own[STREAM_CHECK] : -1;
    x->state[p] = AWAY;
    x->digests[p].first = digested ? first : 0;
    x->digests[p].end = digested ? end : 0;
  }
  return true;
}

static void drop_clean (const granules *r, thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++)
    if (x->state[p] == CLEAN) {
      granule_empty (&r->at[x->homes[p]], NULL);
      r->at[x->homes[p]].own[STREAM_IN] = x->own[STREAM_IN];
      x->state[p] = AWAY;
    }
}

bool thing_leaves (granules *r, thing *x, int64_t first, int64_t end) {
  drop_clean (r, x, first, end);
  for (int64_t p = first; p < end; p++) {
    int64_t to = p;
    while (to < end && (x->state[to] == HERE || x->state[to] == READ))
      to++;
    if (to > p && !go_out (r, x, p, to))
      return false;
    p = to > p ? to - 1 : p;
  }
  return true;
}

/* ---- in ---- */

static bool wait_for_granule (const granules *r, granule *g, thing *owner) {
  granule was = *g;
  granule_empty (g, owner);
  if (!wait_for_streams (r, was.streams))
    return false;
  for (int i = 0; i < SHIM_STREAMS; i++)
    if (!works_wait (r->q, was.own[i], r->err))
      return false;
  return true;
}

/* Whoever is in the way of these pages goes: a plan has no copy for what is dropped. */
static bool vacate (granules *r, const thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++) {
    thing *owner = r->at[x->homes[p]].owner;
    if (owner != NULL && owner != x && !thing_leaves (r, owner, 0, owner->pages))
      return false;
  }
  return true;
}

static bool come_in (granules *r, thing *x, int64_t first, int64_t end) {
  if (!vacate (r, x, first, end) ||
      !works_add (r->q, STREAM_IN, 0, span_bytes (r, x, first, end), r->err) ||
      !works_wait (r->q, r->host, r->err) || !works_wait (r->q, x->own[STREAM_OUT], r->err) ||
      !works_wait (r->q, x->own[STREAM_CHECK], r->err))
    return false;
  x->own[STREAM_IN] = r->q->last[STREAM_IN];
  for (int64_t p = first; p < end; p++) {
    if (!wait_for_granule (r, &r->at[x->homes[p]], x))
      return false;
    x->state[p] = CLEAN;
  }
  return true;
}

bool thing_arrives (granules *r, thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++) {
    int64_t to = run_end (x, p, end, AWAY);
    if (to > p && !come_in (r, x, p, to))
      return false;
    p = to > p ? to - 1 : p;
  }
  return true;
}

bool is_way_taken (const granules *r, const thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++)
    if (x->state[p] == AWAY && r->at[x->homes[p]].owner != NULL)
      return true;
  return false;
}

bool is_place_taken (const granules *r, const thing *x) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    if ((x->state[p] == LAZY || x->state[p] == AWAY) && r->at[x->homes[p]].owner != NULL)
      return true;
  return false;
}

/* ---- its life ---- */

void thing_made (thing *x) {
  x->dropped = x->freed = false;
  x->users = x->turn = x->behind = x->behind_seen = 0;
  for (int i = 0; i < SHIM_STREAMS; i++)
    x->behind_own[i] = -1;
  x->own[STREAM_OUT] = x->own[STREAM_IN] = -1;
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    x->state[p] = LAZY;
}

void thing_released (const granules *r, thing *x) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    if (x->state[p] == HERE || x->state[p] == CLEAN || x->state[p] == READ) {
      granule *g = &r->at[x->homes[p]];
      granule_empty (g, NULL);
      g->streams = x->users;
      g->own[STREAM_IN] = x->own[STREAM_IN];
      x->state[p] = LAZY;
    }
}

bool thing_has_room (granules *r, thing *x) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    if (x->state[p] == LAZY && !vacate (r, x, p, p + 1))
      return false;
  return x->homes == NULL || thing_arrives (r, x, 0, x->pages);
}

static void note_turn (thing *x, const granule *g) {
  x->turn |= g->streams;
  for (int i = 0; i < SHIM_STREAMS; i++)
    if (g->own[i] > x->behind_own[i])
      x->behind_own[i] = g->own[i];
}

void thing_remade (thing *x, int32_t stream) {
  x->behind = x->turn | (uint64_t)1 << stream;
  x->behind_seen = (uint64_t)1 << stream;
}

static bool wait_for_turn (const granules *r, thing *x, int32_t stream) {
  if (x->behind == 0 || (x->behind_seen >> stream & 1) != 0)
    return true;
  x->behind_seen |= (uint64_t)1 << stream;
  for (int i = 0; i < SHIM_STREAMS; i++)
    if (!works_wait (r->q, x->behind_own[i], r->err))
      return false;
  return wait_for_streams (r, x->behind);
}

bool thing_touched (const granules *r, thing *x, int32_t stream, bool reads) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++) {
    if (x->state[p] == LAZY) {
      note_turn (x, &r->at[x->homes[p]]);
      if (!wait_for_granule (r, &r->at[x->homes[p]], x))
        return false;
    }
    bool was_clean = x->state[p] == CLEAN || x->state[p] == READ;
    if (x->state[p] != AWAY)
      x->state[p] = reads && was_clean ? READ : HERE;
  }
  x->users |= (uint64_t)1 << stream;
  return wait_for_turn (r, x, stream) && works_wait (r->q, x->own[STREAM_IN], r->err);
}
