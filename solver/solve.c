/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/solve.h"

#include <assert.h>

#include "solver/attempt/attempt.h"
#include "solver/orders.h"
#include "solver/placements.h"
#include "solver/resting.h"
#include "solver/same_places.h"
#include "solver/search/search.h"

bool solve_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  return attempt_bound (t, o, a, out, err);
}

static bool solve_in_order (const trace *t, const solve_options *o, const effort *e, arena *a,
                            solution *out, error *err) {
  return placements_solve (t, o, e, o->same_places ? same_places_solve : search_solve, a, out, err);
}

static bool solve_ordered (const trace *t, const solve_options *o, const effort *e, arena *a,
                           solution *out, error *err) {
  return o->order == ORDER_AS_IS ? solve_in_order (t, o, e, a, out, err)
                                 : orders_solve (t, o, e, solve_in_order, a, out, err);
}

/* Less fits granules than an arena. Where neither has a plan, one that was stopped rules nothing
   out. */
static bool solve_in_arena (const trace *t, const solve_options *o, const effort *e, arena *a,
                            solution *out, error *err) {
  solve_options fine = *o;
  error why = { 0 };
  fine.placement = PLACES_ARENA;
  bool ok = solve_ordered (t, &fine, e, a, out, &why);
  if (ok || why.code != ERR_infeasible)
    *err = why;
  return ok;
}

static bool solve_all (const trace *t, const solve_options *o, const effort *e, arena *a,
                       solution *out, error *err) {
  bool ok = solve_ordered (t, o, e, a, out, err) ||
            (placements_leave_arena (t, o, e, a, err) && solve_in_arena (t, o, e, a, out, err));
  ok = ok && placements_again (t, o, e, a, out, err);
  assert (!ok || out->plan->certificate.lower_bound_ns <= out->plan->predicted.step_ns);
  return ok;
}

bool solve_with (const trace *t, const solve_options *o, const effort *e, arena *a, solution *out,
                 error *err) {
  solve_options own = *o;
  if (o->solved)
    return resting_solve (t, o, e, solve_all, a, out, err);
  own.solved = solved_new (err);
  bool ok = own.solved && resting_solve (t, &own, e, solve_all, a, out, err);
  solved_free (own.solved);
  return ok;
}

bool solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  return solve_with (t, o, NULL, a, out, err);
}
