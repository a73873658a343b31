/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/orders.h"

#include "base/units.h"
#include "solver/options/lane.h"
#include "solver/order/climb.h"
#include "solver/order/updates.h"
#include "solver/search/search.h"
#include "solver/sections/sections.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"

enum { MOST_ORDERS = 3 };

typedef struct order_tried {
  const trace *trace;
  op_run *runs; /* none: as it is */
  int32_t n_runs;
  solution found;    /* without a plan: none was found */
  bool in_full;      /* searched with more than a look */
  bool without_cuts; /* found by a look that did not compare them, though they are allowed */
  error refused;     /* why not */
} order_tried;

typedef struct ordering {
  const trace *t;
  const solve_options *o;
  effort effort;
  solve_order *one;
  arena *arena;
  int64_t ticks, limit_ticks, look_ticks; /* to spend on a look at one order */
  bool looks_without_cuts; /* comparing cuts is most of a look, and tells orders apart little */
  order_tried at[MOST_ORDERS];
  int32_t count, n_beside; /* looks on threads of their own */
} ordering;

static int64_t step_ns (const order_tried *x) {
  return x->found.plan ? x->found.plan->predicted.step_ns : INT64_MAX;
}

/* ---- which orders ---- */

static bool add (ordering *n, op_run *runs, int32_t n_runs, error *err) {
  order_tried *x = &n->at[n->count];
  int32_t *order;
  *x = (order_tried){ .runs = runs, .n_runs = n_runs };
  if (n->count && !n_runs)
    return true;
  n->count++;
  return trace_reorder (n->t, runs, n_runs, n->arena, &x->trace, &order, err);
}

/* Runs of an order of an order, as those of the trace. */
static bool compose (ordering *n, const order_tried *first, const op_run *second, int32_t n_second,
                     op_run **runs, int32_t *n_runs, error *err) {
  const trace *made;
  int32_t *one, *two, count = n->t->n_ops;
  if (!trace_reorder (n->t, first->runs, first->n_runs, n->arena, &made, &one, err) ||
      !trace_reorder (made, second, n_second, n->arena, &made, &two, err))
    return false;
  for (int32_t i = 0; one && two && i < count; i++)
    two[i] = one[two[i]];
  return order_runs (two, count, n->arena, runs, n_runs, err);
}

static bool climb (ordering *n, error *err) {
  const order_tried *from = &n->at[n->count - 1];
  int64_t steps = tuned (n->o->tuning, TUNE_order_steps);
  climb_options o = { .budget_bytes = n->o->budget_bytes,
                      .limit_ticks = n->look_ticks * steps,
                      .stop = n->o->stop,
                      .stop_context = n->o->stop_context };
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

static bool find_orders (ordering *n, error *err) {
  op_run *runs;
  int32_t n_runs;
  return add (n, NULL, 0, err) && order_updates (n->t, n->arena, &runs, &n_runs, err) &&
         add (n, runs, n_runs, err) && (n->o->order != ORDER_ANY || climb (n, err));
}

/* ---- each of them ---- */

/* To the gap that was asked for, nothing waits and nothing is calculated twice: no order does
   better. */
static bool is_over (const ordering *n, const order_tried *x) {
  return step_ns (x) <= solve_enough_of (&n->effort, trace_total_ns (n->t)) ||
         (x->found.plan && solve_stops (n->o));
}

/* In one arena or at places that stay, some answers are bound by what they cut themselves. */
static bool is_of_all_cuts (const solution *s) {
  return s->plan->certificate.cover.sections >= COVER_SECTIONS_LEVEL;
}

/* A plan of a look without cuts, under the bound of all cuts in the same order. */
static void take_bound (ordering *n, order_tried *x, const solution *of) {
  const certificate *c = &of->plan->certificate;
  certified all = solve_by_bound_of (of->plan, x->found.plan);
  all.enough_ns = solve_enough_of (&n->effort, c->lower_bound_ns);
  all.limit_met = c->limit_met ? c->limit_met : "ticks";
  solve_write_certificate (x->found.plan, &all);
  x->found.bound = of->bound;
  x->without_cuts = false;
}

/* One order asked once. */
typedef struct asking {
  const ordering *n;
  order_tried *about;
  solve_options options;
  effort effort;
  arena *arena;
  lane lane; /* of a look */
  bool look, ok;
  solution found;
  error refused;
} asking;

static void begin (asking *q, const ordering *n, order_tried *x, bool look, int64_t ticks,
                   const solve_options *o, arena *a) {
  q->n = n;
  q->about = x;
  q->look = look;
  q->options = *o;
  q->options.trace_digest = x->n_runs ? NULL : o->trace_digest;
  q->effort = n->effort;
  q->effort.limit_ticks = ticks;
  q->arena = a;
  if (look && n->looks_without_cuts) {
    q->options.sections = SECTIONS_OFF;
    q->options.keep_proof = false;
  }
}

static void solve_one (void *context) {
  asking *q = context;
  q->ok = q->n->one (q->about->trace, &q->options, &q->effort, q->arena, &q->found, &q->refused);
}

/* That nothing fits, or that nothing was found, is an answer about this order alone. */
static bool take (ordering *n, asking *q, error *err) {
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

static bool try_order (ordering *n, bool look, order_tried *x, int64_t ticks, int64_t beat_ns,
                       error *err) {
  asking q = { 0 };
  begin (&q, n, x, look, ticks, n->o, n->arena);
  q.effort.beat_ns = beat_ns;
  q.options.threads -= n->n_beside;
  solve_one (&q);
  return take (n, &q, err);
}

/* A plan found with little effort says less of an order than the plan and the bound together. */
static int64_t promise_ns (const order_tried *x) {
  return x->found.plan ? step_ns (x) / 2 + x->found.bound.lower_bound_ns / 2 : INT64_MAX;
}

static order_tried *least (ordering *n, int64_t (*of) (const order_tried *)) {
  order_tried *best = &n->at[0];
  for (int32_t i = 1; i < n->count; i++)
    if (of (&n->at[i]) < of (best))
      best = &n->at[i];
  return best;
}

static bool begin_beside (ordering *n, asking *looks, int32_t i, error *err) {
  asking *q = &looks[i];
  if (!lane_open (&q->lane, n->o, err))
    return false;
  begin (q, n, &n->at[i], true, n->look_ticks, &q->lane.options, q->lane.arena);
  lane_begin (&q->lane, solve_one, q);
  n->n_beside++;
  return true;
}

static int32_t threads_of (const ordering *n) {
  return n->t->n_ops <= tuned (n->o->tuning, TUNE_lanes_ops) ? n->o->threads : 1;
}

/* All but the first beside it, as far as there are threads; each is taken when its turn comes. */
static bool look_at_all (ordering *n, error *err) {
  asking looks[MOST_ORDERS] = { 0 };
  bool ok = true;
  for (int32_t i = 1; ok && i < n->count && i < threads_of (n); i++)
    ok = begin_beside (n, looks, i, err);
  for (int32_t i = 0; ok && i < n->count && !is_over (n, least (n, step_ns)); i++) {
    asking *q = &looks[i];
    if (q->lane.arena) {
      lane_take (&q->lane, n->arena);
      n->n_beside--;
      ok = take (n, q, err);
    } else {
      ok = try_order (n, true, &n->at[i], n->look_ticks, n->effort.beat_ns, err);
    }
  }
  for (int32_t i = 0; i < n->count; i++)
    lane_drop (&looks[i].lane);
  n->n_beside = 0;
  return ok;
}

/* Looks do not compare cuts, so the order of the trace may be better with them than it seemed: than
   the best of another order. Its own plan is searched again for the bound of all cuts. */
static bool try_as_it_is (ordering *n, int64_t ticks, error *err) {
  const order_tried *best = least (n, step_ns);
  int64_t beat_ns = best == n->at || !best->found.plan ? n->effort.beat_ns : step_ns (best);
  return is_over (n, best) || try_order (n, false, &n->at[0], ticks, beat_ns, err);
}

/* The most promising order may end behind what a look found in another one, which deserves more
   than that look then, and may have no bound of all cuts yet. */
static bool try_best_look (ordering *n, int64_t ticks, error *err) {
  order_tried *best = least (n, step_ns);
  return best->in_full || is_over (n, best) ||
         try_order (n, false, best, ticks, n->effort.beat_ns, err);
}

/* Ticks that were named say how much there is, whatever the level. */
static bool is_hurried (const ordering *n) {
  return n->o->level == LEVEL_QUICK && !n->effort.limit_ticks;
}

/* A little effort for each, the rest for the most promising; in a hurry nothing is done twice. */
static bool try_all (ordering *n, order_tried **best, error *err) {
  int64_t rest = n->limit_ticks - n->count * n->look_ticks;
  if (!look_at_all (n, err))
    return false;
  if (!is_over (n, least (n, step_ns))) {
    order_tried *first = least (n, promise_ns);
    int64_t second = rest / tuned (n->o->tuning, TUNE_order_second_part);
    bool hurried = is_hurried (n);
    if (!try_order (n, false, first, rest, n->effort.beat_ns, err) ||
        (!hurried && n->looks_without_cuts && first != n->at && !try_as_it_is (n, second, err)) ||
        (!hurried && !try_best_look (n, second, err)))
      return false;
  }
  *best = least (n, step_ns);
  return true;
}

/* ---- the answer ---- */

/* For a search that ended at a look: compute, unless there is more to say and time for it. */
static bool bound_look (ordering *n, order_tried *x, error *err) {
  if (is_over (n, x) || solve_stops (n->o))
    return solve_certify_by_compute (n->t, n->o, &n->effort, &x->found, n->arena, err);
  if (!search_certify (x->trace, n->o, &n->effort, n->arena, &x->found, err))
    return false;
  n->ticks += x->found.bound.stats.ticks;
  return true;
}

/* The plan of the trace in an order as one of the trace as it is. */
static bool give_back (ordering *n, order_tried *x, solution *out, error *err) {
  if (x->without_cuts && !bound_look (n, x, err))
    return false;
  *out = x->found;
  out->ticks = n->ticks;
  return plan_set_order (out->plan, n->t, x->runs, x->n_runs, n->arena, err) &&
         (!x->n_runs || check_plan (n->t, out->plan, n->arena, NULL, err));
}

static void name_class (const ordering *n, const solution *s) {
  certificate *c = &s->plan->certificate;
  c->cover.order = c->lower_bound_ns <= trace_total_ns (n->t) ? COVER_ORDER_ANY
                   : s->plan->n_order                         ? COVER_ORDER_GIVEN
                                                              : COVER_ORDER_TRACE;
}

/* Tensors that must stay may be there for less of the step in an order that was not tried: only
   what ops need by themselves rules anything out then. */
static bool refuse (const trace *t, const solve_options *o, const error *why, arena *a,
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

bool orders_solve (const trace *t, const solve_options *o, const effort *e, solve_order *one,
                   arena *a, solution *out, error *err) {
  ordering *n = NEW (a, 1, ordering, err);
  order_tried *best;
  if (!n)
    return false;
  *n = (ordering){ .t = t, .o = o, .effort = solve_effort (o, e), .one = one, .arena = a };
  n->looks_without_cuts = o->sections == SECTIONS_AUTO;
  int64_t usual_ticks = search_default_ticks (t, o);
  n->limit_ticks = n->effort.limit_ticks ? n->effort.limit_ticks : usual_ticks;
  n->look_ticks = (n->limit_ticks < usual_ticks ? n->limit_ticks : usual_ticks) /
                      tuned (o->tuning, TUNE_order_look_part) +
                  1;
  if (!find_orders (n, err))
    return false;
  if (n->count == 1)
    return one (t, o, e, a, out, err);
  if (!try_all (n, &best, err))
    return false;
  if (!best->found.plan)
    return refuse (t, o, &best->refused, a, err);
  if (!give_back (n, best, out, err))
    return false;
  name_class (n, out);
  return true;
}
