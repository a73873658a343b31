/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/solve.h"

#include <assert.h>

#include "solver/attempt/attempt.h"
#include "solver/placed.h"
#include "solver/question.h"
#include "solver/refusal.h"
#include "solver/resting.h"
#include "solver/starts.h"
#include "solver/streams.h"

bool solve_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  return trace_has_streams (t) ? streams_bound (t, o, a, out, err)
                               : attempt_bound (t, o, a, out, err);
}

/* ---- the strategies ---- */

static search_place place_of (const question *q) {
  const solution *s = &q->best;
  return s->plan ? (search_place){ s->plan->predicted.step_ns, s->candidates, s->ticks }
                 : (search_place){ orders_best_ns (q), 0, q->ticks };
}

#define RULE_ORDER(name, applies, part) \
  { STRATEGY_ORDER_##name, orders_##applies, orders_##name, part },
#define STAGE_RUN try_orders
#define STAGE_SEARCH question
#define STAGE_ASKED const question
#define STAGE_OPTIONS ask.options
#include "solver/tuning/stage.def"

#define RULE_PLACES(name, applies, part) \
  { STRATEGY_PLACES_##name, again_##applies, again_##name, part },
#define STAGE_RUN try_places
#define STAGE_SEARCH question
#define STAGE_ASKED const question
#define STAGE_OPTIONS ask.options
#include "solver/tuning/stage.def"

/* ---- the question ---- */

static bool compare_orders (question *q, error *err) {
  return orders_begin (q, err) && try_orders (q, err) && orders_settle (q, err);
}

/* No plan was found that is faster than the one that is known. */
static bool begin_from_known (question *q, error *err) {
  if (!placed_may_go_on (err) || !q->ask.effort.beat_ns || !q->known)
    return false;
  *err = (error){ 0 };
  return starts_take (&q->ask, q->known, &q->best, q->arena, err);
}

static bool answer (question *q, error *err) {
  return (compare_orders (q, err) || begin_from_known (q, err)) && try_places (q, err);
}

static bool solve_rested (const solve_request *wanted, arena *a, solution *out, error *err) {
  rested r;
  plan *known;
  question *q = NEW (a, 1, question, err);
  if (!q || !starts_fastest (wanted->trace, wanted->options, a, &known, err) ||
      !resting_take (wanted, a, &r, err))
    return false;
  *q = (question){ .ask = r.left, .arena = a, .known = r.like.n_resting ? NULL : known };
  q->ask.effort = solve_effort (q->ask.options, &r.left.effort);
  error why = { 0 };
  bool ok = answer (q, &why);
  *out = ok ? q->best : (solution){ 0 };
  if (!ok && !placed_may_go_on (&why))
    return error_set (err, why.code, "%s", why.text);
  ok = (!ok || resting_give_back (wanted, &r, a, out, err)) &&
       starts_take (wanted, known, out, a, err);
  if (ok && !out->plan)
    *err = why;
  assert (!ok || !out->plan ||
          out->plan->certificate.lower_bound_ns <= out->plan->predicted.step_ns);
  return ok && out->plan;
}

/* ---- the ladder ---- */

/* A search with more effort begins with those that have less, with the very same plans, and then
   goes on: a limit cuts off the end, never the beginning. Each rung knows the best plan of those
   below it. */
typedef struct ladder {
  const trace *t;
  const solve_options *o; /* the whole question's */
  solve_options rung;
  const plan **starts; /* the user's, and then the best so far */
  arena *arena;
  solution best;
  error why;        /* there is no plan yet */
  int64_t left;     /* of ticks, where their number was named */
  int64_t ticks[2]; /* spent on the last rung, and on the one below it */
  int count;        /* rungs so far */
} ladder;

enum { LEVELS = 3, TIMES = 8 };
static const search_level levels[LEVELS] = { LEVEL_QUICK, LEVEL_NORMAL, LEVEL_THOROUGH };

/* The ticks of a search that ends with this rung; -1: none. */
static int64_t ticks_to (const ladder *x, int rung) {
  solve_options o = *x->o;
  int64_t times = 1;
  if (rung < 0)
    return 0;
  for (; rung >= LEVELS; rung--)
    times *= times < INT64_MAX / 4 / TIMES ? TIMES : 1;
  o.level = levels[rung];
  int64_t ticks = search_default_ticks (x->t, &o);
  return ticks < INT64_MAX / 4 / times ? ticks * times : INT64_MAX / 4;
}

/* The next rung brings what is spent to the next level, or to the ticks that were named, where
   these are worth a rung. A search for the same places counts ticks in its own way. */
static bool climbs (ladder *x) {
  int at = x->count;
  int64_t whole = ticks_to (x, at) - ticks_to (x, at - 1),
          ticks = whole < x->left ? whole : x->left;
  bool is_named = x->o->limit_ticks, is_last = at && at <= LEVELS && levels[at - 1] == x->o->level;
  x->rung.level = levels[at < LEVELS ? at : LEVELS - 1];
  bool by_level = at ? x->o->same_places && !is_named : ticks == whole;
  x->rung.limit_ticks = by_level ? 0 : ticks;
  x->left -= ticks;
  return is_named ? ticks > ticks_to (x, at - 1) / 2 : at < LEVELS && !is_last;
}

/* More ticks were of no use to the last rung. */
static bool is_idle (const ladder *x) {
  return x->count > LEVELS && x->ticks[0] < x->ticks[1] + x->ticks[1] / 4;
}

static bool is_over (const ladder *x) {
  effort full = solve_effort (x->o, NULL);
  const plan *p = x->best.plan;
  return solve_stops (x->o) || is_idle (x) ||
         (p && p->predicted.step_ns <= solve_enough_of (&full, p->certificate.lower_bound_ns));
}

static bool try_rung (ladder *x, error *err) {
  solution s;
  error why = { 0 };
  const solution had = x->best;
  if (had.plan)
    x->starts[x->o->n_starts] = had.plan;
  x->rung.n_starts = x->o->n_starts + (had.plan != NULL);
  x->count++;
  const solve_request q = { .trace = x->t,
                            .options = &x->rung,
                            .effort = { .beat_ns = had.plan ? had.plan->predicted.step_ns : 0 } };
  if (!solve_rested (&q, x->arena, &s, &why)) {
    x->why = why;
    return placed_may_go_on (&why) || error_set (err, why.code, "%s", why.text);
  }
  x->ticks[1] = x->ticks[0];
  x->ticks[0] = s.ticks;
  starts_raise (x->o, &had, &s);
  s.ticks += had.ticks;
  s.candidates += had.candidates;
  x->best = s;
  return true;
}

static bool climb (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  ladder x = {
    .t = t, .o = o, .rung = *o, .arena = a, .left = o->limit_ticks ? o->limit_ticks : INT64_MAX
  };
  if (!(x.starts = NEW (a, o->n_starts + 1, const plan *, err)))
    return false;
  for (int32_t i = 0; i < o->n_starts; i++)
    x.starts[i] = o->starts[i];
  x.rung.starts = x.starts;
  while ((!x.count || !is_over (&x)) && climbs (&x))
    if (!try_rung (&x, err))
      return false;
  *out = x.best;
  if (!x.best.plan)
    *err = x.why;
  return x.best.plan;
}

bool solve_with (const trace *t, const solve_options *o, const effort *e, arena *a, solution *out,
                 error *err) {
  solve_options own = *o;
  if (trace_has_streams (t))
    return streams_solve (t, o, e, solve_with, a, out, err);
  if (!o->solved && !(own.solved = solved_new (err)))
    return false;
  solve_request q = { .trace = t, .options = &own, .effort = e ? *e : (effort){ 0 } };
  bool ok = e ? solve_rested (&q, a, out, err) : climb (t, &own, a, out, err);
  if (!ok && !(e && (e->follow || e->beat_ns)))
    refusal_settle (t, &own, a, err);
  if (!o->solved)
    solved_free (own.solved);
  return ok;
}

bool solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  return solve_with (t, o, NULL, a, out, err);
}
