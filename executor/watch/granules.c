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

/* The digest of what is copied is taken meanwhile. */
static bool copy_out (const granules *r, thing *x, int64_t bytes) {
  int32_t check = x->own[STREAM_CHECK];
  return add_own (r, x, STREAM_OUT, 0, -bytes) && works_wait (r->q, check, r->err) &&
         (!x->checks || add_own (r, x, STREAM_CHECK, reading_ns (bytes), 0));
}

static bool go_out (const granules *r, thing *x, int64_t first, int64_t end) {
  int64_t bytes = span_bytes (r, x, first, end);
  bool checked = x->checks && run_end (x, first, end, READ) == end;
  if (!(checked ? check_out : copy_out) (r, x, bytes))
    return false;
  for (int64_t p = first; p < end; p++) {
    granule *g = &r->at[x->homes[p]];
    granule_empty (g, NULL);
    g->own[STREAM_OUT] = checked ? -1 : x->own[STREAM_OUT];
    g->own[STREAM_CHECK] = x->checks ? x->own[STREAM_CHECK] : -1;
    x->state[p] = AWAY;
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

bool thing_leaves (const granules *r, thing *x, int64_t first, int64_t end) {
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
static bool vacate (const granules *r, const thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++) {
    thing *owner = r->at[x->homes[p]].owner;
    if (owner != NULL && owner != x && !thing_leaves (r, owner, 0, owner->pages))
      return false;
  }
  return true;
}

static bool come_in (const granules *r, thing *x, int64_t first, int64_t end) {
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

bool thing_arrives (const granules *r, thing *x, int64_t first, int64_t end) {
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
  x->users = 0;
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

bool thing_has_room (const granules *r, thing *x) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    if (x->state[p] == LAZY && !vacate (r, x, p, p + 1))
      return false;
  return x->homes == NULL || thing_arrives (r, x, 0, x->pages);
}

bool thing_touched (const granules *r, thing *x, int32_t stream, bool reads) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++) {
    if (x->state[p] == LAZY && !wait_for_granule (r, &r->at[x->homes[p]], x))
      return false;
    bool was_clean = x->state[p] == CLEAN || x->state[p] == READ;
    if (x->state[p] != AWAY)
      x->state[p] = reads && was_clean ? READ : HERE;
  }
  x->users |= (uint64_t)1 << stream;
  return works_wait (r->q, x->own[STREAM_IN], r->err);
}
