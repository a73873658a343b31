/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/search/search.h"

#include <assert.h>

#include "solver/attempt/attempt.h"
#include "solver/attempt/robust.h"
#include "solver/options/allowed.h"
#include "solver/search/published.h"
#include "solver/search/ways.h"
#include "solver/sections/bound.h"

static void certify (const solve_request *q, const bound *b, solution *s) {
  const certificate *had = &s->plan->certificate;
  certified c = { .lower_bound_ns = b->lower_bound_ns,
                  .bound_by = b->by,
                  .found_by = had->found_by,
                  .proof = b->proof,
                  .enough_ns = solve_enough_of (&q->effort, b->lower_bound_ns),
                  .limit_met = had->limit_met ? had->limit_met : "ticks" };
  c.cover = allowed_cover (q->options);
  s->bound = *b;
  solve_write_certificate (s->plan, &c);
}

bool search_certify (const solve_request *q, solution *s, arena *a, error *err) {
  bound b;
  if (!sections_bound (q->trace, q->options, a, &b, err))
    return false;
  certify (q, &b, s);
  return true;
}

/* Under a bound of every cut, which the plans that are compared need no proof of their own for. */
static bool solve_with_sections (const solve_request *q, arena *a, solution *out, error *err) {
  solve_options some = *q->options;
  solve_request with = *q;
  bound b;
  *out = (solution){ 0 };
  some.keep_proof = false;
  with.options = &some;
  if (!sections_bound (q->trace, q->options, a, &b, err))
    return false;
  if (q->effort.beat_ns && b.lower_bound_ns >= q->effort.beat_ns)
    return error_set (err, ERR_infeasible, "no plan is so fast, whatever its sections");
  with.least_ns = b.lower_bound_ns;
  if (!ways_solve (&with, a, out, err))
    return false;
  out->ticks += b.stats.ticks;
  certify (q, &b, out);
  return true;
}

/* Their own plans know nothing of places, and near a known plan nobody else is asked. */
static bool is_open (const solve_request *q) {
  const solve_options *o = q->options;
  return !o->same_places && !o->arena_granule_bytes && !q->effort.follow &&
         tuned_on (o->tuning, STRATEGY_TOP_published);
}

/* A published policy's drops may be made from what is dead, which the bound of plans that make it
   from what lives does not cover. */
static bool widen_bound (const solve_request *q, solution *s, arena *a, error *err) {
  certificate *c = &s->plan->certificate;
  const certificate had = *c;
  if (!solve_certify (q->trace, q->options, had.found_by, s->plan, a, err))
    return false;
  s->bound.lower_bound_ns = c->lower_bound_ns;
  s->bound.by = c->bound_by;
  s->bound.proof = c->proof;
  if (s->plan->predicted.step_ns > solve_enough_of (&q->effort, c->lower_bound_ns))
    c->limit_met = had.limit_met ? had.limit_met : "ticks";
  return true;
}

static bool tell_robust (const solve_request *q, solution *s, arena *a, error *err) {
  return !q->options->noise_percent ||
         robust_alone (q->trace, s->plan, q->options, a, &s->robust, err);
}

static bool take_published (const solve_request *q, solution *s, arena *a, error *err) {
  search_place from = { s->plan->predicted.step_ns, 0, 0 }, to = from;
  const plan *ours = s->plan;
  if (!published_take (q, s, a, err))
    return false;
  bool widens = s->plan->n_recomputes && !q->options->sections;
  if (s->plan != ours && ((widens && !widen_bound (q, s, a, err)) || !tell_robust (q, s, a, err)))
    return false;
  to.step_ns = s->plan->predicted.step_ns;
  stats_add (q->options->stats, STRATEGY_TOP_published, from, to);
  return true;
}

/* A published policy's plan, of a search that has none: under the bound of all that is allowed, not
   of its own kind, since others' plans are held against it. */
static bool take_alone (const solve_request *q, solution *s, arena *a, error *err) {
  if (!published_alone (q->trace, q->options, a, s, err) || !s->plan ||
      (q->options->sections    ? !search_certify (q, s, a, err)
       : q->options->recompute ? !solve_certify_by_compute (q, s, a, err)
                               : false))
    return false;
  certificate *c = &s->plan->certificate;
  c->limit_met =
      s->plan->predicted.step_ns > solve_enough_of (&q->effort, c->lower_bound_ns) ? "ticks" : NULL;
  return tell_robust (q, s, a, err);
}

int64_t search_default_ticks (const trace *t, const solve_options *o) {
  bool more = o->sections || o->recompute;
  int64_t ticks = more ? ways_default_ticks (t, o->tuning) : ways_swaps_ticks (t, o->tuning);
  if (t->n_ops <= tuned (o->tuning, TUNE_pieces_ops))
    ticks /= tuned (o->tuning, TUNE_search_small_part);
  return solve_level_ticks (o, ticks);
}

static bool search_own (const solve_request *q, arena *a, solution *out, error *err) {
  if (q->options->sections == SECTIONS_OFF && q->options->recompute == RECOMPUTE_OFF)
    return attempt_solve (q, a, out, err);
  return q->options->sections ? solve_with_sections (q, a, out, err) : ways_solve (q, a, out, err);
}

bool search_solve (const solve_request *wanted, arena *a, solution *out, error *err) {
  const trace *t = wanted->trace;
  const solve_options *o = wanted->options;
  assert (t && o->device && o->gap_ppm >= 0 && !wanted->variant);
  solve_request q = *wanted;
  error why = { 0 };
  q.effort = solve_effort (o, &wanted->effort);
  q.effort.limit_ticks = q.effort.limit_ticks ? q.effort.limit_ticks : search_default_ticks (t, o);
  bool open = is_open (&q);
  if (!o->sections && !o->recompute)
    q.effort.beat_ns = 0;
  bool ok = search_own (&q, a, out, &why);
  if (ok && out->plan && open)
    ok = take_published (&q, out, a, &why);
  else if (!ok && open && !solve_stops (o) && !q.effort.beat_ns &&
           (why.code == ERR_limit || why.code == ERR_infeasible))
    ok = take_alone (&q, out, a, err);
  if (!ok && err && !err->code)
    *err = why;
  assert (!ok || !out->plan || out->plan->has_certificate);
  return ok;
}
