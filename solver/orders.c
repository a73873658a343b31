/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/question.h"

#include "base/units.h"
#include "solver/options/lane.h"
#include "solver/order/climb.h"
#include "solver/order/updates.h"
#include "solver/placed.h"
#include "solver/search/search.h"
#include "solver/search/ways.h"
#include "solver/sections/sections.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"

static int64_t step_ns (const order_tried *x) {
  return x->found.plan ? x->found.plan->predicted.step_ns : INT64_MAX;
}

/* ---- which orders ---- */

static bool add (question *n, op_run *runs, int32_t n_runs, error *err) {
  order_tried *x = &n->at[n->count];
  int32_t *order;
  *x = (order_tried){ .runs = runs, .n_runs = n_runs };
  if (n->count && !n_runs)
    return true;
  n->count++;
  return trace_reorder (n->ask.trace, runs, n_runs, n->arena, &x->trace, &order, err);
}

/* Runs of an order of an order, as those of the trace. */
static bool compose (question *n, const order_tried *first, const op_run *second, int32_t n_second,
                     op_run **runs, int32_t *n_runs, error *err) {
  const trace *made;
  int32_t *one, *two, count = n->ask.trace->n_ops;
  if (!trace_reorder (n->ask.trace, first->runs, first->n_runs, n->arena, &made, &one, err) ||
      !trace_reorder (made, second, n_second, n->arena, &made, &two, err))
    return false;
  for (int32_t i = 0; one && two && i < count; i++)
    two[i] = one[two[i]];
  return order_runs (two, count, n->arena, runs, n_runs, err);
}

static bool climb (question *n, error *err) {
  const order_tried *from = &n->at[n->count - 1];
  int64_t steps = tuned (n->ask.options->tuning, TUNE_order_steps);
  climb_options o = { .budget_bytes = n->ask.options->budget_bytes,
                      .limit_ticks = n->look_ticks * steps,
                      .stop = n->ask.options->stop,
                      .stop_context = n->ask.options->stop_context };
  op_run *runs;
  int32_t n_runs;
  int64_t ticks = 0;
  if (!order_climb (from->trace, &o, n->arena, &runs, &n_runs, &ticks, err))
    return false;
  n->ticks += ticks / steps;
  if (n_runs && !compose (n, from, runs, n_runs, &runs, &n_runs, err))
    return false;
  return add (n, runs, n_runs, err);
}

static bool find_orders (question *n, error *err) {
  op_run *runs;
  int32_t n_runs;
  return add (n, NULL, 0, err) && order_updates (n->ask.trace, n->arena, &runs, &n_runs, err) &&
         add (n, runs, n_runs, err) && (n->ask.options->order != ORDER_ANY || climb (n, err));
}

/* ---- each of them ---- */

/* To the gap that was asked for, nothing waits and nothing is calculated twice: no order does
   better. */
static bool is_over (const question *n, const order_tried *x) {
  return step_ns (x) <= solve_enough_of (&n->ask.effort, trace_total_ns (n->ask.trace)) ||
         (x->found.plan && solve_stops (n->ask.options));
}

/* In one arena or at places that stay, some answers are bound by what they cut themselves. */
static bool is_of_all_cuts (const solution *s) {
  return s->plan->certificate.cover.sections >= COVER_SECTIONS_LEVEL;
}

/* A plan of a look without cuts, under the bound of all cuts in the same order. */
static void take_bound (question *n, order_tried *x, const solution *of) {
  const certificate *c = &of->plan->certificate;
  certified all = solve_by_bound_of (of->plan, x->found.plan);
  all.enough_ns = solve_enough_of (&n->ask.effort, c->lower_bound_ns);
  all.limit_met = c->limit_met ? c->limit_met : "ticks";
  solve_write_certificate (x->found.plan, &all);
  x->found.bound = of->bound;
  x->without_cuts = false;
}

/* One order asked once. */
typedef struct asking {
  order_tried *about;
  solve_request ask;
  solve_options options;
  arena *arena;
  lane lane; /* of a look */
  bool look, ok;
  solution found;
  error refused;
} asking;

static void fill_asking (asking *q, const question *n, order_tried *x, bool look, int64_t ticks,
                         const solve_options *o, arena *a) {
  q->ask = n->ask;
  q->ask.trace = x->trace;
  q->ask.options = &q->options;
  q->about = x;
  q->look = look;
  q->options = *o;
  q->options.trace_digest = x->n_runs ? NULL : o->trace_digest;
  q->ask.effort.limit_ticks = ticks;
  q->arena = a;
  if (look && n->looks_without_cuts) {
    q->options.sections = SECTIONS_OFF;
    q->options.keep_proof = false;
    if (!o->recompute)
      q->ask.effort.limit_ticks = ways_plain_ticks (n->ask.trace, o->tuning, ticks);
  }
}

static void solve_one (void *context) {
  asking *q = context;
  q->ok = placed_solve (&q->ask, q->arena, &q->found, &q->refused);
}

/* That nothing fits, or that nothing was found, is an answer about this order alone. */
static bool take (question *n, asking *q, error *err) {
  order_tried *x = q->about;
  bool without_cuts = q->look && n->looks_without_cuts;
  x->in_full |= !q->look;
  if (!q->ok) {
    x->refused = q->refused;
    return q->refused.code == ERR_infeasible || q->refused.code == ERR_limit ||
           error_set (err, q->refused.code, "%s", q->refused.text);
  }
  n->ticks += q->found.ticks;
  if (q->found.plan->predicted.step_ns <= step_ns (x)) {
    x->found = q->found;
    x->without_cuts = without_cuts;
  } else if (x->without_cuts && !without_cuts && is_of_all_cuts (&q->found)) {
    take_bound (n, x, &q->found);
  }
  return true;
}

static bool try_order (question *n, bool look, order_tried *x, int64_t ticks, int64_t beat_ns,
                       error *err) {
  asking q = { 0 };
  fill_asking (&q, n, x, look, ticks, n->ask.options, n->arena);
  q.ask.effort.beat_ns = beat_ns;
  if (beat_ns != n->ask.effort.beat_ns && n->ask.options->placement == PLACES_AUTO)
    q.options.placement = PLACES_GRANULES; /* there is a plan, which again.c brings to an arena */
  q.options.threads -= n->n_beside;
  solve_one (&q);
  return take (n, &q, err);
}

/* A plan found with little effort says less of an order than the plan and the bound together. */
static int64_t promise_ns (const order_tried *x) {
  return x->found.plan ? step_ns (x) / 2 + x->found.bound.lower_bound_ns / 2 : INT64_MAX;
}

static int32_t least (const question *n, int64_t (*of) (const order_tried *)) {
  int32_t best = 0;
  for (int32_t i = 1; i < n->count; i++)
    if (of (&n->at[i]) < of (&n->at[best]))
      best = i;
  return best;
}

static bool begin_beside (question *n, asking *looks, int32_t i, error *err) {
  asking *q = &looks[i];
  if (!lane_open (&q->lane, n->ask.options, err))
    return false;
  fill_asking (q, n, &n->at[i], true, n->look_ticks, &q->lane.options, q->lane.arena);
  lane_begin (&q->lane, solve_one, q);
  n->n_beside++;
  return true;
}

static int32_t threads_of (const question *n) {
  return n->ask.trace->n_ops <= tuned (n->ask.options->tuning, TUNE_lanes_ops)
             ? n->ask.options->threads
             : 1;
}

/* All but the first beside it, as far as there are threads; each is taken when its turn comes. */
bool orders_looks (question *n, error *err) {
  asking looks[MOST_ORDERS] = { 0 };
  bool ok = true;
  for (int32_t i = 1; ok && i < n->count && i < threads_of (n); i++)
    ok = begin_beside (n, looks, i, err);
  for (int32_t i = 0; ok && i < n->count && !is_over (n, &n->at[least (n, step_ns)]); i++) {
    asking *q = &looks[i];
    if (q->lane.arena) {
      lane_take (&q->lane, n->arena);
      n->n_beside--;
      ok = take (n, q, err);
    } else {
      ok = try_order (n, true, &n->at[i], n->look_ticks, n->ask.effort.beat_ns, err);
    }
  }
  for (int32_t i = 0; i < n->count; i++)
    lane_drop (&looks[i].lane);
  n->n_beside = 0;
  return ok;
}

static int64_t rest_ticks (const question *n) {
  return n->limit_ticks - n->count * n->look_ticks;
}

static int64_t second_ticks (const question *n) {
  return rest_ticks (n) / tuned (n->ask.options->tuning, TUNE_order_second_part);
}

bool orders_alone (question *n, error *err) {
  return placed_solve (&n->ask, n->arena, &n->best, err);
}

bool orders_promising (question *n, error *err) {
  n->promising = &n->at[least (n, promise_ns)];
  return try_order (n, false, n->promising, rest_ticks (n), n->ask.effort.beat_ns, err);
}

/* Looks do not compare cuts, so the order of the trace may be better with them than it seemed: than
   the best of another order. Its own plan is searched again for the bound of all cuts. */
bool orders_given (question *n, error *err) {
  const order_tried *best = &n->at[least (n, step_ns)];
  int64_t beat_ns = best == n->at || !best->found.plan ? n->ask.effort.beat_ns : step_ns (best);
  return is_over (n, best) || try_order (n, false, &n->at[0], second_ticks (n), beat_ns, err);
}

/* The most promising order may end behind what a look found in another one, which deserves more
   than that look then, and may have no bound of all cuts yet. */
bool orders_best_look (question *n, error *err) {
  order_tried *best = &n->at[least (n, step_ns)];
  return best->in_full || is_over (n, best) ||
         try_order (n, false, best, second_ticks (n), n->ask.effort.beat_ns, err);
}

/* ---- when the strategies apply ---- */

bool orders_are_one (const question *n) {
  return n->count == 1;
}

bool orders_are_several (const question *n) {
  return n->count > 1;
}

bool orders_are_open (const question *n) {
  return orders_are_several (n) && !is_over (n, &n->at[least (n, step_ns)]);
}

/* Ticks that were named say how much there is, whatever the level; in a hurry nothing is done
   twice. */
bool orders_have_time (const question *n) {
  bool is_hurried = n->ask.options->level == LEVEL_QUICK && !n->ask.effort.limit_ticks;
  return orders_are_several (n) && !is_hurried;
}

bool orders_had_other (const question *n) {
  return orders_have_time (n) && n->looks_without_cuts && n->promising != n->at;
}

/* ---- the answer ---- */

/* For a search that ended at a look: compute, unless there is more to say and time for it. */
static bool bound_look (question *n, order_tried *x, error *err) {
  if (is_over (n, x) || solve_stops (n->ask.options))
    return solve_certify_by_compute (&n->ask, &x->found, n->arena, err);
  solve_request in = n->ask;
  in.trace = x->trace;
  if (!search_certify (&in, &x->found, n->arena, err))
    return false;
  n->ticks += x->found.bound.stats.ticks;
  return true;
}

/* The plan of the trace in an order as one of the trace as it is. */
static bool give_back (question *n, order_tried *x, solution *out, error *err) {
  if (x->without_cuts && !bound_look (n, x, err))
    return false;
  *out = x->found;
  out->ticks = n->ticks;
  return plan_set_order (out->plan, n->ask.trace, x->runs, x->n_runs, n->arena, err) &&
         (!x->n_runs || check_plan (n->ask.trace, out->plan, n->arena, NULL, err));
}

static void name_class (const question *n, const solution *s) {
  certificate *c = &s->plan->certificate;
  c->cover.order = c->lower_bound_ns <= trace_total_ns (n->ask.trace) ? COVER_ORDER_ANY
                   : s->plan->n_order                                 ? COVER_ORDER_GIVEN
                                                                      : COVER_ORDER_TRACE;
}

/* Tensors that must stay may be there for less of the step in an order that was not tried: only
   what ops need by themselves rules anything out then. */
static bool refuse_orders (const trace *t, const solve_options *o, const error *why, arena *a,
                           error *err) {
  char budget[UNITS_TEXT];
  int64_t least_bytes = 0;
  bool open = why->code == ERR_infeasible && sections_move_pins (t, o);
  if (open && !sections_floor (t, o, a, &least_bytes, err))
    return false;
  if (!open || o->budget_bytes < least_bytes) {
    *err = *why;
    return false;
  }
  units_bytes (budget, o->budget_bytes);
  return error_set (err, ERR_limit,
                    "no plan was found in %s in the orders that were tried, and none is ruled out "
                    "in others, where pinned tensors are there for less of the step; give more",
                    budget);
}

bool orders_begin (question *n, error *err) {
  const solve_options *o = n->ask.options;
  n->count = 1;
  if (o->order == ORDER_AS_IS)
    return true;
  n->count = 0;
  n->looks_without_cuts = o->sections == SECTIONS_AUTO;
  int64_t usual_ticks = search_default_ticks (n->ask.trace, o);
  n->limit_ticks = n->ask.effort.limit_ticks ? n->ask.effort.limit_ticks : usual_ticks;
  n->look_ticks = (n->limit_ticks < usual_ticks ? n->limit_ticks : usual_ticks) /
                      tuned (o->tuning, TUNE_order_look_part) +
                  1;
  return find_orders (n, err);
}

int64_t orders_best_ns (const question *n) {
  return n->count > 1 ? step_ns (&n->at[least (n, step_ns)]) : INT64_MAX;
}

bool orders_settle (question *n, error *err) {
  if (n->count == 1)
    return n->best.plan || error_set (err, ERR_limit, "every strategy that finds a plan is off");
  order_tried *best = &n->at[least (n, step_ns)];
  if (!best->found.plan)
    return refuse_orders (n->ask.trace, n->ask.options, &best->refused, n->arena, err);
  if (!give_back (n, best, &n->best, err))
    return false;
  name_class (n, &n->best);
  return true;
}
