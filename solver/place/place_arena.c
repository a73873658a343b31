/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places in one arena: each stay one stretch, offsets planned ahead over the circle of the step.
   Stays of a unit's parts that some op finds together lie side by side, so they are one thing to
   place, of which pieces come and go; all else is a thing of its own. */
#include <assert.h>
extern int dbg_how;
#include <string.h>

#include "base/order.h"
#include "solver/place/circle.h"
#include "solver/place/follow.h"
#include "solver/place/late.h"
#include "solver/place/offsets.h"
#include "solver/place/place.h"

enum { HASTY = 16 }; /* the part of the ticks for what seldom fits */

typedef struct packing {
  const stays *l;
  arena *arena;
  error *err;
  circle circle;
  late_stays late;
  int32_t *thing;    /* per stay: another stay of its thing, or itself: a forest */
  int64_t *low;      /* per stay: where it begins in its unit */
  int32_t *thing_of; /* per stay: its thing's number */
  int64_t *base;     /* per thing: where it begins in its unit */
  offset_window *windows;
  offset_thing *things;
  int32_t n_things;
} packing;

/* ---- parts side by side ---- */

static int32_t root (packing *p, int32_t stay) {
  while (p->thing[stay] != stay)
    stay = p->thing[stay] = p->thing[p->thing[stay]];
  return stay;
}

static void join (packing *p, int32_t a, int32_t b) {
  int32_t x = root (p, a), y = root (p, b);
  p->thing[x > y ? x : y] = x < y ? x : y;
}

static int32_t unit_of (const stays *l, int32_t i) {
  const timed_stay *x = &l->at[i];
  return x->kind == STAY_MOVE        ? l->moves[x->index].unit
         : x->kind == STAY_GROUP     ? l->trace->n_tensors + x->index
         : x->kind == STAY_WORKSPACE ? l->units->count + x->index
                                     : x->index;
}

static int32_t part_of (const stays *l, int32_t i) {
  const timed_stay *x = &l->at[i];
  return x->kind == STAY_MOVE ? l->moves[x->index].part : x->part;
}

/* From the stays [first, end) of one part the one in which op `op` finds it: the latest that has
   begun, or else that of the step before. */
static int32_t stay_at (const stays *l, int32_t first, int32_t end, int32_t op) {
  int32_t now = -1, last = first;
  for (int32_t i = first; i < end; i++) {
    if (l->at[i].op <= op && (now < 0 || l->at[i].op > l->at[now].op))
      now = i;
    if (l->at[i].op > l->at[last].op)
      last = i;
  }
  return now < 0 ? last : now;
}

/* The stays [first, end) are of one unit in parts, part by part. */
static void join_parts (packing *p, int32_t unit, int32_t first, int32_t end) {
  const stays *l = p->l;
  const units *u = l->units;
  for (int32_t k = u->use_offset[unit]; k < u->use_offset[unit + 1]; k++)
    for (int32_t i = first, before = -1, next; i < end; i = next) {
      for (next = i; next < end && part_of (l, next) == part_of (l, i);)
        next++;
      int32_t found = stay_at (l, i, next, u->uses[k].op);
      if (before >= 0)
        join (p, before, found);
      before = found;
    }
}

static bool join_all (packing *p) {
  const stays *l = p->l;
  if (!ALLOC (p->arena, p->thing, l->count, p->err) || !ALLOC (p->arena, p->low, l->count, p->err))
    return false;
  for (int32_t i = 0; i < l->count; i++)
    p->thing[i] = i;
  for (int32_t i = 0, next; i < l->count; i = next) {
    int32_t unit = unit_of (l, i), parts = 0;
    int64_t low = 0;
    for (next = i; next < l->count && unit_of (l, next) == unit; next++) {
      if (next > i && part_of (l, next) != part_of (l, next - 1)) {
        low += l->at[next - 1].granules;
        parts++;
      }
      p->low[next] = low;
    }
    if (parts)
      join_parts (p, unit, i, next);
  }
  return true;
}

/* ---- the problem ---- */

/* It is there on both sides of the place where the circle is cut. */
static bool is_cut (const packing *p, int32_t i) {
  return !p->l->at[i].always && p->late.end[i] < p->late.birth[i] && p->late.end[i] > 0;
}

static bool find_things (packing *p) {
  int32_t n = p->l->count;
  if (!ALLOC (p->arena, p->thing_of, n, p->err) || !ALLOC (p->arena, p->base, n, p->err) ||
      !ALLOC (p->arena, p->windows, 2 * (int64_t)n, p->err) ||
      !ALLOC (p->arena, p->things, n, p->err))
    return false;
  for (int32_t i = 0; i < n; i++) {
    int32_t first = root (p, i);
    int32_t t = p->thing_of[i] = first == i ? p->n_things++ : p->thing_of[first];
    p->base[t] = first == i || p->low[i] < p->base[t] ? p->low[i] : p->base[t];
  }
  return true;
}

/* The windows of things, in order of their first stays. */
static int32_t find_windows (packing *p) {
  const stays *l = p->l;
  int32_t ranks = p->circle.ranks > 0 ? (int32_t)p->circle.ranks : 1, n = 0;
  memset (p->things, 0, (size_t)p->n_things * sizeof *p->things);
  for (int32_t i = 0; i < l->count; i++)
    p->things[p->thing_of[i]].count += is_cut (p, i) ? 2 : 1;
  for (int32_t t = 0; t < p->n_things; t++) {
    p->things[t].first = n;
    n += p->things[t].count;
    p->things[t].count = 0;
  }
  for (int32_t i = 0; i < l->count; i++) {
    offset_thing *t = &p->things[p->thing_of[i]];
    int64_t low = p->low[i] - p->base[p->thing_of[i]], high = low + l->at[i].granules;
    int32_t from = (int32_t)p->late.birth[i], end = (int32_t)p->late.end[i];
    bool always = l->at[i].always;
    offset_window *w = &p->windows[t->first + t->count];
    w[0] = (offset_window){ always ? 0 : from, always || end < from ? ranks : end, low, high };
    if (is_cut (p, i))
      w[1] = (offset_window){ 0, end, low, high };
    t->count += is_cut (p, i) ? 2 : 1;
    t->bytes = max_of (t->bytes, high);
  }
  return n;
}

/* ---- the answer ---- */

static int64_t bottom_of (const packing *p, const offset_answer *found, int32_t i) {
  int32_t t = p->thing_of[i];
  return found->offset[t] + p->low[i] - p->base[t];
}

static bool write_runs (packing *p, const offset_answer *found, places *out) {
  const stays *l = p->l;
  if (!ALLOC (p->arena, out->runs, l->count, p->err) ||
      !ALLOC (p->arena, out->first_run, (int64_t)l->count + 1, p->err))
    return false;
  for (int32_t i = 0; i < l->count; i++) {
    out->runs[i] = (granule_run){ (int32_t)bottom_of (p, found, i), l->at[i].granules };
    out->first_run[i + 1] = i + 1;
  }
  out->n_runs = l->count;
  return true;
}

/* Births and ends as the places allow them. */
static bool settle (packing *p, const arena_budget *most, offset_answer *found, places *out) {
  const stays *l = p->l;
  int64_t *at = NEW (p->arena, l->count, int64_t, p->err);
  if (!at)
    return false;
  for (int32_t i = 0; i < l->count; i++)
    at[i] = p->low[i] - p->base[p->thing_of[i]];
  late_things things = { p->thing_of, at, p->n_things, most->granules };
  if (!late_ease (&p->late, &things, most->late_ticks, found->offset, p->arena, &found->ticks,
                  p->err))
    return false;
  found->height_bytes = 0;
  for (int32_t i = 0; i < l->count; i++) {
    at[i] = bottom_of (p, found, i);
    found->height_bytes = max_of (found->height_bytes, at[i] + l->at[i].granules);
  }
  return late_settle (&p->late, at, &p->circle, p->arena, &out->in_order, &found->ticks, p->err);
}

/* Stays as the run has them; or, where these had no places, ever less of them. */
static bool find_offsets (packing *p, const arena_budget *most, offset_answer *found, places *out) {
  int64_t ticks = 0;
  bool late = most->late_ticks > 0;
  for (int how = late ? LATE_QUARTER : LATE_NOT; how < (late ? LATENESSES : LATE_QUARTER); how++) {
    late_choose (&p->late, (lateness)how);
    offset_problem q = { .windows = p->windows,
                         .things = p->things,
                         .n_windows = find_windows (p),
                         .n_things = p->n_things,
                         .capacity_bytes = most->granules };
    if (!offsets_greedy (&q, how == LATE_QUARTER ? most->ticks / HASTY : most->ticks, p->arena,
                         found, p->err))
      return false;
    ticks = found->ticks += ticks;
    if (found->height_bytes <= most->granules)
      return !late || settle (p, most, found, out);
  }
  return true;
}

bool place_arena (const stays *l, moment period, moment start, const arena_budget *most, arena *a,
                  places *out, error *err) {
  assert (l->at && most->granules >= 0);
  packing p = { .l = l, .arena = a, .err = err };
  offset_answer found;
  if (!place_begin (l, a, out, err) || !circle_of (l, period, start, a, &p.circle, err))
    return false;
  p.late = (late_stays){ .l = l, .c = &p.circle, .period = period, .start = start };
  if (!late_begin (&p.late, a, err) || !join_all (&p) || !find_things (&p) ||
      !find_offsets (&p, most, &found, out))
    return false;
  out->granules = found.height_bytes;
  out->ticks = found.ticks;
  return found.height_bytes > INT32_MAX / 2 ||
         (write_runs (&p, &found, out) && place_follow_all (l, &p.circle, a, out, err));
}
