/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/clock.h"
#include "cli/compare/comparison.h"
#include "cli/inputs/planner.h"
#include "solver/fleet/floor.h"
#include "solver/fleet/needs.h"

/* The reserve is kept by all alike. */
static int64_t net_of (const comparison *t, int64_t budget_bytes) {
  return budget_bytes - reserve_of (budget_bytes, reserve_ppm (t->trace));
}

static int64_t count_drops (const plan *p) {
  int64_t n = 0;
  for (int32_t i = 0; i < p->n_recomputes; i++)
    n += p->recomputes[i].replaces.count;
  return n;
}

/* Our plan as an answer like the others'. */
static bool fill_ours (call *c, comparison *t, row *r, arena *a) {
  planner p;
  solution s;
  if (!planner_plain (&p, c, t->trace, &t->device, r->budget_bytes, t->limit_ticks, &c->err))
    return false;
  p.ask.options.host_bytes = t->host_bytes;
  allowed_into (&t->ours[r->policy - OURS], &p.ask.options);
  p.ask.options.threads = t->threads;
  p.ask.options.level = t->level;
  p.ask.options.placement = t->placement;
  p.ask.options.same_places = t->same_places;
  p.ask.options.starts = t->known;
  p.ask.options.n_starts = t->n_known;
  r->answer.label = our_ways[r->policy - OURS].name;
  if (!planner_solve (c, &p, t->trace, a, &s)) {
    r->interrupted = c->err.code == ERR_interrupted;
    if (c->err.code != ERR_infeasible && c->err.code != ERR_limit && !r->interrupted)
      return false;
    r->answer.note = arena_string (a, c->err.text, NULL);
    c->err = (error){ 0 };
    memory_floor f;
    if (!floor_least (t->trace, &t->device, a, &f, &c->err))
      return false;
    r->answer.reached_bytes = f.bytes;
    return true;
  }
  if (!(t->known[t->n_known++] = plan_copy (s.plan, t->keeps, &c->err)))
    return false;
  if (r->policy == OURS)
    t->lower_bound_ns = s.bound.lower_bound_ns;
  else if (r->policy == OURS_DROPS && t->ours[OURS_DROPS - OURS].recompute == RECOMPUTE_AUTO)
    t->drops_bound_ns = s.bound.lower_bound_ns;
  r->interrupted = p.interrupted;
  r->answer.fits = r->answer.has_cost = true;
  r->answer.plan = s.plan;
  r->answer.cost = s.plan->predicted;
  r->answer.reached_bytes = s.plan->predicted.peak_bytes;
  r->answer.moves = s.plan->n_moves;
  r->answer.drops = count_drops (s.plan);
  return true;
}

bool comparison_answer (call *c, comparison *t, row *r, arena *a) {
  policy_request request = { .trace = t->trace,
                             .device = &t->device,
                             .budget_bytes = net_of (t, r->budget_bytes),
                             .host_bytes = t->host_bytes,
                             .trace_digest = t->digest };
  int64_t start = monotonic_ns ();
  bool ok = r->policy >= OURS ? fill_ours (c, t, r, a)
                              : policy_run ((policy_id)r->policy, &request, a, &r->answer, &c->err);
  r->plan_ns = monotonic_ns () - start;
  r->lower_bound_ns =
      r->answer.drops || r->policy == OURS_DROPS ? t->drops_bound_ns : t->lower_bound_ns;
  if (ok && r->policy >= OURS && r->answer.plan)
    r->lower_bound_ns = r->answer.plan->certificate.lower_bound_ns;
  return ok;
}

bool comparison_bound (call *c, comparison *t, int64_t budget_bytes) {
  bound b;
  solve_options o = { .device = &t->device,
                      .budget_bytes = net_of (t, budget_bytes),
                      .host_bytes = t->host_bytes };
  t->lower_bound_ns = t->drops_bound_ns = -1;
  for (int i = 0; i < t->n_policies; i++)
    if (t->policies[i] == OURS)
      return true;
  arena *scratch = arena_new (0);
  if (!scratch)
    return error_memory (&c->err);
  if (solve_bound (t->trace, &o, scratch, &b, &c->err))
    t->lower_bound_ns = b.lower_bound_ns;
  else if (c->err.code == ERR_infeasible)
    c->err = (error){ 0 };
  arena_free (scratch);
  return !c->err.code;
}
