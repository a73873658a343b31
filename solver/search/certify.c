/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A bound for a plan from elsewhere: a published policy's, or one that somebody wrote. */
#include "solver/attempt/attempt.h"
#include "solver/recompute/recompute.h"
#include "solver/search/search.h"

/* Whatever a plan drops: of all plans that may drop. */
static bool find_bound (const trace *t, const solve_options *o, bool drops, arena *a, bound *out,
                        error *err) {
  solve_options any = *o;
  recompute_program program;
  if (!drops)
    return attempt_bound (t, o, a, out, err);
  any.recompute = o->recompute == RECOMPUTE_ONLY ? RECOMPUTE_ONLY : RECOMPUTE_AUTO;
  if (!recompute_solve_program (t, NULL, &any, NULL, false, a, &program, err))
    return false;
  if (!program.fits)
    return error_set (err, ERR_internal, "a plan that fits, and a program that does not");
  *out = program.bound;
  return true;
}

bool solve_certify (const trace *t, const solve_options *o, const char *found_by, plan *p, arena *a,
                    error *err) {
  bound b;
  if (p->n_sections)
    return error_set (err, ERR_internal, "no bound for plans with sections");
  if (!find_bound (t, o, p->n_recomputes > 0, a, &b, err))
    return false;
  certified c = {
    .lower_bound_ns = b.lower_bound_ns,
    .bound_by = b.dropped && b.lower_bound_ns > b.compute_ns ? "drops-lp" : b.by,
    .cover = cover_swaps,
    .found_by = found_by,
    .proof = b.proof,
  };
  if (p->n_recomputes)
    c.cover =
        (cover){ .swaps = o->recompute != RECOMPUTE_ONLY, .drops = COVER_DROPS_ANY, .kept = true };
  solve_write_certificate (p, &c);
  return true;
}

bool solve_certify_by_compute (const solve_request *q, solution *s, arena *a, error *err) {
  certified c = solve_by_compute (q->trace, s->plan);
  c.limit_met = solve_stops (q->options) ? "stopped" : "ticks";
  c.enough_ns = solve_enough_of (&q->effort, c.lower_bound_ns);
  if (q->options->keep_proof &&
      !(c.proof = bound_cheap_proof ("compute", NO_OP, true, DROPS_ALLOWED, NULL, a, err)))
    return false;
  solve_write_certificate (s->plan, &c);
  s->bound = (bound){ .lower_bound_ns = c.lower_bound_ns, .by = c.bound_by, .proof = c.proof };
  return true;
}
