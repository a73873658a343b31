/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/search/search.h"

#include <assert.h>

#include "solver/attempt/attempt.h"
#include "solver/attempt/robust.h"
#include "solver/options/allowed.h"
#include "solver/search/published.h"
#include "solver/search/ways.h"
#include "solver/sections/bound.h"

static void certify (const solve_options *o, const effort *e, const bound *b, solution *s) {
  const certificate *had = &s->plan->certificate;
  certified c = { .lower_bound_ns = b->lower_bound_ns,
                  .bound_by = b->by,
                  .found_by = had->found_by,
                  .proof = b->proof,
                  .enough_ns = solve_enough_of (e, b->lower_bound_ns),
                  .limit_met = had->limit_met ? had->limit_met : "ticks" };
  c.cover = allowed_cover (o);
  s->bound = *b;
  solve_write_certificate (s->plan, &c);
}

bool search_certify (const trace *t, const solve_options *o, const effort *e, arena *a, solution *s,
                     error *err) {
  bound b;
  if (!sections_bound (t, o, a, &b, err))
    return false;
  certify (o, e, &b, s);
  return true;
}

/* Under a bound of every cut, which the plans that are compared need no proof of their own for. */
static bool solve_with_sections (const ways_request *q, arena *a, solution *out, error *err) {
  solve_options some = *q->options;
  ways_request with = *q;
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
  certify (q->options, &q->effort, &b, out);
  return true;
}

/* Their own plans know nothing of places, and near a known plan nobody else is asked. */
static bool is_open (const solve_options *o, const effort *e) {
  return !o->same_places && !o->arena_granule_bytes && !e->follow &&
         tuned_on (o->tuning, STRATEGY_TOP_published);
}

/* A published policy's drops may be made from what is dead, which the bound of plans that make it
   from what lives does not cover. */
static bool widen_bound (const trace *t, const solve_options *o, const effort *e, arena *a,
                         solution *s, error *err) {
  certificate *c = &s->plan->certificate;
  const certificate had = *c;
  if (!solve_certify (t, o, had.found_by, s->plan, a, err))
    return false;
  s->bound.lower_bound_ns = c->lower_bound_ns;
  s->bound.by = c->bound_by;
  s->bound.proof = c->proof;
  if (s->plan->predicted.step_ns > solve_enough_of (e, c->lower_bound_ns))
    c->limit_met = had.limit_met ? had.limit_met : "ticks";
  return true;
}

static bool tell_robust (const trace *t, const solve_options *o, arena *a, solution *s,
                         error *err) {
  return !o->noise_percent || robust_alone (t, s->plan, o, a, &s->robust, err);
}

static bool take_published (const trace *t, const solve_options *o, const effort *e, arena *a,
                            solution *s, error *err) {
  search_place from = { s->plan->predicted.step_ns, 0, 0 }, to = from;
  const plan *ours = s->plan;
  if (!published_take (t, o, e, a, s, err))
    return false;
  if (s->plan != ours && s->plan->n_recomputes && !o->sections && !widen_bound (t, o, e, a, s, err))
    return false;
  if (s->plan != ours && !tell_robust (t, o, a, s, err))
    return false;
  to.step_ns = s->plan->predicted.step_ns;
  stats_add (o->stats, STRATEGY_TOP_published, from, to);
  return true;
}

/* A published policy's plan, of a search that has none: under the bound of all that is allowed, not
   of its own kind, since others' plans are held against it. */
static bool take_alone (const trace *t, const solve_options *o, const effort *e, arena *a,
                        solution *s, error *err) {
  if (!published_alone (t, o, a, s, err) || !s->plan ||
      (o->sections    ? !search_certify (t, o, e, a, s, err)
       : o->recompute ? !solve_certify_by_compute (t, o, e, s, a, err)
                      : false))
    return false;
  certificate *c = &s->plan->certificate;
  c->limit_met =
      s->plan->predicted.step_ns > solve_enough_of (e, c->lower_bound_ns) ? "ticks" : NULL;
  return tell_robust (t, o, a, s, err);
}

int64_t search_default_ticks (const trace *t, const solve_options *o) {
  bool more = o->sections || o->recompute;
  int64_t ticks = more ? ways_default_ticks (t, o->tuning) : ways_swaps_ticks (t, o->tuning);
  if (t->n_ops <= tuned (o->tuning, TUNE_pieces_ops))
    ticks /= tuned (o->tuning, TUNE_search_small_part);
  return solve_level_ticks (o, ticks);
}

static bool search_own (const trace *t, const solve_options *o, const effort *e, arena *a,
                        solution *out, error *err) {
  if (o->sections == SECTIONS_OFF && o->recompute == RECOMPUTE_OFF) {
    attempt_request q = { .trace = t, .options = o, .effort = *e };
    return attempt_solve (&q, a, out, err);
  }
  ways_request q = { .trace = t, .options = o, .effort = *e };
  return o->sections ? solve_with_sections (&q, a, out, err) : ways_solve (&q, a, out, err);
}

bool search_solve (const trace *t, const solve_options *o, const effort *e, arena *a, solution *out,
                   error *err) {
  assert (t && o->device && o->gap_ppm >= 0);
  effort full = solve_effort (o, e);
  error why = { 0 };
  full.limit_ticks = full.limit_ticks ? full.limit_ticks : search_default_ticks (t, o);
  bool open = is_open (o, &full);
  if (!o->sections && !o->recompute)
    full.beat_ns = 0;
  bool ok = search_own (t, o, &full, a, out, &why);
  if (ok && out->plan && open)
    ok = take_published (t, o, &full, a, out, &why);
  else if (!ok && open && !solve_stops (o) && !full.beat_ns &&
           (why.code == ERR_limit || why.code == ERR_infeasible))
    ok = take_alone (t, o, &full, a, out, err);
  if (!ok && err && !err->code)
    *err = why;
  assert (!ok || !out->plan || out->plan->has_certificate);
  return ok;
}
