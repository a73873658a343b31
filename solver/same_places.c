/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/same_places.h"

#include "base/units.h"
#include "solver/attempt/attempt.h"
#include "solver/search/search.h"
#include "solver/sections/sections.h"
#include "trace/rewrite/rewrite.h"

enum { TRIES = TUNE_same_places_ppm_last - TUNE_same_places_ppm + 1 };

typedef struct trying {
  solve_request q;
  arena *arena;
  solution best;
  int winner; /* -1: none yet */
  int64_t least_bytes; /* that some op needs by itself: no plan counts on less */
  int64_t ticks, limit_ticks, candidates;
  bool stopped;
  error open; /* that no plan was found, and none ruled out */
} trying;

static bool is_enough (const trying *w, const solution *s) {
  return s->plan->predicted.step_ns <=
         solve_enough_of (&w->q.effort, s->plan->certificate.lower_bound_ns);
}

/* The shares lie between the budget and the last one, or what some op needs where that is more. */
static int64_t counted_bytes (const trying *w, int i) {
  const solve_options *o = w->q.options;
  const tuning *t = o->tuning;
  int64_t last_ppm = tuned (t, TUNE_same_places_ppm_last);
  int64_t ppm = tuned (t, TUNE_same_places_ppm + (tuning_id)i);
  int64_t last = units_scale (o->budget_bytes, last_ppm, 1000000);
  if (w->least_bytes <= last || w->least_bytes > o->budget_bytes || last_ppm >= 1000000)
    return units_scale (o->budget_bytes, ppm, 1000000);
  return o->budget_bytes -
         units_scale (o->budget_bytes - w->least_bytes, 1000000 - ppm, 1000000 - last_ppm);
}

/* A plan that counts on the i-th share of the budget. The tries share the ticks that are left; one
   that finds nothing is charged with its whole share. */
static bool try_one (trying *w, int i, bool *enough, error *err) {
  const solve_options *o = w->q.options;
  solve_options less = *o;
  solve_request q = w->q;
  solution s;
  error why = { 0 };
  int64_t left = w->limit_ticks - w->ticks;
  less.budget_bytes = counted_bytes (w, i);
  q.options = &less;
  q.effort.place_bytes = o->budget_bytes;
  q.effort.limit_ticks = left > 0 ? left / (TRIES - i) + 1 : 1;
  *enough = false;
  if (!search_solve (&q, w->arena, &s, &why)) {
    if (why.code != ERR_infeasible && why.code != ERR_limit)
      return error_set (err, why.code, "%s", why.text);
    w->ticks += q.effort.limit_ticks;
    if (why.code == ERR_limit && !w->open.code)
      w->open = why;
    return true;
  }
  w->ticks += s.ticks;
  w->candidates += s.candidates;
  if (w->winner < 0 || s.plan->predicted.step_ns < w->best.plan->predicted.step_ns) {
    w->best = s;
    w->winner = i;
  }
  w->stopped |= solve_stops (o);
  *enough = w->stopped || (i == 0 && is_enough (w, &s)) || w->ticks >= w->limit_ticks;
  return true;
}

/* The bound of the whole budget, for a plan that counted on less. */
static bool widen_bound (const trying *w, solution *s, cover *of, error *err) {
  rewritten rw;
  if (!plan_rewrite (w->q.trace, s->plan, w->arena, &rw, err) ||
      !attempt_bound (rw.trace, w->q.options, w->arena, &s->bound, err))
    return false;
  *of = cover_of_rewriting (s->plan->n_sections, s->plan->n_recomputes);
  return true;
}

static bool certify (const trying *w, solution *s, error *err) {
  const certificate *had = &s->plan->certificate;
  certified c = { .lower_bound_ns = had->lower_bound_ns,
                  .bound_by = had->bound_by,
                  .cover = had->cover,
                  .found_by = had->found_by,
                  .proof = had->proof,
                  .limit_met = w->stopped ? "stopped" : "ticks" };
  if (w->winner > 0) {
    if (!widen_bound (w, s, &c.cover, err))
      return false;
    c.lower_bound_ns = s->bound.lower_bound_ns;
    c.bound_by = s->bound.by;
    c.proof = s->bound.proof;
  }
  c.enough_ns = solve_enough_of (&w->q.effort, c.lower_bound_ns);
  solve_write_certificate (s->plan, &c);
  return true;
}

bool same_places_solve (const solve_request *q, arena *a, solution *out, error *err) {
  const solve_options *o = q->options;
  trying w = { .q = *q, .arena = a, .winner = -1 };
  w.q.effort = solve_effort (o, &q->effort);
  w.limit_ticks = w.q.effort.limit_ticks
                      ? w.q.effort.limit_ticks
                      : solve_level_ticks (o, tuned (o->tuning, TUNE_search_swaps_ticks));
  if (!sections_floor (q->trace, o, a, &w.least_bytes, err))
    return false;
  bool enough = false;
  for (int i = 0; i < TRIES && !enough; i++)
    if (!try_one (&w, i, &enough, err))
      return false;
  if (w.winner < 0)
    return w.open.code ? error_set (err, w.open.code, "%s", w.open.text)
                       : error_set (err, ERR_infeasible,
                                    "no plan has the same granules for every stay of a part");
  *out = w.best;
  out->ticks = w.ticks;
  out->candidates = w.candidates;
  return certify (&w, out, err);
}
