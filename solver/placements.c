#include "solver/placements.h"

#include <assert.h>

typedef struct placing {
  const trace *t;
  const solve_options *o;
  const effort *effort;
  solve_placed *one;
  arena *arena;
} placing;

/* The step counted in the arena's steps instead of granules; what the plan takes of the device is
   still whole granules. */
static bool solve_arena (const placing *p, solution *out, error *err) {
  device fine = *p->o->device;
  solve_options o = *p->o;
  o.arena_granule_bytes = fine.granule_bytes;
  fine.granule_bytes = PLACEMENT_STEP;
  o.device = &fine;
  return p->one (p->t, &o, p->effort, p->arena, out, err);
}

/* Nothing is to be gained: the plan is as near to the bound of all plans as was asked for. */
static bool is_enough (const placing *p, const solution *s) {
  effort e = solve_effort (p->o, p->effort);
  return s->plan->predicted.step_ns <=
         solve_enough_ns (e.gap_ppm, s->plan->certificate.lower_bound_ns);
}

static bool is_better (const solution *x, const solution *y) {
  const predicted *a = &x->plan->predicted, *b = &y->plan->predicted;
  return a->step_ns != b->step_ns ? a->step_ns < b->step_ns : a->peak_bytes < b->peak_bytes;
}

/* That one sort of places has no plan, or none that was found, does not rule out the other. */
static bool may_go_on (const error *why) {
  return why->code == ERR_infeasible || why->code == ERR_limit;
}

static bool solve_either (const placing *p, solution *out, error *err) {
  error first = { 0 }, second = { 0 };
  solution in_arena;
  bool found = p->one (p->t, p->o, p->effort, p->arena, out, &first);
  if (!found && !may_go_on (&first)) {
    *err = first;
    return false;
  }
  if ((found && is_enough (p, out)) || solve_stops (p->o)) {
    *err = first;
    return found;
  }
  if (solve_arena (p, &in_arena, &second)) {
    int64_t ticks = in_arena.ticks + (found ? out->ticks : 0);
    int64_t candidates = in_arena.candidates + (found ? out->candidates : 0);
    if (!found || is_better (&in_arena, out))
      *out = in_arena;
    out->ticks = ticks;
    out->candidates = candidates;
    return true;
  }
  if (!may_go_on (&second))
    first = second;
  if (!found || !may_go_on (&second))
    *err = first;
  return found && may_go_on (&second);
}

bool placements_solve (const trace *t, const solve_options *o, const effort *e, solve_placed *one,
                       arena *a, solution *out, error *err) {
  assert (t && o->device && !o->arena_granule_bytes);
  placing p = { .t = t, .o = o, .effort = e, .one = one, .arena = a };
  if (o->same_places || o->placement == PLACES_GRANULES)
    return one (t, o, e, a, out, err);
  return o->placement == PLACES_ARENA ? solve_arena (&p, out, err) : solve_either (&p, out, err);
}
