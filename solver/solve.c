/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/solve.h"

#include <assert.h>

#include "solver/attempt/attempt.h"
#include "solver/placed.h"
#include "solver/question.h"
#include "solver/refusal.h"
#include "solver/resting.h"

bool solve_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  return attempt_bound (t, o, a, out, err);
}

/* ---- the loop ---- */

typedef struct rule {
  strategy_id id;
  bool (*applies) (const question *q);
  bool (*run) (question *q, error *err);
} rule;

#define STRATEGY(stage, name, applies, part, says) RULE_##stage (name, applies, part)

static const rule order_rules[] = {
#define RULE_ORDER(name, applies, part) { STRATEGY_ORDER_##name, orders_##applies, orders_##name },
#include "solver/tuning/strategies.def"
};

#define STRATEGY(stage, name, applies, part, says) RULE_##stage (name, applies, part)

static const rule places_rules[] = {
#define RULE_PLACES(name, applies, part) { STRATEGY_PLACES_##name, again_##applies, again_##name },
#include "solver/tuning/strategies.def"
};

static search_place place_of (const question *q) {
  const solution *s = &q->best;
  return s->plan ? (search_place){ s->plan->predicted.step_ns, s->candidates, s->ticks }
                 : (search_place){ orders_best_ns (q), 0, q->ticks };
}

static bool run_rules (question *q, const rule *rules, size_t n, error *err) {
  for (size_t i = 0; i < n; i++) {
    search_place from = place_of (q);
    if (!tuned_on (q->o->tuning, rules[i].id) || !rules[i].applies (q))
      continue;
    if (!rules[i].run (q, err))
      return false;
    stats_add (q->o->stats, rules[i].id, from, place_of (q));
  }
  return true;
}

/* ---- the question ---- */

static bool compare_orders (question *q, error *err) {
  return orders_begin (q, err) &&
         run_rules (q, order_rules, sizeof order_rules / sizeof *order_rules, err) &&
         orders_settle (q, err);
}

/* Less fits granules than an arena. Where neither has a plan, one that was stopped rules nothing
   out. */
static bool compare_in_arena (question *q, error *err) {
  solve_options fine = *q->o;
  question in = {
    .t = q->t, .o = &fine, .asked = q->asked, .effort = q->effort, .arena = q->arena
  };
  error why = { 0 };
  fine.placement = PLACES_ARENA;
  bool ok = compare_orders (&in, &why);
  if (ok || why.code != ERR_infeasible)
    *err = why;
  q->best = in.best;
  return ok;
}

static bool answer (question *q, error *err) {
  placing p = { .t = q->t, .o = q->o, .effort = q->asked, .arena = q->arena };
  return (compare_orders (q, err) ||
          (placed_leaves_arena (&p, err) && compare_in_arena (q, err))) &&
         run_rules (q, places_rules, sizeof places_rules / sizeof *places_rules, err);
}

static bool solve_rested (const trace *t, const solve_options *o, const effort *e, arena *a,
                          solution *out, error *err) {
  rested r;
  question *q = NEW (a, 1, question, err);
  if (!q || !resting_take (t, o, e, a, &r, err))
    return false;
  *q = (question){
    .t = r.left, .o = &r.options, .asked = r.like.n_resting ? &r.effort : e, .arena = a
  };
  q->effort = solve_effort (q->o, q->asked);
  bool ok = answer (q, err);
  *out = q->best;
  ok = ok && resting_give_back (t, o, &r, a, out, err);
  assert (!ok || out->plan->certificate.lower_bound_ns <= out->plan->predicted.step_ns);
  return ok;
}

bool solve_with (const trace *t, const solve_options *o, const effort *e, arena *a, solution *out,
                 error *err) {
  solve_options own = *o;
  if (!o->solved && !(own.solved = solved_new (err)))
    return false;
  bool ok = solve_rested (t, &own, e, a, out, err);
  if (!ok && !(e && (e->follow || e->beat_ns)))
    refusal_settle (t, &own, a, err);
  if (!o->solved)
    solved_free (own.solved);
  return ok;
}

bool solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  return solve_with (t, o, NULL, a, out, err);
}
