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

static bool is_done (const placing *p, const solution *best) {
  return placed_is_enough (p, best) || solve_stops (p->o);
}

/* Events that are a tick of the search that found the best. */
static int64_t events_of (const placing *p) {
  return placed_rewrites (p->o) ? solve_events_per_tick (p->t->n_ops) : 1;
}

static int64_t ticks_of (const placing *p) {
  effort e = solve_effort (p->o, p->effort);
  return e.limit_ticks ? e.limit_ticks : search_default_ticks (p->t, p->o);
}

/* A part of the ticks of the best; for a step that is neither cut nor dropped, no fewer than where
   nothing else is allowed. */
static effort effort_again (const placing *p, const solution *best, const plan *like,
                            tuning_id part) {
  const solve_options *o = p->o;
  effort e = solve_effort (o, p->effort);
  bool is_bare = (o->sections || o->recompute) && !like->n_sections && !like->n_recomputes;
  int64_t ticks = ticks_of (p), alone = ways_plain_ticks (p->t, o->tuning, ticks);
  e.limit_ticks = ticks * events_of (p) / tuned (o->tuning, part) + 1;
  e.limit_ticks = is_bare ? max_of (e.limit_ticks, alone) : e.limit_ticks;
  e.enough_ns = solve_enough_of (&e, best->plan->certificate.lower_bound_ns);
  return e;
}

/* The bound of the best stays: it is of all cuts, drops and orders that it speaks of, and of bytes.
 */
static void take_again (const placing *p, solution *best, const solution *s, const effort *e) {
  certified kept = solve_by_bound_of (best->plan, s->plan);
  kept.enough_ns = e->enough_ns;
  kept.limit_met = solve_stops (p->o) ? "stopped" : "ticks";
  solve_write_certificate (s->plan, &kept);
  best->plan = s->plan;
  best->robust = s->robust;
}

/* Another way to search a step that is rewritten already, or to rewrite it. */
typedef struct again {
  const char *name;
  placement_kind kind;
  bool by_latency; /* as the options' */
  bool anew;       /* with other cuts and drops */
} again;

static const again in_arena = { "arena", PLACEMENT_ARENA, false, false };

/* The bound of the best speaks of that plan too: it may take for dead what the plan keeps. */
static bool is_covered (const trace *t, const solution *best, const solution *s) {
  const certificate *all = &best->plan->certificate;
  return all->lower_bound_ns <= trace_total_ns (t) ||
         cover_includes_but_order (&all->cover, &s->plan->certificate.cover);
}

/* With the bound that its own search has found. */
static void take_own (solution *best, const solution *s) {
  s->plan->certificate.cover.order = best->plan->certificate.cover.order;
  best->plan = s->plan;
  best->robust = s->robust;
  best->bound = s->bound;
}

static bool search_again (const placing *p, const again *how, solution *out, error *err) {
  if (how->anew)
    return placed_arena_once (p, out, err);
  return how->kind == PLACEMENT_ARENA ? placed_arena (p, out, err)
                                      : placed_once (p, p->o, p->effort, out, err);
}

/* The plan of the step in that order, cut and with those drops, if it is faster in such places, or
   in other groups. */
static bool try_again (const placing *outer, const plan *like, const again *how_else,
                       const effort *e, solution *best, solution *found, error *err) {
  const trace *t = outer->t;
  solve_options plain = *outer->o;
  variant v = { how_else->name, like->sections, like->recomputes, like->n_sections,
                like->n_recomputes };
  placing p = *outer;
  effort how = *e;
  solution s = { 0 };
  int32_t *order;
  error why = { 0 };
  plain.keep_proof = how_else->anew && outer->o->keep_proof; /* its own bound may be the answer's */
  plain.by_latency = how_else->by_latency;
  plain.trace_digest = like->n_order ? NULL : outer->o->trace_digest;
  how.beat_ns = best->plan->predicted.step_ns;
  p.o = &plain;
  p.effort = &how;
  p.fixed = how_else->anew ? NULL : &v;
  if (like->n_order && !trace_reorder (t, like->order, like->n_order, p.arena, &p.t, &order, err))
    return false;
  bool ok = search_again (&p, how_else, &s, &why);
  best->ticks += how_else->anew ? s.ticks : s.ticks / events_of (outer);
  if (!ok)
    return placed_may_go_on (&why) || !why.code || error_set (err, why.code, "%s", why.text);
  best->candidates += s.candidates;
  if (found)
    *found = s;
  if (!s.plan || s.plan->predicted.step_ns >= best->plan->predicted.step_ns)
    return true;
  if (!how_else->anew || is_covered (t, best, &s))
    take_again (outer, best, &s, e);
  else
    take_own (best, &s);
  if (how_else->anew || (!v.n_sections && !v.n_recomputes))
    best->why = s.why; /* it was of cuts and drops that the plan has not */
  return plan_set_order (best->plan, t, like->order, like->n_order, p.arena, err) &&
         (!like->n_order || check_plan (t, best->plan, p.arena, NULL, err));
}

/* ---- the strategies ---- */

static placing placing_of (const question *q) {
  return (placing){ .t = q->t, .o = q->o, .effort = q->asked, .arena = q->arena };
}

bool again_may (const question *q) {
  placing p = placing_of (q);
  return placed_suits (q->o, q->asked) && !placed_is_large (q->t, q->o) && !is_done (&p, &q->best);
}

bool again_rewrites (const question *q) {
  return again_may (q) && q->o->placement == PLACES_AUTO && placed_rewrites (q->o);
}

/* An arena counts bytes whatever the card's granules are, so that finer ones give nothing up. Cuts
   and drops are compared by plans that are not placed, all with one share of the budget. So those
   that were chosen may still be the best with another, though their plan is not. */
bool again_anew (question *q, error *err) {
  placing x = placing_of (q), *p = &x;
  solution *best = &q->best;
  static const again anew = { "arena", PLACEMENT_ARENA, false, true };
  plan like = *best->plan;
  const plan *had = best->plan;
  solution found = { 0 };
  if (like.placement.kind == PLACEMENT_ARENA)
    return true;
  effort how = effort_again (p, best, &like, TUNE_arena_anew_part);
  how.limit_ticks = ticks_of (p) / tuned (p->o->tuning, TUNE_arena_anew_part) + 1;
  if (!try_again (p, &like, &anew, &how, best, &found, err))
    return false;
  bool may = found.plan && best->plan == had && !is_done (p, best) &&
             found.plan->predicted.compute_ns < had->predicted.step_ns;
  if (!may || !is_covered (p->t, best, &found))
    return true;
  plan chosen = *found.plan;
  chosen.order = like.order;
  chosen.n_order = like.n_order;
  how = effort_again (p, best, &chosen, TUNE_arena_again_part);
  return try_again (p, &chosen, &in_arena, &how, best, NULL, err);
}

/* The order that the best has not: as it is, or with the updates moved up. */
static bool other_order (const placing *p, plan *like, bool *is_other, error *err) {
  *is_other = like->n_order;
  like->n_order = 0;
  if (*is_other || p->o->order == ORDER_AS_IS)
    return true;
  if (!order_updates (p->t, p->arena, &like->order, &like->n_order, err))
    return false;
  *is_other = like->n_order;
  return true;
}

/* The best plan's cuts and drops are kept; what moves and where it lies is searched once more. */
bool again_arena (question *q, error *err) {
  placing p = placing_of (q);
  plan like = *q->best.plan;
  effort how = effort_again (&p, &q->best, &like, TUNE_arena_again_part);
  return try_again (&p, &like, &in_arena, &how, &q->best, NULL, err);
}

static bool try_bare (const placing *p, plan *like, solution *best, error *err) {
  like->n_sections = like->n_recomputes = 0;
  effort how = effort_again (p, best, like, TUNE_arena_again_part);
  return try_again (p, like, &in_arena, &how, best, NULL, err);
}

/* Neither cut nor dropped. */
bool again_uncut (question *q, error *err) {
  placing p = placing_of (q);
  plan like = *q->best.plan;
  bool rewritten = like.n_sections || like.n_recomputes;
  return !rewritten || q->best.plain_bound_ns >= like.predicted.step_ns ||
         try_bare (&p, &like, &q->best, err);
}

/* And in another order. */
bool again_reordered (question *q, error *err) {
  placing p = placing_of (q);
  plan like = *q->best.plan;
  const plan *had = q->best.plan;
  effort how = effort_again (&p, &q->best, &like, TUNE_arena_again_part);
  bool is_other = false;
  return other_order (&p, &like, &is_other, err) &&
         (!is_other || try_bare (&p, &like, &q->best, err)) &&
         (q->best.plan == had || solve_certify_by_compute (p.t, p.o, &how, &q->best, p.arena,
                                                           err)); /* it was of another */
}

/* True if weights or optimizer state are away when the step ends, in so many copies that their
   latency is a part of it. */
static bool is_late (const placing *p, const plan *best) {
  __int128 late_ns = (__int128)best->n_moves * p->o->device->link.copy_ns;
  bool state = false;
  for (int32_t i = 0; i < best->n_moves; i++)
    state |= best->moves[i].in_before <= best->moves[i].out_after;
  return state &&
         late_ns * tuned (p->o->tuning, TUNE_latency_again_least) > best->predicted.step_ns;
}

/* Larger groups of weights and optimizer state, where the many small copies of the best take long
   to begin. */
bool again_grouped (question *q, error *err) {
  placing p = placing_of (q);
  plan like = *q->best.plan;
  again larger = { "by-latency", like.placement.kind, true, false };
  effort how =
      effort_again (&p, &q->best, &like,
                    placed_rewrites (q->o) ? TUNE_arena_again_part : TUNE_latency_again_part);
  return !is_late (&p, &like) || try_again (&p, &like, &larger, &how, &q->best, NULL, err);
}

/* Its order, cuts and drops, with what moves searched once more; in the places that it has, where
   they are allowed. */
static bool search_like (question *q, const plan *known, error *err) {
  placing p = placing_of (q);
  const solution had = q->best;
  bool in_arena = q->o->placement == PLACES_ARENA ||
                  (q->o->placement == PLACES_AUTO && known->placement.kind == PLACEMENT_ARENA);
  again how_else = { "known", in_arena ? PLACEMENT_ARENA : PLACEMENT_GRANULES, false, false };
  effort how = effort_again (&p, &q->best, known, TUNE_arena_again_part);
  return try_again (&p, known, &how_else, &how, &q->best, NULL, err) &&
         (q->best.plan == had.plan ||
          starts_certify (q->t, q->o, q->asked, &had, &q->best, q->arena, err));
}

/* One that is slower here than the best, though it is legal, has nothing to give. */
static bool begin_like (question *q, const plan *p, error *err) {
  error why = { 0 };
  plan *known = NULL;
  if (!starts_suits (q->t, q->o, p, q->arena, &why))
    return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
  if (!starts_fit (q->t, q->o, p, q->arena, &known, &why) && why.code != ERR_infeasible)
    return error_set (err, why.code, "%s", why.text);
  if (known && known->predicted.step_ns >= q->best.plan->predicted.step_ns)
    return true;
  return starts_take (q->t, q->o, q->asked, known, q->arena, &q->best, err) &&
         search_like (q, p, err);
}

bool again_is_known (const question *q) {
  placing p = placing_of (q);
  return q->o->n_starts && !is_done (&p, &q->best);
}

bool again_known (question *q, error *err) {
  for (int32_t i = 0; i < q->o->n_starts && again_is_known (q); i++)
    if (!begin_like (q, q->o->starts[i], err))
      return false;
  return true;
}
