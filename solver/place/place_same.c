/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places for programs that keep their addresses: every stay of a part on the same granules.  Parts
   whose stays are ever there at one moment get different granules, largest first, each the lowest
   that are free for it; the granules between two runs of a part may serve others while it is away.
   Granules with the same owners are one area, which is cut where a part needs only some of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "solver/place/follow.h"
#include "solver/place/same_inner.h"

/* ---- parts ---- */

typedef struct named {
  int32_t unit, part, timed_stay; /* workspaces: unit past all others, each one its own */
} named;

static int compare_named (const void *a, const void *b) {
  const named *x = a, *y = b;
  return ORDER (x->unit, y->unit) ?: ORDER (x->part, y->part)
         ?: ORDER (x->timed_stay, y->timed_stay);
}

/* Copies of a placed tensor have its place. */
static int32_t first_of (const stays *l, int32_t unit) {
  int32_t twin = unit < l->trace->n_tensors ? l->trace->tensors[unit].twin : 0;
  return twin > 0 ? twin - 1 : unit;
}

static named name_of (const stays *l, int32_t i) {
  const timed_stay *x = &l->at[i];
  switch (x->kind) {
  case STAY_MOVE:
    return (named){ first_of (l, l->moves[x->index].unit), l->moves[x->index].part, i };
  case STAY_GROUP:
    return (named){ l->trace->n_tensors + x->index, x->part, i };
  case STAY_WORKSPACE:
    return (named){ l->units->count, x->index, i };
  default:
    return (named){ first_of (l, x->index), x->part, i };
  }
}

static bool is_shared (const same *s, int32_t key) {
  named n = name_of (s->l, s->stays[s->first_stay[key]]);
  return n.unit < s->l->trace->n_tensors && s->l->trace->tensors[n.unit].twin > 0;
}

/* A tensor and its copies are there one after the other. */
static bool takes_turns (const same *s, int32_t key) {
  int32_t n = s->first_stay[key + 1] - s->first_stay[key];
  const int32_t *at = s->stays + s->first_stay[key];
  for (int32_t i = 0; i < n; i++)
    for (int32_t j = i + 1; j < n; j++)
      if (same_stays_meet (s, at[i], at[j]))
        return false;
  return !s->always[key] || n == 1;
}

static bool all_take_turns (const same *s) {
  for (int32_t k = 0; k < s->n_keys; k++)
    if (is_shared (s, k) && !takes_turns (s, k))
      return error_set (s->err, ERR_infeasible,
                        "a tensor and its copy would be at one place at the same time");
  return true;
}

static bool find_keys (same *s) {
  const stays *l = s->l;
  named *names = NEW (s->arena, l->count, named, s->err);
  if (!ALLOC (s->arena, s->key, l->count, s->err) ||
      !ALLOC (s->arena, s->stays, l->count, s->err) ||
      !ALLOC (s->arena, s->first_stay, (int64_t)l->count + 1, s->err) ||
      !ALLOC (s->arena, s->always, l->count, s->err) ||
      !ALLOC (s->arena, s->weight, l->count, s->err) ||
      !ALLOC (s->arena, s->runs, l->count, s->err) ||
      !ALLOC (s->arena, s->n_runs, l->count, s->err) || !names)
    return false;
  for (int32_t i = 0; i < l->count; i++)
    names[i] = name_of (l, i);
  qsort (names, (size_t)l->count, sizeof *names, compare_named);
  for (int32_t i = 0; i < l->count; i++) {
    bool fresh = i == 0 || names[i].unit != names[i - 1].unit || names[i].part != names[i - 1].part;
    s->n_keys += fresh;
    int32_t k = s->n_keys - 1, timed_stay = names[i].timed_stay;
    if (fresh)
      s->first_stay[k] = i;
    s->first_stay[k + 1] = i + 1;
    s->stays[i] = timed_stay;
    s->key[timed_stay] = k;
    s->always[k] |= l->at[timed_stay].always;
    int64_t length = s->circle.end[timed_stay] - s->circle.birth[timed_stay];
    s->weight[k] += l->at[timed_stay].granules * (length < 0 ? length + s->circle.ranks : length);
  }
  return true;
}

/* ---- areas ---- */

static bool own (same *s, area *a, int32_t key) {
  owner *moved =
      arena_grow (s->arena, s->owners, &s->owners_room, s->n_owners + 1, sizeof *moved, s->err);
  if (!moved)
    return false;
  s->owners = moved;
  s->owners[s->n_owners] = (owner){ key, a->owners };
  a->owners = (int32_t)s->n_owners++;
  return same_close (s, a, key);
}

/* One more area behind number `at`. */
static bool insert (same *s, int64_t at, area x) {
  area *moved =
      arena_grow (s->arena, s->areas, &s->areas_room, s->n_areas + 1, sizeof *moved, s->err);
  if (!moved)
    return false;
  s->areas = moved;
  memmove (s->areas + at + 1, s->areas + at, (size_t)(s->n_areas - at) * sizeof *s->areas);
  s->areas[at] = x;
  s->n_areas++;
  return true;
}

/* ---- orders in which to give ---- */

typedef enum turn { HEAVIEST, LARGEST, BY_BIRTH, TURNS } turn;

typedef struct turning {
  const same *s;
  turn how;
} turning;

static int compare_turns (const void *a, const void *b, void *context) {
  const turning *t = context;
  const same *s = t->s;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  int32_t x = s->stays[s->first_stay[i]], y = s->stays[s->first_stay[j]];
  if (s->always[i] != s->always[j])
    return s->always[i] ? -1 : 1;
  int64_t p = 0, q = 0;
  if (t->how == HEAVIEST) {
    p = s->weight[j];
    q = s->weight[i];
  } else if (t->how == LARGEST) {
    p = s->l->at[y].granules;
    q = s->l->at[x].granules;
  } else {
    p = s->circle.birth[x];
    q = s->circle.birth[y];
  }
  return ORDER (p, q) ?: ORDER (i, j);
}

bool same_take (same *s, int64_t i, int32_t key, int32_t *wanted) {
  assert (i >= 0 && *wanted > 0 && i < s->n_areas);
  area rest = s->areas[i];
  if (rest.count > *wanted) {
    rest.first += *wanted;
    rest.count -= *wanted;
    if (!same_split (s, &rest) || !insert (s, i + 1, rest))
      return false;
    s->areas[i].count = *wanted;
  }
  *wanted -= s->areas[i].count;
  return own (s, &s->areas[i], key);
}

/* Granules that nobody has yet. */
static bool take_new (same *s, int32_t key, int64_t most, int32_t *wanted) {
  int32_t count = (int32_t)min_of (max_of (most - s->granules, 0), *wanted);
  area last = { s->granules, count, -1, NULL };
  if (count == 0)
    return true;
  s->granules += count;
  *wanted -= count;
  return insert (s, s->n_areas, last) && own (s, &s->areas[s->n_areas - 1], key);
}

static bool give (same *s, int32_t key) {
  int32_t wanted = s->l->at[s->stays[s->first_stay[key]]].granules;
  for (int64_t i = 0; i < s->n_areas && wanted > 0; i++)
    if (same_is_free (s, &s->areas[i], key) && !same_take (s, i, key, &wanted))
      return false;
  if (wanted > INT32_MAX / 2 - s->granules)
    return error_set (
        s->err, ERR_input,
        "the plan needs more granules than can be counted; give the device a larger granule_bytes");
  return take_new (s, key, s->most, &wanted) &&
         (wanted == 0 || s->most == INT64_MAX || same_take_turns (s, key, &wanted)) &&
         take_new (s, key, INT64_MAX, &wanted);
}

static bool give_all (same *s, turn how) {
  int32_t *order = NEW (s->arena, s->n_keys, int32_t, s->err);
  turning t = { s, how };
  if (!order)
    return false;
  for (int32_t k = 0; k < s->n_keys; k++)
    order[k] = k;
  qsort_r (order, (size_t)s->n_keys, sizeof *order, compare_turns, &t);
  s->areas = NULL;
  s->owners = NULL;
  s->n_areas = s->areas_room = s->n_owners = s->owners_room = s->granules = 0;
  for (int32_t i = 0; i < s->n_keys; i++)
    if (!give (s, order[i]))
      return false;
  return true;
}

/* ---- waits between owners ---- */

static int by_birth (const void *a, const void *b, void *context) {
  const same *s = context;
  int64_t x = s->circle.birth[*(const int32_t *)a], y = s->circle.birth[*(const int32_t *)b];
  return ORDER (x, y);
}

/* Round the step, each stay on an area follows the one before it. */
static bool follow_all (same *s) {
  const stays *l = s->l;
  int32_t *here = NEW (s->arena, l->count, int32_t, s->err);
  if (!here)
    return false;
  for (int64_t i = 0; i < s->n_areas; i++) {
    int32_t n = 0;
    for (int32_t o = s->areas[i].owners; o >= 0; o = s->owners[o].next)
      for (int32_t j = s->first_stay[s->owners[o].key]; j < s->first_stay[s->owners[o].key + 1];
           j++)
        if (!l->at[s->stays[j]].always)
          here[n++] = s->stays[j];
    qsort_r (here, (size_t)n, sizeof *here, by_birth, s);
    for (int32_t j = 0; j < n; j++)
      place_follow (l, s->out, here[j ? j - 1 : n - 1], here[j]);
  }
  return true;
}

/* ---- the answer ---- */

static bool write_runs (same *s) {
  const stays *l = s->l;
  places *out = s->out;
  int32_t *next = NEW (s->arena, (int64_t)s->n_keys, int32_t, s->err);
  if (!next)
    return false;
  for (int64_t i = 0; i < s->n_areas; i++)
    for (int32_t o = s->areas[i].owners; o >= 0; o = s->owners[o].next)
      s->n_runs[s->owners[o].key]++;
  for (int32_t k = 0; k < s->n_keys; k++)
    if (!(s->runs[k] = NEW (s->arena, s->n_runs[k], granule_run, s->err)))
      return false;
  for (int64_t i = 0; i < s->n_areas; i++) /* areas lie in order: neighbours are joined */
    for (int32_t o = s->areas[i].owners; o >= 0; o = s->owners[o].next) {
      int32_t k = s->owners[o].key;
      granule_run *last = next[k] ? &s->runs[k][next[k] - 1] : NULL;
      if (last && last->first + last->count == s->areas[i].first)
        last->count += s->areas[i].count;
      else
        s->runs[k][next[k]++] = (granule_run){ s->areas[i].first, s->areas[i].count };
    }
  for (int32_t i = 0; i < l->count; i++)
    out->n_runs += next[s->key[i]];
  if (!ALLOC (s->arena, out->runs, out->n_runs, s->err) ||
      !ALLOC (s->arena, out->first_run, (int64_t)l->count + 1, s->err))
    return false;
  for (int32_t i = 0; i < l->count; i++) {
    int32_t k = s->key[i];
    memcpy (out->runs + out->first_run[i], s->runs[k], (size_t)next[k] * sizeof *out->runs);
    out->first_run[i + 1] = out->first_run[i] + next[k];
  }
  out->granules = s->granules;
  return true;
}

bool place_same (const stays *l, moment period, moment start, int64_t budget, arena *a, places *out,
                 error *err) {
  assert (l->at && budget >= 0);
  same s = {
    .l = l, .arena = a, .err = err, .out = out, .period = period, .start = start, .most = INT64_MAX
  };
  turn best = HEAVIEST;
  int32_t least = INT32_MAX;
  if (!place_begin (l, a, out, err) || !circle_of (l, period, start, a, &s.circle, err) ||
      !find_keys (&s) || !all_take_turns (&s) || !same_find_meetings (&s))
    return false;
  for (turn how = HEAVIEST; how < TURNS; how++) {
    arena_mark mark = arena_here (a);
    if (!give_all (&s, how))
      return false;
    if (s.granules < least) {
      least = s.granules;
      best = how;
    }
    arena_back (a, mark);
    if (least <= budget)
      break;
  }
  s.most = budget;
  if (!give_all (&s, best) || !follow_all (&s) || !write_runs (&s))
    return false;
  out->granules = least;
  return true;
}
