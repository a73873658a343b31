/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/placed.h"

#include <assert.h>

#include "base/units.h"
#include "solver/attempt/attempt.h"
#include "solver/options/allowed.h"
#include "solver/options/lane.h"
#include "solver/same_places.h"
#include "solver/search/search.h"
#include "trace/summary.h"

/* The plan is as near to the bound of all plans as was asked for. */
bool placed_is_enough (const solve_request *q, const solution *s) {
  effort e = solve_effort (q->options, &q->effort);
  return s->plan->predicted.step_ns <= solve_enough_of (&e, s->plan->certificate.lower_bound_ns);
}

static bool is_better (const solution *x, const solution *y) {
  const predicted *a = &x->plan->predicted, *b = &y->plan->predicted;
  return a->step_ns != b->step_ns ? a->step_ns < b->step_ns : a->peak_bytes < b->peak_bytes;
}

/* That one search has no plan, or found none, does not rule out another. */
bool placed_may_go_on (const error *why) {
  return why->code == ERR_infeasible || why->code == ERR_limit;
}

/* The better answer of two searches, and the sum of what they took. */
static void take_better (solution *best, const solution *s) {
  int64_t ticks = s->ticks, candidates = s->candidates;
  if (best->plan) {
    ticks += best->ticks;
    candidates += best->candidates;
  }
  if (!best->plan || is_better (s, best))
    *best = *s;
  best->ticks = ticks;
  best->candidates = candidates;
}

enum { ARENA_HALVINGS = 2, ARENA_STEP = 40000, SHARES_TIMES = 4 };

/* The step counted in the arena's steps instead of granules; what the plan takes of the device is
   still whole granules. */
typedef struct trying {
  const solve_request *wanted;
  solve_request q;
  device fine;
  solve_options o;
  arena *arena;
  solution best;             /* no plan: none yet */
  int64_t winner;            /* the best plan's share, in millionths */
  int64_t ticks, most_ticks; /* that all have taken, and may */
  error first;               /* why there was none */
  bool ruled_out;            /* nothing fits the last share */
} trying;

bool placed_once (const solve_request *q, arena *a, solution *out, error *err) {
  return q->variant ? attempt_solve (q, a, out, err) : search_solve (q, a, out, err);
}

/* An arena is of whole granules, so what is left of the budget holds nothing. */
static int64_t counted_of (const solve_request *q, int64_t ppm) {
  int64_t granule = q->options->device->granule_bytes;
  return units_scale (q->options->budget_bytes / granule * granule, ppm, 1000000);
}

/* With this share of the budget to hold at once; the arena has all of it. */
static bool try_share (trying *w, int64_t ppm, int64_t ticks, error *err) {
  solution s = { 0 };
  error why = { 0 };
  const plan *had = w->best.plan;
  w->o.counted_bytes = counted_of (w->wanted, ppm);
  w->q.effort.limit_ticks = ticks > 0 ? ticks : 1;
  bool ok = placed_once (&w->q, w->arena, &s, &why);
  w->ticks += s.ticks;
  if (ok) {
    if (!s.plan) /* none is of use */
      return true;
    take_better (&w->best, &s);
    w->winner = w->best.plan == had ? w->winner : ppm;
    return true;
  }
  if (!placed_may_go_on (&why)) {
    *err = why;
    return false;
  }
  if (!w->first.code)
    w->first = why;
  w->ruled_out = why.code == ERR_infeasible;
  return true;
}

/* Some of a search takes its ticks whatever its limit is, so with a low one a few shares take all.
   One must be found where there is no other plan; else fewer ticks are for that. */
static bool is_over (const trying *w) {
  if (!w->best.plan)
    return w->q.effort.beat_ns && (solve_stops (&w->o) || w->ticks > w->most_ticks / SHARES_TIMES);
  return solve_stops (&w->o) || w->ticks > w->most_ticks || placed_is_enough (w->wanted, &w->best);
}

/* Large stretches may have places only where far less is held at once. */
static bool goes_lower (const trying *w, int64_t share) {
  if (share <= ARENA_STEP || is_over (w))
    return false;
  return w->best.plan ? w->winner == share : !w->ruled_out && w->ticks <= w->most_ticks;
}

/* The shares that are looked at, from above, and lower ones while those are better; and then, by
   halving, some between the best and the next one above it: from there on up stretches no longer
   fit, and a plan loses at once. */
static bool look_at_shares (trying *w, int64_t ticks, error *err) {
  int64_t above = 1000000, share = 1000000;
  for (tuning_id i = TUNE_arena_counted_ppm; i <= TUNE_arena_counted_ppm_last; i++) {
    int64_t was = share;
    if (i > TUNE_arena_counted_ppm && is_over (w))
      return true;
    share = tuned (w->o.tuning, i);
    if (!try_share (w, share, ticks, err))
      return false;
    above = w->winner == share ? was : above;
  }
  while (goes_lower (w, share)) {
    share -= ARENA_STEP;
    if (!try_share (w, share, ticks, err))
      return false;
    above = w->winner == share ? share + ARENA_STEP : above;
  }
  for (int i = 0; i < ARENA_HALVINGS && w->best.plan && !is_over (w); i++) {
    int64_t between = w->winner + (above - w->winner) / 2;
    if (!try_share (w, between, ticks, err))
      return false;
    above = w->winner == between ? above : between;
  }
  return true;
}

static void begin_arena (const solve_request *q, arena *a, trying *w) {
  *w = (trying){ .wanted = q, .q = *q, .fine = *q->options->device, .o = *q->options, .arena = a };
  w->q.options = &w->o;
  w->q.effort = solve_effort (q->options, &q->effort);
  w->o.arena_granule_bytes = w->fine.granule_bytes;
  w->fine.granule_bytes = PLACEMENT_STEP;
  w->o.device = &w->fine;
}

/* Stretches leave holes between them, so plans that hold less at once may be faster: a little
   effort for each share, the rest for the best. */
bool placed_arena (const solve_request *q, arena *a, solution *out, error *err) {
  trying w;
  begin_arena (q, a, &w);
  int64_t limit_ticks = w.q.effort.limit_ticks,
          ticks = limit_ticks ? limit_ticks : search_default_ticks (q->trace, &w.o);
  w.most_ticks = SHARES_TIMES * ticks;
  if (!look_at_shares (&w, ticks / tuned (w.o.tuning, TUNE_arena_look_part), err))
    return false;
  if (w.best.plan && !is_over (&w) && !try_share (&w, w.winner, ticks / 2, err))
    return false;
  *out = w.best;
  out->ticks = w.ticks;
  if (!out->plan)
    *err = w.first;
  return out->plan;
}

/* With one share that nearly always has places. */
bool placed_arena_once (const solve_request *q, arena *a, solution *out, error *err) {
  trying w;
  begin_arena (q, a, &w);
  w.o.counted_bytes = counted_of (q, tuned (w.o.tuning, TUNE_arena_anew_counted_ppm));
  return placed_once (&w.q, a, out, err);
}

bool placed_is_large (const solve_request *q) {
  return q->trace->n_ops > tuned (q->options->tuning, TUNE_arena_ops);
}

/* Searches over rewritten steps take several times as long in an arena; the stage PLACES is for
   them. */
bool placed_rewrites (const solve_options *o) {
  allowed x = allowed_of (o);
  return allowed_rewrites (&x);
}

bool placed_suits_arena (const solve_options *o) {
  return !o->same_places && o->recompute != RECOMPUTE_ONLY;
}

bool placed_suits (const solve_request *q) {
  return placed_suits_arena (q->options) && !q->effort.follow && !q->effort.rough;
}

/* Nothing has to move where no tensor is rounded to granules, so an arena costs no search. */
static bool fits_in_bytes (const solve_request *q, arena *a) {
  summary s;
  error ignored = { 0 };
  arena_mark mark = arena_here (a);
  bool fits = summary_of (q->trace, a, &s, &ignored) && s.peak_bytes <= q->options->budget_bytes;
  arena_back (a, mark);
  return fits;
}

/* Granules have no plan, nor is one known that was to be beaten: an arena may have one. */
static bool leaves_arena (const solve_request *q, arena *a, const error *why) {
  bool is_known = q->options->n_starts && q->effort.beat_ns;
  return placed_suits (q) && !is_known && placed_may_go_on (why) && !solve_stops (q->options) &&
         (!placed_is_large (q) || fits_in_bytes (q, a));
}

/* The search in the arena, beside that in granules or after it. */
typedef struct beside {
  solve_request q;
  arena *arena;
  lane lane;
  solution found;
  error why; /* there is none */
} beside;

static void search_beside (void *context) {
  beside *b = context;
  if (!placed_arena (&b->q, b->arena, &b->found, &b->why))
    b->found.plan = NULL;
}

static bool open_beside (beside *b, error *err) {
  if (!lane_open (&b->lane, b->q.options, err))
    return false;
  b->q.options = &b->lane.options;
  b->arena = b->lane.arena;
  lane_begin (&b->lane, search_beside, b);
  return true;
}

/* Less fits granules than an arena. Where neither has a plan, one that was stopped rules nothing
   out. */
static bool solve_either (const solve_request *q, arena *a, solution *out, error *err) {
  const solve_options *o = q->options;
  beside b = { .q = *q, .arena = a };
  bool is_cheap = !placed_rewrites (o) && !placed_is_large (q);
  if (is_cheap && o->threads > 1 && !open_beside (&b, err))
    return false;
  bool ok = search_solve (q, a, out, err);
  if (ok ? !is_cheap || placed_is_enough (q, out) || solve_stops (o) : !leaves_arena (q, a, err)) {
    lane_drop (&b.lane);
    return ok;
  }
  if (b.lane.arena)
    lane_take (&b.lane, a);
  else
    search_beside (&b);
  if (b.found.plan) {
    *out = ok ? *out : (solution){ 0 };
    *err = (error){ 0 };
    take_better (out, &b.found);
    return true;
  }
  if (placed_may_go_on (&b.why) && (ok || b.why.code == ERR_infeasible))
    return ok;
  *err = b.why;
  return false;
}

bool placed_solve (const solve_request *q, arena *a, solution *out, error *err) {
  const solve_options *o = q->options;
  assert (q->trace && o->device && !o->arena_granule_bytes);
  if (o->same_places)
    return same_places_solve (q, a, out, err);
  switch (o->placement) {
  case PLACES_GRANULES:
    return search_solve (q, a, out, err);
  case PLACES_ARENA:
    return placed_arena (q, a, out, err);
  case PLACES_AUTO:
    break;
  }
  return solve_either (q, a, out, err);
}
