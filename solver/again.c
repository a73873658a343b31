/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stage PLACES: the best plan is searched once more, with its order, and mostly its cuts and
   drops, kept: for an arena, where `auto` allows that, and with larger groups of weights and
   optimizer state. */
#include "base/order.h"
#include "base/units.h"
#include "solver/order/updates.h"
#include "solver/placed.h"
#include "solver/question.h"
#include "solver/search/search.h"
#include "solver/search/ways.h"
#include "solver/starts.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"

static bool is_done (const question *q) {
  return placed_is_enough (&q->ask, &q->best) || solve_stops (q->ask.options);
}

/* ---- one more search ---- */

/* A variant of the best plan's step: its order, cuts and drops, the places and groups that are
   tried, and the share of the ticks that it may spend. */
typedef struct again {
  const char *name;
  const plan *like; /* order, cuts, drops */
  placement_kind kind;
  tuning_id share;
  bool by_latency; /* as the options' */
  bool anew;       /* with other cuts and drops */
} again;

/* Events that are a tick of the search that found the best. */
static int64_t events_of (const question *q) {
  bool rewrites = placed_rewrites (q->ask.options);
  return rewrites ? solve_events_per_tick (q->ask.trace->n_ops) : 1;
}

/* For a step that is neither cut nor dropped, no fewer ticks than where nothing else is allowed. */
static effort effort_of (const question *q, const again *x) {
  const solve_options *o = q->ask.options;
  const trace *t = q->ask.trace;
  effort e = q->ask.effort;
  bool is_bare =
      (o->sections || o->recompute) && !x->like->n_sections && !x->like->n_recomputes && !x->anew;
  int64_t ticks = e.limit_ticks ? e.limit_ticks : search_default_ticks (t, o),
          events = x->anew ? 1 : events_of (q), alone = ways_plain_ticks (t, o->tuning, ticks);
  e.limit_ticks = ticks * events / tuned (o->tuning, x->share) + 1;
  e.limit_ticks = is_bare ? max_of (e.limit_ticks, alone) : e.limit_ticks;
  e.enough_ns = solve_enough_of (&e, q->best.plan->certificate.lower_bound_ns);
  return e;
}

/* The bound of the best speaks of that plan too: it may take for dead what the plan keeps. */
static bool is_covered (const question *q, const solution *s) {
  const certificate *all = &q->best.plan->certificate;
  return all->lower_bound_ns <= trace_total_ns (q->ask.trace) ||
         cover_includes_but_order (&all->cover, &s->plan->certificate.cover);
}

/* The bound of the best stays where it covers the plan: it is of all cuts, drops and orders that it
   speaks of, and of bytes. Else the plan has the bound that its own search has found. */
static void take (question *q, const again *x, const solution *s, int64_t enough_ns) {
  solution *best = &q->best;
  if (!x->anew || is_covered (q, s)) {
    certified kept = solve_by_bound_of (best->plan, s->plan);
    kept.enough_ns = enough_ns;
    kept.limit_met = solve_stops (q->ask.options) ? "stopped" : "ticks";
    solve_write_certificate (s->plan, &kept);
  } else {
    s->plan->certificate.cover.order = best->plan->certificate.cover.order;
    best->bound = s->bound;
  }
  best->plan = s->plan;
  best->robust = s->robust;
  if (x->anew || (!x->like->n_sections && !x->like->n_recomputes))
    best->why = s->why; /* it was of cuts and drops that the plan has not */
}

static bool search_again (const solve_request *q, const again *x, arena *a, solution *out,
                          error *err) {
  if (x->anew)
    return placed_arena_once (q, a, out, err);
  return x->kind == PLACEMENT_ARENA ? placed_arena (q, a, out, err) : placed_once (q, a, out, err);
}

/* Its plan, if it is faster than the best. */
static bool try_again (question *q, const again *x, solution *found, error *err) {
  const trace *t = q->ask.trace;
  const plan *like = x->like;
  const effort own = effort_of (q, x);
  variant v = { x->name, like->sections, like->recomputes, like->n_sections, like->n_recomputes };
  solve_options plain = *q->ask.options;
  solve_request ask = { .options = &plain, .effort = own, .variant = x->anew ? NULL : &v };
  solution s = { 0 };
  int32_t *order;
  error why = { 0 };
  plain.keep_proof = plain.keep_proof && x->anew; /* its own bound may be the answer's */
  plain.by_latency = x->by_latency;
  plain.trace_digest = like->n_order ? NULL : plain.trace_digest;
  ask.effort.beat_ns = q->best.plan->predicted.step_ns;
  if (!trace_reorder (t, like->order, like->n_order, q->arena, &ask.trace, &order, err))
    return false;
  bool ok = search_again (&ask, x, q->arena, &s, &why);
  q->best.ticks += x->anew ? s.ticks : s.ticks / events_of (q);
  if (!ok)
    return placed_may_go_on (&why) || !why.code || error_set (err, why.code, "%s", why.text);
  q->best.candidates += s.candidates;
  if (found)
    *found = s;
  if (!s.plan || s.plan->predicted.step_ns >= q->best.plan->predicted.step_ns)
    return true;
  take (q, x, &s, own.enough_ns);
  return plan_set_order (q->best.plan, t, like->order, like->n_order, q->arena, err) &&
         (!like->n_order || check_plan (t, q->best.plan, q->arena, NULL, err));
}

static bool try_arena (question *q, const plan *like, error *err) {
  const again x = { "arena", like, PLACEMENT_ARENA, TUNE_arena_again_part, false, false };
  return try_again (q, &x, NULL, err);
}

/* ---- the strategies ---- */

bool again_may (const question *q) {
  return placed_suits (&q->ask) && !placed_is_large (&q->ask) && !is_done (q);
}

bool again_rewrites (const question *q) {
  const solve_options *o = q->ask.options;
  return again_may (q) && o->placement == PLACES_AUTO && placed_rewrites (o);
}

/* An arena counts bytes whatever the card's granules are, so that finer ones give nothing up. Cuts
   and drops are compared by plans that are not placed, all with one share of the budget. So those
   that were chosen may still be the best with another, though their plan is not. */
bool again_anew (question *q, error *err) {
  const plan *had = q->best.plan;
  const again anew = { "arena", had, PLACEMENT_ARENA, TUNE_arena_anew_part, false, true };
  solution found = { 0 };
  if (had->placement.kind == PLACEMENT_ARENA)
    return true;
  if (!try_again (q, &anew, &found, err))
    return false;
  bool may = found.plan && q->best.plan == had && !is_done (q) &&
             found.plan->predicted.compute_ns < had->predicted.step_ns;
  if (!may || !is_covered (q, &found))
    return true;
  plan chosen = *found.plan;
  chosen.order = had->order;
  chosen.n_order = had->n_order;
  return try_arena (q, &chosen, err);
}

/* The best plan's cuts and drops are kept; what moves and where it lies is searched once more. */
bool again_arena (question *q, error *err) {
  return try_arena (q, q->best.plan, err);
}

static bool try_bare (question *q, plan like, error *err) {
  like.n_sections = like.n_recomputes = 0;
  return try_arena (q, &like, err);
}

/* Neither cut nor dropped. */
bool again_uncut (question *q, error *err) {
  const plan *like = q->best.plan;
  bool rewritten = like->n_sections || like->n_recomputes;
  return !rewritten || q->best.plain_bound_ns >= like->predicted.step_ns ||
         try_bare (q, *like, err);
}

/* The order that the best has not: as it is, or with the updates moved up. */
static bool other_order (const question *q, plan *like, bool *is_other, error *err) {
  *is_other = like->n_order;
  like->n_order = 0;
  if (*is_other || q->ask.options->order == ORDER_AS_IS)
    return true;
  if (!order_updates (q->ask.trace, q->arena, &like->order, &like->n_order, err))
    return false;
  *is_other = like->n_order;
  return true;
}

/* And in another order. */
bool again_reordered (question *q, error *err) {
  const plan *had = q->best.plan;
  plan like = *had;
  solve_request by_compute = q->ask;
  by_compute.effort.enough_ns = solve_enough_of (&q->ask.effort, had->certificate.lower_bound_ns);
  bool is_other = false;
  return other_order (q, &like, &is_other, err) && (!is_other || try_bare (q, like, err)) &&
         (q->best.plan == had ||
          solve_certify_by_compute (&by_compute, &q->best, q->arena, err)); /* it was of another */
}

/* True if weights or optimizer state are away when the step ends, in so numerous copies that
   their latency is a part of it. */
static bool is_late (const question *q) {
  const solve_options *o = q->ask.options;
  const plan *best = q->best.plan;
  __int128 late_ns = (__int128)best->n_moves * o->device->link.copy_ns;
  bool state = false;
  for (int32_t i = 0; i < best->n_moves; i++)
    state |= best->moves[i].in_before <= best->moves[i].out_after;
  return state && late_ns * tuned (o->tuning, TUNE_latency_again_least) > best->predicted.step_ns;
}

/* Larger groups of weights and optimizer state, where the many small copies of the best take long
   to begin. */
bool again_grouped (question *q, error *err) {
  const plan *like = q->best.plan;
  bool rewrites = placed_rewrites (q->ask.options);
  const again larger = { "by-latency",
                         like,
                         like->placement.kind,
                         rewrites ? TUNE_arena_again_part : TUNE_latency_again_part,
                         true,
                         false };
  return !is_late (q) || try_again (q, &larger, NULL, err);
}

/* Its order, cuts and drops, with what moves searched once more; in the places that it has, where
   they are allowed. */
static bool search_like (question *q, const plan *known, error *err) {
  const solution had = q->best;
  places_mode may = q->ask.options->placement;
  bool in_arena =
      may == PLACES_ARENA || (may == PLACES_AUTO && known->placement.kind == PLACEMENT_ARENA);
  const again x = {
    "known", known, in_arena ? PLACEMENT_ARENA : PLACEMENT_GRANULES, TUNE_arena_again_part,
    false,   false
  };
  return try_again (q, &x, NULL, err) &&
         (q->best.plan == had.plan || starts_certify (&q->ask, &had, &q->best, q->arena, err));
}

/* One that is slower here than the best, though it is legal, has nothing to give. */
static bool begin_like (question *q, const plan *p, error *err) {
  const trace *t = q->ask.trace;
  const solve_options *o = q->ask.options;
  error why = { 0 };
  plan *known = NULL;
  if (!starts_suits (t, o, p, q->arena, &why))
    return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
  if (!starts_fit (t, o, p, q->arena, &known, &why) && why.code != ERR_infeasible)
    return error_set (err, why.code, "%s", why.text);
  if (known && known->predicted.step_ns >= q->best.plan->predicted.step_ns)
    return true;
  return starts_take (&q->ask, known, &q->best, q->arena, err) && search_like (q, p, err);
}

bool again_is_known (const question *q) {
  return q->ask.options->n_starts && !is_done (q);
}

bool again_known (question *q, error *err) {
  const solve_options *o = q->ask.options;
  for (int32_t i = 0; i < o->n_starts && again_is_known (q); i++)
    if (!begin_like (q, o->starts[i], err))
      return false;
  return true;
}
