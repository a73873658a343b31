/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "solver/place/circle.h"
#include "solver/place/follow.h"
#include "solver/place/free_lists.h"

/* Large traces have room enough between their many stays, and places of theirs are dear. */
enum { CUTS = 49, CUTS_LARGE = 7, LARGE = 20000, IDLE_CUTS = 12 };

typedef struct held_run {
  int32_t first, count, home, next; /* next: of the same stay, or -1 */
} held_run;

/* Nobody had the granules from `granule` on before. */
typedef struct first_owner {
  int32_t granule, which;
} first_owner;

typedef struct placing {
  const stays *l;
  arena *arena;
  error *err;
  places *out;
  circle circle;
  int64_t cuts[CUTS];
  int n_cuts;
  int64_t give_up;       /* granules with which this cut is worse than another */
  int64_t *birth, *end;  /* unrolled from the cut: birth < end */
  free_lists free_lists; /* 0 is the common one */
  int32_t *home_of;      /* per stay that crosses the cut: its own free list, else 0 */
  int32_t *held;         /* per stay: its runs */
  int32_t *crossing;     /* stays that cross the cut */
  held_run *runs;
  int64_t n_runs, runs_room;
  first_owner *first; /* of the common granules, in their order */
  int64_t n_first, first_room;
  int32_t granules;
} placing;

/* ---- the circle and where to cut it ---- */

/* The cuts to try: where fewest granules are held, over all the circle and then in each of its
   sectors. */
static void choose_cuts (placing *p) {
  const stays *l = p->l;
  int64_t n = p->circle.ranks, held = 0, least[CUTS];
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always && p->circle.end[i] < p->circle.birth[i])
      held += l->at[i].granules;
  least[0] = held;
  p->n_cuts = l->count > LARGE ? CUTS_LARGE : CUTS;
  for (int i = 1; i < p->n_cuts; i++)
    least[i] = INT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    int32_t what = p->circle.at[i];
    int sector = 1 + (int)(i * (p->n_cuts - 1) / n);
    held += what < 0 ? -l->at[-1 - what].granules : l->at[what].granules;
    if (held < least[0]) {
      least[0] = held;
      p->cuts[0] = i + 1;
    }
    if (held < least[sector]) {
      least[sector] = held;
      p->cuts[sector] = i + 1;
    }
  }
}

static int64_t from_cut (int64_t rank, int64_t cut, int64_t ranks) {
  return rank < cut ? rank - cut + ranks : rank - cut;
}

/* The rank i behind the cut: a birth or an end. */
static int32_t what_at (const placing *p, int64_t i, int64_t cut) {
  int64_t rank = i + cut;
  return p->circle.at[rank < p->circle.ranks ? rank : rank - p->circle.ranks];
}

/* Ranks unrolled from the cut on. */
static void unroll (placing *p, int64_t cut) {
  const stays *l = p->l;
  int64_t n = p->circle.ranks;
  for (int32_t i = 0; i < l->count; i++) {
    if (l->at[i].always)
      continue;
    p->birth[i] = from_cut (p->circle.birth[i], cut, n);
    p->end[i] = from_cut (p->circle.end[i], cut, n);
    if (p->end[i] < p->birth[i])
      p->end[i] += n;
  }
}

/* ---- the sweep ---- */

static bool hold (placing *p, int32_t which, int32_t h, free_run run) {
  held_run *moved =
      arena_grow (p->arena, p->runs, &p->runs_room, p->n_runs + 1, sizeof *p->runs, p->err);
  if (!moved)
    return false;
  p->runs = moved;
  p->runs[p->n_runs] = (held_run){ run.first, run.count, h, p->held[which] };
  p->held[which] = (int32_t)p->n_runs++;
  if (run.before >= 0)
    place_follow (p->l, p->out, run.before, which);
  return true;
}

static bool take (placing *p, int32_t which, int32_t h, int32_t *wanted) {
  while (*wanted > 0 && p->free_lists.at[h].used > 0) {
    free_run run = free_lists_take (&p->free_lists, h, *wanted);
    *wanted -= run.count;
    if (!hold (p, which, h, run))
      return false;
  }
  return true;
}

static bool hold_new (placing *p, int32_t which, int32_t h, int32_t count) {
  free_run run = { p->granules, count, -1 };
  if (count > INT32_MAX / 2 - p->granules)
    return error_set (
        p->err, ERR_input,
        "the plan needs more granules than can be counted; give the device a larger granule_bytes");
  p->granules += count;
  return count == 0 || hold (p, which, h, run);
}

/* Granules that nobody has held yet, for the common free_list later. */
static bool add_common (placing *p, int32_t which, int32_t count) {
  if (count == 0)
    return true;
  first_owner *moved =
      arena_grow (p->arena, p->first, &p->first_room, p->n_first + 1, sizeof *p->first, p->err);
  if (!moved)
    return false;
  p->first = moved;
  p->first[p->n_first++] = (first_owner){ p->granules, which };
  return hold_new (p, which, 0, count);
}

/* Homes are sorted by `back`: the first that is late enough keeps the later ones for longer stays.
 */
static int32_t first_late_enough (const placing *p, int64_t end) {
  int32_t low = 1, high = p->free_lists.count;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (p->free_lists.at[middle].back < end)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Too few granules for this stay, although some that it could have lie free in free_lists whose
   owners come back too early: where the copy in of such an owner can wait until this stay has
   ended, that is asked for. */
static void ask_to_wait (placing *p, int32_t which, int32_t missing) {
  const struct timed_stay *x = &p->l->at[which];
  int32_t end_op = x->end_is_out ? p->l->moves[x->end].out_after : x->end;
  for (int32_t h = free_lists_until (&p->free_lists, first_late_enough (p, p->end[which]) - 1);
       h >= 1 && missing > 0; h = free_lists_until (&p->free_lists, h - 1)) {
    const struct timed_stay *owner = &p->l->at[p->free_lists.at[h].owner];
    if (owner->kind != STAY_MOVE || x->end_wraps || end_op >= owner->op)
      continue;
    if (p->out->wait_ops[owner->index] < end_op + 1)
      p->out->wait_ops[owner->index] = end_op + 1;
    missing -= p->free_lists.at[h].granules;
  }
}

static bool bear (placing *p, int32_t which, int64_t budget) {
  int32_t wanted = p->l->at[which].granules;
  if (p->home_of[which])
    return take (p, which, p->home_of[which], &wanted) && (assert (wanted == 0), true);
  for (int32_t h = free_lists_from (&p->free_lists, first_late_enough (p, p->end[which]));
       h < p->free_lists.count && wanted > 0; h = free_lists_from (&p->free_lists, h + 1))
    if (!take (p, which, h, &wanted))
      return false;
  /* Granules that nobody has held yet cost no wait, as long as there are any. */
  int64_t spare = budget - p->granules;
  int32_t unused = spare <= 0 ? 0 : spare < wanted ? (int32_t)spare : wanted;
  wanted -= unused;
  if (wanted > p->free_lists.at[0].granules)
    ask_to_wait (p, which, wanted - p->free_lists.at[0].granules);
  return add_common (p, which, unused) && take (p, which, 0, &wanted) &&
         add_common (p, which, wanted);
}

static bool bury (placing *p, int32_t which) {
  /* the list is newest first: give it back as it was taken */
  int32_t run = p->held[which], before = -1;
  while (run >= 0) {
    int32_t next = p->runs[run].next;
    p->runs[run].next = before;
    before = run;
    run = next;
  }
  p->held[which] = before;
  for (run = before; run >= 0; run = p->runs[run].next)
    if (!free_lists_give (&p->free_lists, p->runs[run].home,
                          (free_run){ p->runs[run].first, p->runs[run].count, which }, p->arena,
                          p->err))
      return false;
  return true;
}

/* Stays that cross the cut, in order of their births, hold their granules when the sweep begins. */
static bool settle_crossing (placing *p, int64_t cut) {
  const stays *l = p->l;
  int64_t ranks = p->circle.ranks;
  int32_t n = 0;
  for (int64_t i = 0; i < ranks; i++) {
    int32_t what = what_at (p, i, cut);
    if (what >= 0 && p->end[what] >= ranks)
      p->crossing[n++] = what;
  }
  if (!free_lists_make (n + 1, p->arena, &p->free_lists, p->err))
    return false;
  for (int32_t i = 0; i < n; i++) {
    int32_t which = p->crossing[i];
    p->free_lists.at[i + 1].back = p->birth[which];
    p->free_lists.at[i + 1].owner = which;
    p->home_of[which] = i + 1;
    if (!hold_new (p, which, i + 1, l->at[which].granules))
      return false;
  }
  return true;
}

static bool sweep (placing *p, int64_t cut, int64_t budget) {
  int64_t ranks = p->circle.ranks;
  for (int64_t i = 0; i < ranks; i++) {
    int32_t what = what_at (p, i, cut);
    if (p->granules >= p->give_up)
      return true;
    if (what < 0 ? !bury (p, -1 - what) : (p->held[what] = -1, !bear (p, what, budget)))
      return false;
  }
  return true;
}

/* The last owner of each common granule is followed by the first one of the next step: who took it
   when nobody had held it. */
static void close_circle (placing *p) {
  const free_list *common = &p->free_lists.at[0];
  for (int64_t i = common->head; i < common->head + common->used; i++) {
    const free_run *run = &common->at[i];
    int64_t low = 0, high = p->n_first; /* the last that begins no later than the run */
    while (high - low > 1) {
      int64_t middle = (low + high) / 2;
      *(p->first[middle].granule <= run->first ? &low : &high) = middle;
    }
    for (; low < p->n_first && p->first[low].granule < run->first + run->count; low++)
      place_follow (p->l, p->out, run->before, p->first[low].which);
  }
}

static int compare_runs (const void *a, const void *b) {
  return order_int32 (&((const granule_run *)a)->first, &((const granule_run *)b)->first);
}

/* Runs in order of granules, neighbours joined. */
static bool write_runs (placing *p) {
  const stays *l = p->l;
  places *out = p->out;
  if (!ALLOC (p->arena, out->runs, p->n_runs, p->err) ||
      !ALLOC (p->arena, out->first_run, (int64_t)l->count + 1, p->err))
    return false;
  int64_t n = 0;
  for (int32_t i = 0; i < l->count; i++) {
    int64_t first = n, kept;
    for (int32_t run = p->held[i]; run >= 0; run = p->runs[run].next)
      out->runs[n++] = (granule_run){ p->runs[run].first, p->runs[run].count };
    if (n - first > 1)
      qsort (out->runs + first, (size_t)(n - first), sizeof *out->runs, compare_runs);
    kept = first;
    for (int64_t j = first; j < n; j++)
      if (kept > first &&
          out->runs[kept - 1].first + out->runs[kept - 1].count == out->runs[j].first)
        out->runs[kept - 1].count += out->runs[j].count;
      else
        out->runs[kept++] = out->runs[j];
    n = kept;
    out->first_run[i + 1] = n;
  }
  out->n_runs = n;
  out->granules = p->granules;
  return true;
}

/* Tables that all cuts share. */
static bool prepare (placing *p) {
  int32_t n = p->l->count;
  return ALLOC (p->arena, p->birth, n, p->err) && ALLOC (p->arena, p->end, n, p->err) &&
         ALLOC (p->arena, p->home_of, n, p->err) && ALLOC (p->arena, p->held, n, p->err) &&
         ALLOC (p->arena, p->crossing, n, p->err) && place_begin (p->l, p->arena, p->out, p->err);
}

static void clear_places (placing *p) {
  size_t n = (size_t)p->l->count;
  p->granules = 0;
  p->n_runs = p->n_first = 0;
  memset (p->home_of, 0, n * sizeof *p->home_of);
  memset (p->held, 0xff, n * sizeof *p->held);
  place_again (p->l, p->out);
}

/* Everything but the runs in their last form. */
static bool place_from (placing *p, int64_t cut, int64_t budget) {
  clear_places (p);
  unroll (p, cut);
  for (int32_t i = 0; i < p->l->count; i++)
    if (p->l->at[i].always && !hold_new (p, i, 0, p->l->at[i].granules))
      return false;
  if (!settle_crossing (p, cut) || !sweep (p, cut, budget))
    return false;
  if (p->granules < p->give_up)
    close_circle (p);
  p->out->granules = p->granules;
  return true;
}

bool place (const stays *l, moment period, moment start, int64_t budget, arena *a, places *out,
            error *err) {
  assert (l->at && budget >= 0);
  placing p = { .l = l, .arena = a, .err = err, .out = out };
  if (!prepare (&p) || !circle_of (l, period, start, a, &p.circle, err))
    return false;
  choose_cuts (&p);
  int64_t best = -1, least = INT64_MAX;
  int idle = 0; /* cuts from the last one that needed fewer granules on */
  p.give_up = INT64_MAX;
  for (int i = 0; i < p.n_cuts && idle < IDLE_CUTS; i++, idle++) {
    if (!place_from (&p, p.cuts[i], budget))
      return false;
    if (out->granules <= budget && !out->tangled)
      return write_runs (&p);
    int64_t granules = out->granules + (out->tangled ? INT32_MAX : 0);
    if (granules < least) {
      idle = 0;
      least = granules;
      best = p.cuts[i];
      p.give_up = out->tangled ? p.give_up : granules;
    }
  }
  p.give_up = INT64_MAX;
  return place_from (&p, best, budget) && write_runs (&p);
}
