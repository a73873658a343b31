#include "solver/orders.h"

#include "solver/order/updates.h"
#include "solver/search/mix.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"

enum { LOOK_PART = 8 }; /* of the ticks, for a look at one order */

typedef struct order_tried {
  const trace *trace;
  op_run *runs;
  int32_t n_runs;
  solution found; /* without a plan: none was found */
  error refused;  /* why not */
} order_tried;

typedef struct ordering {
  const trace *t;
  const solve_options *o;
  solve_order *one;
  arena *arena;
  order_tried at[2]; /* as it is, and with early updates */
  int32_t count;
} ordering;

static int64_t step_ns (const order_tried *x) {
  return x->found.plan ? x->found.plan->predicted.step_ns : INT64_MAX;
}

/* Not one nanosecond is waited or calculated twice, to the gap that was asked for: no order does
   better. */
static bool is_over (const ordering *n, const order_tried *x) {
  return step_ns (x) <= solve_enough_ns (n->o, trace_total_ns (n->t)) ||
         (n->o->stop && n->o->stop (n->o->stop_context));
}

/* That nothing fits, or that nothing was found, is an answer about this order alone. */
static bool try_order (ordering *n, order_tried *x, int64_t ticks, error *err) {
  solve_options how = *n->o;
  solution found;
  error refused = { 0 };
  how.limit_ticks = ticks;
  how.trace_digest = x->n_runs ? NULL : n->o->trace_digest;
  if (!n->one (x->trace, &how, n->arena, &found, &refused)) {
    x->refused = refused;
    if (refused.code == ERR_infeasible || refused.code == ERR_limit)
      return true;
    *err = refused;
    return false;
  }
  found.ticks += x->found.ticks;
  if (found.plan->predicted.step_ns < step_ns (x) ||
      (found.plan->predicted.step_ns == step_ns (x) &&
       found.bound.lower_bound_ns >= x->found.bound.lower_bound_ns))
    x->found = found;
  else
    x->found.ticks = found.ticks;
  return true;
}

/* The plan of the trace in an order as one of the trace as it is. */
static bool give_back (ordering *n, order_tried *x, solution *out, error *err) {
  char digest[TRACE_DIGEST];
  *out = x->found;
  plan *p = out->plan;
  if (!x->n_runs)
    return true;
  if (!trace_digest (n->t, digest, err))
    return false;
  p->trace_digest = arena_string (n->arena, digest, err);
  p->order = x->runs;
  p->n_order = x->n_runs;
  return p->trace_digest && check_plan (n->t, p, n->arena, NULL, err);
}

static bool name_class (ordering *n, const solution *s, error *err) {
  certificate *c = &s->plan->certificate;
  bool all = c->lower_bound_ns <= trace_total_ns (n->t);
  const char *which = all                ? "in whatever order"
                      : s->plan->n_order ? "with its ops in this order"
                                         : "with its ops in the order of the trace";
  c->covers = arena_format (n->arena, err, "%s, %s", c->covers, which);
  return c->covers;
}

static int64_t limit_ticks (const trace *t, const solve_options *o) {
  if (o->limit_ticks)
    return o->limit_ticks;
  return o->sections || o->recompute ? mix_default_ticks (t) : SOLVE_LIMIT_TICKS;
}

bool orders_solve (const trace *t, const solve_options *o, solve_order *one, arena *a,
                   solution *out, error *err) {
  ordering n = { .t = t, .o = o, .one = one, .arena = a, .count = 1 };
  n.at[0].trace = t;
  order_tried *early = &n.at[1];
  int32_t *order;
  if (!order_updates (t, a, &early->runs, &early->n_runs, err) ||
      !trace_reorder (t, early->runs, early->n_runs, a, &early->trace, &order, err))
    return false;
  if (!early->n_runs)
    return one (t, o, a, out, err);
  int64_t all = limit_ticks (t, o), look = all / LOOK_PART + 1;
  order_tried *best = &n.at[0];
  for (int32_t i = 0; i < 2 && !is_over (&n, best); i++) {
    if (!try_order (&n, &n.at[i], look, err))
      return false;
    if (step_ns (&n.at[i]) < step_ns (best))
      best = &n.at[i];
  }
  if (!is_over (&n, best) && !try_order (&n, best, all - 2 * look, err))
    return false;
  if (!best->found.plan) {
    *err = best->refused;
    return false;
  }
  return give_back (&n, best, out, err) && name_class (&n, out, err);
}
