/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a policy's choice to an answer. */
#include "solver/policy/policy.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/policy/attempt.h"
#include "solver/policy/orders.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"
#include "trace/streams.h"

enum { TRIES = 6 };

/* ---- choices ---- */

bool policy_add_move (policy_view *v, policy_choice *c, policy_move m, error *err) {
  policy_move *moves =
      arena_grow (v->arena, c->moves, &c->moves_room, c->n_moves + 1, sizeof *moves, err);
  if (!moves)
    return false;
  c->moves = moves;
  c->moves[c->n_moves++] = m;
  return true;
}

bool policy_add_drop (policy_view *v, policy_choice *c, policy_drop d, error *err) {
  policy_drop *drops =
      arena_grow (v->arena, c->drops, &c->drops_room, c->n_drops + 1, sizeof *drops, err);
  if (!drops)
    return false;
  c->drops = drops;
  c->drops[c->n_drops++] = d;
  return true;
}

bool policy_move_gap (policy_view *v, policy_choice *c, const view_gap *g, int32_t in_not_before,
                      error *err) {
  return policy_add_move (v, c,
                          (policy_move){ .tensor = g->tensor,
                                         .out_after = g->a,
                                         .in_before = g->b,
                                         .in_not_before = in_not_before,
                                         .wait_at = NO_OP },
                          err);
}

bool policy_choose (policy_id id, const policy_request *r, arena *a, policy_view *view,
                    policy_choice *out, error *err) {
  assert (r->trace && r->device && out);
  policy_values standard = policy_standard ();
  const policy_row *row = policy_at (id);
  *out = (policy_choice){ 0 };
  if (!policy_view_build (r->trace, r->device, r->budget_bytes, r->host_bytes, a, view, err))
    return false;
  view->stop = r->stop;
  view->stop_context = r->stop_context;
  if (row->budget == POLICY_KEEPS && view->res[view_peak (view, view->res)] <= r->budget_bytes)
    return true; /* nobody moves anything where everything fits */
  if (r->choice) {
    *out = *r->choice;
    return true;
  }
  view->policy = (int)id;
  view->option = r->values ? r->values->at : standard.at;
  bool ok = row->decide (view, out, err);
  view->option = NULL;
  return ok;
}

/* ---- to a plan ---- */

static plan *schedule_at (policy_attempt *r, int64_t budget_bytes, int64_t host_bytes, arena *a,
                          schedule_shortage *shortage, error *err) {
  schedule_options o = { .budget_bytes = budget_bytes,
                         .host_bytes = host_bytes,
                         .pool_below_bytes = r->view.pool_below_bytes,
                         .auto_clean = r->choice.auto_clean,
                         .trace_digest = r->request->trace_digest };
  schedule_request wanted = { .original = r->request->trace,
                              .rewritten = &r->rw,
                              .recomputes = r->recomputes,
                              .n_recomputes = r->n_recomputes,
                              .device = &r->device,
                              .wishes = r->wishes,
                              .n_wishes = r->n_wishes,
                              .options = &o };
  return schedule (&wanted, a, shortage, err);
}

/* Ops that wait for a copy out although nothing takes its place: only a wait more, so what was safe
   and live stays so as long as the op stands behind the one that releases the copy. */
static bool add_waits (policy_attempt *r, plan *p, arena *a, error *err) {
  int32_t n = r->rw.trace->n_ops;
  bool any = false;
  for (int32_t i = 0; i < r->n_wishes; i++)
    any |= r->wait_at[i] != NO_OP;
  int32_t *outs = any ? NEW (a, n, int32_t, err) : NULL;
  op_wait *waits = any ? NEW (a, n, op_wait, err) : NULL;
  if (!any || !outs || !waits)
    return !any;
  for (int32_t k = 0; k < n; k++)
    outs[k] = NO_WAIT;
  for (int32_t i = 0; i < p->n_op_waits; i++)
    outs[p->op_waits[i].op] = p->op_waits[i].outs;
  for (int32_t i = 0; i < p->n_outs; i++) {
    int32_t at = r->wait_at[p->out_order[i]];
    if (at > r->wishes[p->out_order[i]].out_after && outs[at] < i + 1)
      outs[at] = i + 1;
  }
  p->op_waits = waits;
  p->n_op_waits = 0;
  for (int32_t k = 0; k < n; k++)
    if (outs[k] != NO_WAIT)
      waits[p->n_op_waits++] = (op_wait){ k, outs[k] };
  return true;
}

/* A plan that check refuses is our mistake. */
static bool price (policy_attempt *r, plan *p, arena *a, predicted *out, error *err) {
  error why = { 0 };
  if (!add_waits (r, p, a, err))
    return false;
  if (!check_plan (r->request->trace, p, a, NULL, &why)) {
    char line[sizeof why];
    error_code code = why.code == ERR_infeasible ? ERR_internal : why.code;
    return error_set (err, code, "the plan of %s is not legal: %.400s", r->label,
                      error_line (&why, line, sizeof line));
  }
  return simulate_plan (r->request->trace, p, a, out, err);
}

/* A plan at the least budget that these choices can keep, on a card and a host without limits. */
static bool reach (policy_attempt *r, int64_t needs_bytes, arena *a, policy_answer *out,
                   error *err) {
  int64_t plenty = (int64_t)1 << 52;
  device real = r->device;
  plan *p = NULL;
  r->device.memory_bytes = plenty;
  r->device.reserved_bytes = 0;
  r->device.host_bytes = plenty;
  for (int i = 0; i < TRIES && !p; i++) {
    error why = { 0 };
    schedule_shortage shortage = { 0 };
    out->reached_bytes = needs_bytes;
    p = schedule_at (r, needs_bytes, plenty, a, &shortage, &why);
    if (!p && why.code != ERR_infeasible)
      return error_set (err, why.code, "%s", why.text);
    if (!p && shortage.needs_bytes <= needs_bytes)
      break;
    needs_bytes = shortage.needs_bytes;
  }
  bool ok = true;
  if (p) {
    ok = out->has_cost = price (r, p, a, &out->cost, err);
    if (ok)
      out->reached_bytes = out->cost.peak_bytes;
  }
  r->device = real;
  return ok;
}

/* ---- late copies come earlier ---- */

/* The start of op i of a step without stalls; i may be of the step before. */
static int64_t start_of (const int64_t *start_ns, int32_t n, int32_t i) {
  return i < 0 ? start_ns[i + n] - start_ns[n] : start_ns[i];
}

/* A trigger whose lead is a twentieth longer, at least one op earlier; the same where there is
 * none.
 */
static int32_t earlier (const wish *w, const int64_t *start_ns, int32_t n) {
  int32_t i = w->in_not_before, low = w->out_after + 1;
  int64_t need = start_ns[w->in_before], lead = need - start_of (start_ns, n, i);
  if (w->in_before <= w->out_after)
    low -= n;
  if (i <= low)
    return i;
  for (i--; i > low && need - start_of (start_ns, n, i) < lead + lead / 20;)
    i--;
  return i;
}

/* True where a wish has changed. */
static bool hurry (policy_attempt *r, const timeline *t, const int64_t *start_ns) {
  const trace *rw = r->rw.trace;
  int32_t n = rw->n_ops;
  bool any = false;
  for (int32_t i = 0; i < r->n_wishes; i++) {
    wish *w = &r->wishes[i];
    int32_t b = w->in_before;
    int64_t before = b ? t->ops[b - 1].end_ns : t->ops[n - 1].end_ns - t->period_ns;
    if (w->in_not_before == NO_WAIT || t->ins[i].end_ns <= before + rw->ops[b].gap_ns)
      continue;
    int32_t place = earlier (w, start_ns, n);
    any |= place != w->in_not_before;
    w->in_not_before = place;
  }
  return any;
}

/* The best plan of a few rounds; a simulation tells each which copies in were late. */
static bool feed_back (policy_attempt *r, plan **best, arena *a, error *err) {
  const trace *rw = r->rw.trace;
  int64_t *start_ns = trace_ends (rw, a, err), best_ns = INT64_MAX;
  plan *p = *best;
  if (!start_ns)
    return false;
  for (int64_t round = 0; p; round++) {
    predicted cost;
    timeline t;
    error why = { 0 };
    schedule_shortage shortage;
    sim_job job = { r->request->trace, &r->rw, p };
    sim_options o = { .timeline_arena = a };
    if (!simulate (&job, 1, &o, a, &cost, &t, err))
      return false;
    if (cost.step_ns < best_ns) {
      best_ns = cost.step_ns;
      *best = p;
    }
    if (round == r->choice.feedback || !hurry (r, &t, start_ns))
      return true;
    p = schedule_at (r, r->request->budget_bytes, r->request->host_bytes, a, &shortage, &why);
    if (!p && why.code != ERR_infeasible)
      return error_set (err, why.code, "%s", why.text);
  }
  return true;
}

static bool finish_plan (policy_attempt *r, plan *p, const char *label, arena *a,
                         policy_answer *out, error *err) {
  if (!price (r, p, a, &out->cost, err))
    return false;
  p->predicted = out->cost;
  p->has_predicted = true;
  p->made_by = arena_format (a, err, "{\"policy\":\"%s\"}", label);
  out->plan = p;
  out->fits = out->has_cost = true;
  out->reached_bytes = out->cost.peak_bytes;
  return p->made_by;
}

/* Decides for `budget_bytes`, and schedules at the budget that was asked for. */
static plan *decide_for (policy_id id, int64_t budget_bytes, policy_attempt *r, arena *a,
                         schedule_shortage *shortage, error *why, error *err) {
  policy_request request = *r->request;
  request.budget_bytes = budget_bytes;
  *r = (policy_attempt){ .request = r->request, .label = r->label, .device = *r->request->device };
  if (!policy_choose (id, &request, a, &r->view, &r->choice, err))
    return NULL;
  r->device.link.copy_ns += r->choice.fault_ns;
  if (!policy_attempt_wishes (r, a, err))
    return NULL;
  if (r->choice.needs_bytes > r->request->budget_bytes) {
    *shortage = (schedule_shortage){ view_peak (&r->view, r->view.res), r->choice.needs_bytes };
    (void)error_set (why, ERR_infeasible, "by its own rule it does not fit");
    return NULL;
  }
  return schedule_at (r, r->request->budget_bytes, r->request->host_bytes, a, shortage, why);
}

/* True if all that is moved would have room on the host at once. */
static bool host_suffices (const policy_attempt *r) {
  int64_t left = r->request->host_bytes;
  for (int32_t i = 0; i < r->n_wishes && left >= 0; i++)
    left -= unit_member_bytes (r->rw.trace->tensors[r->wishes[i].unit].bytes);
  return left >= 0;
}

/* Granules on a circle may need a few more than are held at any moment: then a policy that keeps
   budgets decides once more, for a budget as much smaller. */
static plan *decide (policy_id id, policy_attempt *r, arena *a, schedule_shortage *shortage,
                     error *why, error *err) {
  int64_t budget = r->request->budget_bytes, wanted = budget;
  bool keeps = policy_at (id)->budget != POLICY_NONE;
  for (int i = 0;; i++) {
    *why = (error){ 0 };
    plan *p = decide_for (id, wanted, r, a, shortage, why, err);
    bool places = why->code == ERR_infeasible && shortage->op == NO_OP && host_suffices (r);
    if (p || err->code || !places || !keeps || i == TRIES || shortage->needs_bytes <= budget ||
        shortage->needs_bytes - budget >= wanted)
      return p;
    wanted -= shortage->needs_bytes - budget;
  }
}

/* One policy may put the ops into another order. */
static bool searches_orders (policy_id id, const policy_values *values, orders_options *out) {
  if (id != POLICY_swapadvisor || !values || !values->at[POLICY_OPTION_swapadvisor_evaluations])
    return false;
  *out = (orders_options){ .evaluations = values->at[POLICY_OPTION_swapadvisor_evaluations],
                           .population = values->at[POLICY_OPTION_swapadvisor_population],
                           .generations = values->at[POLICY_OPTION_swapadvisor_generations],
                           .mutation_ppm = values->at[POLICY_OPTION_swapadvisor_mutation],
                           .seed = (uint64_t)values->at[POLICY_OPTION_swapadvisor_seed] };
  return true;
}

bool policy_run (policy_id id, const policy_request *request, arena *a, policy_answer *out,
                 error *err) {
  assert (request->trace && request->device && out);
  policy_attempt r = { .request = request };
  policy_values standard = policy_standard ();
  orders_options orders;
  *out = (policy_answer){ 0 };
  if (!streams_must_be_one (request->trace, "a policy", err))
    return false;
  if (searches_orders (id, request->values, &orders))
    return orders_search (request, &orders, a, out, err);
  error why = { 0 };
  schedule_shortage shortage = { 0 };
  *out = (policy_answer){ 0 };
  out->label = policy_label (id, request->values ? request->values : &standard, a, err);
  r.label = out->label;
  plan *p = out->label ? decide (id, &r, a, &shortage, &why, err) : NULL;
  if (err->code)
    return false;
  out->moves = r.n_wishes;
  out->drops = r.kept_drops;
  out->choice = r.choice;
  out->note = r.choice.note;
  if (p && r.choice.feedback > 0 && !feed_back (&r, &p, a, err))
    return false;
  if (p)
    return finish_plan (&r, p, out->label, a, out, err);
  if (why.code != ERR_infeasible)
    return error_set (err, why.code, "%s", why.text);
  if (!out->note && !(out->note = arena_string (a, why.text, err)))
    return false;
  /* NO_OP: places or the host did not suffice; the same budget, where the host was it. */
  int64_t needs = shortage.op == NO_OP ? request->budget_bytes : shortage.needs_bytes;
  out->reached_bytes = needs;
  return request->only_fits || reach (&r, needs, a, out, err);
}
