/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/placements.h"

#include <assert.h>

#include "base/units.h"
#include "solver/options/allowed.h"
#include "solver/search/search.h"

typedef struct placing {
  const trace *t;
  const solve_options *o;
  const effort *effort;
  solve_placed *one;
  arena *arena;
} placing;

/* The plan is as near to the bound of all plans as was asked for. */
static bool is_enough (const placing *p, const solution *s) {
  effort e = solve_effort (p->o, p->effort);
  return s->plan->predicted.step_ns <=
         solve_enough_ns (e.gap_ppm, s->plan->certificate.lower_bound_ns);
}

static bool is_better (const solution *x, const solution *y) {
  const predicted *a = &x->plan->predicted, *b = &y->plan->predicted;
  return a->step_ns != b->step_ns ? a->step_ns < b->step_ns : a->peak_bytes < b->peak_bytes;
}

/* That one search has no plan, or found none, does not rule out another. */
static bool may_go_on (const error *why) {
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

/* The step counted in the arena's steps instead of granules; what the plan takes of the device is
   still whole granules. */
typedef struct trying {
  const placing *p;
  device fine;
  solve_options o;
  effort effort;
  solution best; /* no plan: none yet */
  int winner;
  error first; /* why there was none */
} trying;

/* With this share of the budget to hold at once; the arena has all of it. */
static bool try_share (trying *w, int which, int64_t ticks, error *err) {
  solution s;
  error why = { 0 };
  const plan *had = w->best.plan;
  int64_t ppm = tuned (w->o.tuning, TUNE_arena_counted_ppm + (tuning_id)which);
  w->o.counted_bytes = units_scale (w->o.budget_bytes, ppm, 1000000);
  w->effort.limit_ticks = ticks > 0 ? ticks : 1;
  if (w->p->one (w->p->t, &w->o, &w->effort, w->p->arena, &s, &why)) {
    take_better (&w->best, &s);
    w->winner = w->best.plan == had ? w->winner : which;
    return true;
  }
  if (!may_go_on (&why)) {
    *err = why;
    return false;
  }
  if (!w->first.code)
    w->first = why;
  return true;
}

static bool is_over (const trying *w) {
  return solve_stops (w->p->o) || (w->best.plan && is_enough (w->p, &w->best));
}

/* Stretches leave holes between them, so plans that hold less at once may be faster: a little
   effort for each share, the rest for the best. */
static bool solve_arena (const placing *p, solution *out, error *err) {
  enum { SHARES = TUNE_arena_counted_ppm_last - TUNE_arena_counted_ppm + 1 };
  trying w = {
    .p = p, .fine = *p->o->device, .o = *p->o, .effort = solve_effort (p->o, p->effort)
  };
  w.o.arena_granule_bytes = w.fine.granule_bytes;
  w.fine.granule_bytes = PLACEMENT_STEP;
  w.o.device = &w.fine;
  int64_t ticks = w.effort.limit_ticks ? w.effort.limit_ticks : search_default_ticks (p->t, &w.o);
  for (int i = 0; i < SHARES && !(i && is_over (&w)); i++)
    if (!try_share (&w, i, ticks / (2 * SHARES), err))
      return false;
  if (w.best.plan && !is_over (&w) && !try_share (&w, w.winner, ticks / 2, err))
    return false;
  *out = w.best;
  if (!out->plan)
    *err = w.first;
  return out->plan;
}

static bool is_large (const placing *p) {
  return p->t->n_ops > tuned (p->o->tuning, TUNE_arena_ops);
}

/* Searches over rewritten steps take an order of magnitude longer in an arena, and mostly have no
   need of it: what is rounded away is made up for by making a tensor again. */
static bool rewrites (const solve_options *o) {
  allowed x = allowed_of (o);
  return allowed_rewrites (&x);
}

/* The least budget that anyone is told is that of granules, so where they have no plan there is
   none; an arena is then asked for by name. */
static bool solve_either (const placing *p, solution *out, error *err) {
  error why = { 0 };
  solution in_arena;
  if (!p->one (p->t, p->o, p->effort, p->arena, out, err))
    return false;
  if (rewrites (p->o) || is_enough (p, out) || is_large (p) || solve_stops (p->o))
    return true;
  if (solve_arena (p, &in_arena, &why))
    take_better (out, &in_arena);
  else if (!may_go_on (&why)) {
    *err = why;
    return false;
  }
  return true;
}

bool placements_solve (const trace *t, const solve_options *o, const effort *e, solve_placed *one,
                       arena *a, solution *out, error *err) {
  assert (t && o->device && !o->arena_granule_bytes);
  placing p = { .t = t, .o = o, .effort = e, .one = one, .arena = a };
  if (o->same_places || o->placement == PLACES_GRANULES)
    return one (t, o, e, a, out, err);
  return o->placement == PLACES_ARENA ? solve_arena (&p, out, err) : solve_either (&p, out, err);
}
