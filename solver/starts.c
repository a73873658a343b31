/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/starts.h"

#include <assert.h>
#include <string.h>

#include "solver/attempt/robust.h"
#include "solver/options/allowed.h"
#include "solver/order/updates.h"
#include "solver/recompute/recompute.h"
#include "solver/search/search.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"
#include "trace/simulate/simulate.h"

/* ---- allowed, and not ---- */

static bool refuse_start (error *err, const char *why) {
  return error_set (err, ERR_infeasible, "%s", why);
}

static bool allows_section (const solve_options *o, const section *s) {
  section_order only = o->section_orders == ORDERS_LEVEL ? SECTION_LEVEL : SECTION_DEPTH;
  return o->sections != SECTIONS_OFF &&
         (o->sections != SECTIONS_FIXED || s->parts == o->section_parts) &&
         (o->section_orders == ORDERS_AUTO || s->order == only);
}

static bool allows_sections (const solve_options *o, const plan *p, error *err) {
  for (int32_t i = 0; i < p->n_sections; i++)
    if (!allows_section (o, &p->sections[i]))
      return refuse_start (err, "it runs ops in parts that are not allowed");
  return true;
}

/* An entry makes again what only cheap ops have written. */
static bool is_cheap (const trace *cut, const recompute *r, const uint8_t *again) {
  for (int32_t i = 0; again && i < r->ops.count; i++)
    for (int32_t j = 0; j < r->replaces.count; j++)
      if (!again[r->ops.at[i]] && list_has (&cut->ops[r->ops.at[i]].writes, r->replaces.at[j]))
        return false;
  return true;
}

static bool allows_drops (const trace *t, const solve_options *o, const plan *p, arena *a,
                          error *err) {
  rewritten cut;
  uint8_t *again;
  if (o->recompute == RECOMPUTE_ONLY && p->n_moves)
    return refuse_start (err, "it swaps, which is not allowed");
  if (!p->n_recomputes)
    return true;
  if (o->recompute == RECOMPUTE_OFF)
    return refuse_start (err, "it makes tensors again, which is not allowed");
  if (!plan_cut (t, p, a, &cut, err) || !recompute_may_drop (cut.trace, o, a, &again, err))
    return false;
  for (int32_t i = 0; i < p->n_recomputes; i++)
    if (!is_cheap (cut.trace, &p->recomputes[i], again))
      return refuse_start (err, "it makes tensors again that are not cheap");
  return true;
}

static bool same_order (const plan *p, const op_run *runs, int32_t n_runs) {
  return p->n_order == n_runs &&
         (!n_runs || memcmp (p->order, runs, (size_t)n_runs * sizeof *runs) == 0);
}

static bool allows_order (const trace *t, const solve_options *o, const plan *p, arena *a,
                          error *err) {
  op_run *runs;
  int32_t n_runs;
  if (!p->n_order || o->order == ORDER_ANY)
    return true;
  if (o->order == ORDER_AS_IS)
    return refuse_start (err, "it has its ops in another order, which is not allowed");
  return order_updates (t, a, &runs, &n_runs, err) &&
         (same_order (p, runs, n_runs) ||
          refuse_start (err, "it moves other ops than updates, which is not allowed"));
}

static bool allows_places (const solve_options *o, const placement *p, error *err) {
  if (o->same_places && !p->same_places)
    return refuse_start (err, "its stays do not keep their places");
  if (o->placement == PLACES_AUTO || o->same_places ||
      (o->placement == PLACES_ARENA) == (p->kind == PLACEMENT_ARENA))
    return true;
  return refuse_start (err, "its places are of the other kind");
}

/* ---- one start ---- */

/* A plan that the rewriting refuses is none of this trace. */
static bool rewrites (const trace *t, const plan *p, arena *a, error *err) {
  rewritten rw;
  error why = { 0 };
  return plan_rewrite (t, p, a, &rw, &why) ||
         error_set (err, why.code == ERR_input ? ERR_infeasible : why.code, "%s", why.text);
}

bool starts_suits (const trace *t, const solve_options *o, const plan *p, arena *a, error *err) {
  return check_trace (t, p, err) && rewrites (t, p, a, err) && allows_sections (o, p, err) &&
         allows_drops (t, o, p, a, err) && allows_order (t, o, p, a, err);
}

bool starts_fit (const trace *t, const solve_options *o, const plan *p, arena *a, plan **out,
                 error *err) {
  plan *here = NEW (a, 1, plan, err);
  if (!here || !starts_suits (t, o, p, a, err) || !allows_places (o, &p->placement, err))
    return false;
  *here = *p;
  here->device = *o->device;
  here->budget_bytes = o->budget_bytes;
  here->host_bytes = o->host_bytes;
  here->has_predicted = here->has_certificate = false;
  here->certificate = (certificate){ .found_by = "a known plan" };
  here->made_by = NULL;
  if (!check_plan (t, here, a, NULL, err) || !simulate_plan (t, here, a, &here->predicted, err))
    return false;
  here->has_predicted = true;
  *out = here;
  return true;
}

bool starts_fastest (const trace *t, const solve_options *o, arena *a, plan **out, error *err) {
  *out = NULL;
  for (int32_t i = 0; i < o->n_starts; i++) {
    plan *one = NULL;
    error why = { 0 };
    if (!starts_fit (t, o, o->starts[i], a, &one, &why) && why.code != ERR_infeasible)
      return error_set (err, why.code, "%s", why.text);
    if (one && (!*out || one->predicted.step_ns < (*out)->predicted.step_ns))
      *out = one;
  }
  return true;
}

/* ---- its bound ---- */

/* The plan alone, as a class of plans in its order. */
static cover cover_of (const solve_options *o, const plan *p) {
  bool only_swaps = !p->n_recomputes && !p->n_sections;
  cover c = only_swaps ? cover_swaps : allowed_cover (o);
  c.order = COVER_ORDER_GIVEN;
  return c;
}

/* Whatever a bound says of an order, the other plan is in that order too. */
static bool covers (const solve_options *o, const plan *had, const plan *p) {
  const cover *c = &had->certificate.cover;
  cover own = cover_of (o, p);
  return (c->order == COVER_ORDER_ANY || same_order (p, had->order, had->n_order)) &&
         cover_includes_but_order (c, &own);
}

static void name_order (const trace *t, plan *p) {
  certificate *c = &p->certificate;
  c->cover.order = c->lower_bound_ns <= trace_total_ns (t) ? COVER_ORDER_ANY
                   : p->n_order                            ? COVER_ORDER_GIVEN
                                                           : COVER_ORDER_TRACE;
}

static bool certify_alone (const solve_request *q, solution *s, arena *a, error *err) {
  const plan *p = s->plan;
  solve_request in = *q;
  int32_t *order;
  if (solve_stops (q->options))
    return solve_certify_by_compute (q, s, a, err);
  if (!trace_reorder (q->trace, p->order, p->n_order, a, &in.trace, &order, err))
    return false;
  if (q->options->sections != SECTIONS_OFF)
    return search_certify (&in, s, a, err);
  if (!solve_certify (in.trace, q->options, p->certificate.found_by, s->plan, a, err))
    return false;
  s->bound = (bound){ .lower_bound_ns = p->certificate.lower_bound_ns,
                      .by = p->certificate.bound_by,
                      .proof = p->certificate.proof };
  return true;
}

bool starts_certify (const solve_request *wanted, const solution *had, solution *s, arena *a,
                     error *err) {
  const solve_options *o = wanted->options;
  solve_request q = *wanted;
  q.effort = solve_effort (o, &wanted->effort);
  assert (s->plan->certificate.found_by);
  if (had->plan && covers (o, had->plan, s->plan)) {
    certified all = solve_by_bound_of (had->plan, s->plan);
    solve_write_certificate (s->plan, &all);
    s->bound = had->bound;
  } else {
    if (!certify_alone (&q, s, a, err))
      return false;
    name_order (q.trace, s->plan);
  }
  certificate *c = &s->plan->certificate;
  bool is_near = s->plan->predicted.step_ns <= solve_enough_of (&q.effort, c->lower_bound_ns);
  c->limit_met = is_near ? NULL : solve_stops (o) ? "stopped" : "ticks";
  return true;
}

void starts_raise (const solve_options *o, const solution *had, solution *s) {
  effort full = solve_effort (o, NULL);
  const char *limit_met = s->plan->certificate.limit_met;
  if (!had->plan || !covers (o, had->plan, s->plan) ||
      had->plan->certificate.lower_bound_ns <= s->plan->certificate.lower_bound_ns)
    return;
  certified higher = solve_by_bound_of (had->plan, s->plan);
  higher.enough_ns = solve_enough_of (&full, higher.lower_bound_ns);
  higher.limit_met = limit_met ? limit_met : "ticks";
  solve_write_certificate (s->plan, &higher);
  s->bound = had->bound;
}

bool starts_take (const solve_request *q, plan *known, solution *best, arena *a, error *err) {
  solution had = *best;
  if (!known || (had.plan && known->predicted.step_ns >= had.plan->predicted.step_ns))
    return true;
  best->plan = known;
  best->robust = (robustness){ 0 };
  best->why = "a known plan is faster than those that were found";
  return starts_certify (q, &had, best, a, err) &&
         (!q->options->noise_percent ||
          robust_alone (q->trace, known, q->options, a, &best->robust, err));
}
