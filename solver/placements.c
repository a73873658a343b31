/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/placements.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/attempt/attempt.h"
#include "solver/options/allowed.h"
#include "solver/options/lane.h"
#include "solver/order/updates.h"
#include "solver/search/search.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"
#include "trace/simulate/lost.h"
#include "trace/summary.h"

typedef struct placing {
  const trace *t;
  const solve_options *o;
  const effort *effort;
  solve_placed *one;
  const variant *fixed; /* the cuts and drops, if nothing but copies is still to be chosen */
  arena *arena;
} placing;

/* The plan is as near to the bound of all plans as was asked for. */
static bool is_enough (const placing *p, const solution *s) {
  effort e = solve_effort (p->o, p->effort);
  return s->plan->predicted.step_ns <= solve_enough_of (&e, s->plan->certificate.lower_bound_ns);
}

static bool is_better (const solution *x, const solution *y) {
  const predicted *a = &x->plan->predicted, *b = &y->plan->predicted;
  return a->step_ns != b->step_ns ? a->step_ns < b->step_ns : a->peak_bytes < b->peak_bytes;
}

/* That one search has no plan, or found none, does not rule out another. */
static bool may_go_on (const error *why) {
  return why->code == ERR_infeasible || why->code == ERR_limit;
}

/* The better answer of two searches, and the sum of what they took. */
static void take_better (solution *best, const solution *s) {
  int64_t ticks = s->ticks, candidates = s->candidates;
  if (best->plan) {
    ticks += best->ticks;
    candidates += best->candidates;
  }
  if (!best->plan || is_better (s, best))
    *best = *s;
  best->ticks = ticks;
  best->candidates = candidates;
}

enum { ARENA_HALVINGS = 2, ARENA_STEP = 40000, SHARES_TIMES = 4 };

/* The step counted in the arena's steps instead of granules; what the plan takes of the device is
   still whole granules. */
typedef struct trying {
  const placing *p;
  device fine;
  solve_options o;
  effort effort;
  solution best;             /* no plan: none yet */
  int64_t winner;            /* the best plan's share, in millionths */
  int64_t ticks, most_ticks; /* that all have taken, and may */
  error first;               /* why there was none */
  bool ruled_out;            /* nothing fits the last share */
} trying;

static bool search_once (const placing *p, const solve_options *o, const effort *e, solution *out,
                         error *err) {
  if (!p->fixed)
    return p->one (p->t, o, e, p->arena, out, err);
  attempt_request q = { .trace = p->t, .variant = p->fixed, .options = o, .effort = *e };
  return attempt_solve (&q, p->arena, out, err);
}

/* An arena is of whole granules, so what is left of the budget holds nothing. */
static int64_t counted_of (const placing *p, int64_t ppm) {
  int64_t granule = p->o->device->granule_bytes;
  return units_scale (p->o->budget_bytes / granule * granule, ppm, 1000000);
}

/* With this share of the budget to hold at once; the arena has all of it. */
static bool try_share (trying *w, int64_t ppm, int64_t ticks, error *err) {
  solution s = { 0 };
  error why = { 0 };
  const plan *had = w->best.plan;
  w->o.counted_bytes = counted_of (w->p, ppm);
  w->effort.limit_ticks = ticks > 0 ? ticks : 1;
  bool ok = search_once (w->p, &w->o, &w->effort, &s, &why);
  w->ticks += s.ticks;
  if (ok) {
    if (!s.plan) /* none is of use */
      return true;
    take_better (&w->best, &s);
    w->winner = w->best.plan == had ? w->winner : ppm;
    return true;
  }
  if (!may_go_on (&why)) {
    *err = why;
    return false;
  }
  if (!w->first.code)
    w->first = why;
  w->ruled_out = why.code == ERR_infeasible;
  return true;
}

/* Some of a search takes its ticks whatever its limit is, so with a low one a few shares take all.
   One must be found where there is no other plan; else fewer ticks are for that. */
static bool is_over (const trying *w) {
  if (!w->best.plan)
    return w->effort.beat_ns && (solve_stops (w->p->o) || w->ticks > w->most_ticks / SHARES_TIMES);
  return solve_stops (w->p->o) || w->ticks > w->most_ticks || is_enough (w->p, &w->best);
}

/* Large stretches may have places only where far less is held at once. */
static bool goes_lower (const trying *w, int64_t share) {
  if (share <= ARENA_STEP || is_over (w))
    return false;
  return w->best.plan ? w->winner == share : !w->ruled_out && w->ticks <= w->most_ticks;
}

/* The shares that are looked at, from above, and lower ones while those are better; and then, by
   halving, some between the best and the next one above it: from there on up stretches no longer
   fit, and a plan loses at once. */
static bool look_at_shares (trying *w, int64_t ticks, error *err) {
  int64_t above = 1000000, share = 1000000;
  for (tuning_id i = TUNE_arena_counted_ppm; i <= TUNE_arena_counted_ppm_last; i++) {
    int64_t was = share;
    if (i > TUNE_arena_counted_ppm && is_over (w))
      return true;
    share = tuned (w->o.tuning, i);
    if (!try_share (w, share, ticks, err))
      return false;
    above = w->winner == share ? was : above;
  }
  while (goes_lower (w, share)) {
    share -= ARENA_STEP;
    if (!try_share (w, share, ticks, err))
      return false;
    above = w->winner == share ? share + ARENA_STEP : above;
  }
  for (int i = 0; i < ARENA_HALVINGS && w->best.plan && !is_over (w); i++) {
    int64_t between = w->winner + (above - w->winner) / 2;
    if (!try_share (w, between, ticks, err))
      return false;
    above = w->winner == between ? above : between;
  }
  return true;
}

static void begin_arena (const placing *p, trying *w) {
  *w = (trying){
    .p = p, .fine = *p->o->device, .o = *p->o, .effort = solve_effort (p->o, p->effort)
  };
  w->o.arena_granule_bytes = w->fine.granule_bytes;
  w->fine.granule_bytes = PLACEMENT_STEP;
  w->o.device = &w->fine;
}

/* Stretches leave holes between them, so plans that hold less at once may be faster: a little
   effort for each share, the rest for the best. */
static bool solve_arena (const placing *p, solution *out, error *err) {
  trying w;
  begin_arena (p, &w);
  int64_t ticks = w.effort.limit_ticks ? w.effort.limit_ticks : search_default_ticks (p->t, &w.o);
  w.most_ticks = SHARES_TIMES * ticks;
  if (!look_at_shares (&w, ticks / tuned (w.o.tuning, TUNE_arena_look_part), err))
    return false;
  if (w.best.plan && !is_over (&w) && !try_share (&w, w.winner, ticks / 2, err))
    return false;
  *out = w.best;
  out->ticks = w.ticks;
  if (!out->plan)
    *err = w.first;
  return out->plan;
}

/* With one share that nearly always has places. */
static bool search_arena_once (const placing *p, solution *out, error *err) {
  trying w;
  begin_arena (p, &w);
  w.o.counted_bytes = counted_of (p, tuned (p->o->tuning, TUNE_arena_anew_counted_ppm));
  return search_once (p, &w.o, &w.effort, out, err);
}

static bool is_large (const trace *t, const solve_options *o) {
  return t->n_ops > tuned (o->tuning, TUNE_arena_ops);
}

/* Searches over rewritten steps take several times as long in an arena; placements_again is for
   them. */
static bool rewrites (const solve_options *o) {
  allowed x = allowed_of (o);
  return allowed_rewrites (&x);
}

/* The search in the arena, beside that in granules or after it. */
typedef struct beside {
  placing p;
  lane lane;
  solution found;
  error why; /* there is none */
} beside;

static void search_beside (void *context) {
  beside *b = context;
  if (!solve_arena (&b->p, &b->found, &b->why))
    b->found.plan = NULL;
}

static bool open_beside (const placing *p, beside *b, error *err) {
  if (!lane_open (&b->lane, p->o, err))
    return false;
  b->p.o = &b->lane.options;
  b->p.arena = b->lane.arena;
  lane_begin (&b->lane, search_beside, b);
  return true;
}

static bool solve_either (const placing *p, solution *out, error *err) {
  beside b = { .p = *p };
  bool may = !rewrites (p->o) && !is_large (p->t, p->o);
  bool ok = (!may || p->o->threads < 2 || open_beside (p, &b, err)) &&
            p->one (p->t, p->o, p->effort, p->arena, out, err);
  if (!ok || !may || is_enough (p, out) || solve_stops (p->o)) {
    lane_drop (&b.lane);
    return ok;
  }
  if (b.lane.arena)
    lane_take (&b.lane, p->arena);
  else
    search_beside (&b);
  if (b.found.plan)
    take_better (out, &b.found);
  else if (!may_go_on (&b.why)) {
    *err = b.why;
    return false;
  }
  return true;
}

bool placements_solve (const trace *t, const solve_options *o, const effort *e, solve_placed *one,
                       arena *a, solution *out, error *err) {
  assert (t && o->device && !o->arena_granule_bytes);
  placing p = { .t = t, .o = o, .effort = e, .one = one, .arena = a };
  if (o->same_places || o->placement == PLACES_GRANULES)
    return one (t, o, e, a, out, err);
  return o->placement == PLACES_ARENA ? solve_arena (&p, out, err) : solve_either (&p, out, err);
}

/* ---- once more ---- */

bool placements_suit_arena (const solve_options *o) {
  return !o->same_places && o->recompute != RECOMPUTE_ONLY;
}

static bool suits (const solve_options *o, const effort *e) {
  return placements_suit_arena (o) && !(e && (e->follow || e->rough));
}

static bool may_arena (const trace *t, const solve_options *o, const effort *e) {
  return suits (o, e) && !is_large (t, o);
}

/* Nothing has to move where no tensor is rounded to granules, so an arena costs no search. */
static bool fits_in_bytes (const trace *t, const solve_options *o, arena *a) {
  summary s;
  error ignored = { 0 };
  arena_mark mark = arena_here (a);
  bool fits = summary_of (t, a, &s, &ignored) && s.peak_bytes <= o->budget_bytes;
  arena_back (a, mark);
  return fits;
}

bool placements_leave_arena (const trace *t, const solve_options *o, const effort *e, arena *a,
                             const error *why) {
  return o->placement == PLACES_AUTO && suits (o, e) && may_go_on (why) && !solve_stops (o) &&
         (!is_large (t, o) || fits_in_bytes (t, o, a));
}

static bool is_done (const placing *p, const solution *best) {
  return is_enough (p, best) || solve_stops (p->o);
}

static bool may_again (const placing *p, const solution *best) {
  return may_arena (p->t, p->o, p->effort) && !is_done (p, best);
}

/* Events that are a tick of the search that found the best. */
static int64_t events_of (const placing *p) {
  return rewrites (p->o) ? solve_events_per_tick (p->t->n_ops) : 1;
}

/* A part of the ticks of the best. */
static effort effort_again (const placing *p, const solution *best, tuning_id part) {
  effort e = solve_effort (p->o, p->effort);
  int64_t ticks = e.limit_ticks ? e.limit_ticks : search_default_ticks (p->t, p->o);
  e.limit_ticks = ticks * events_of (p) / tuned (p->o->tuning, part) + 1;
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

static const again again_arena = { "arena", PLACEMENT_ARENA, false, false };

static bool begins (const char *text, const char *with) {
  return strncmp (text, with, strlen (with)) == 0;
}

/* The bound of the best speaks of that plan too: it may take for dead what the plan keeps. */
static bool is_covered (const trace *t, const solution *best, const solution *s) {
  static const char fresh[] = " from what lives anyway"; /* such plans are some of all */
  const char *all = best->plan->certificate.covers, *its = s->plan->certificate.covers;
  const char *at = strstr (its, fresh);
  size_t head = at ? (size_t)(at - its) : 0;
  return best->plan->certificate.lower_bound_ns <= trace_total_ns (t) || begins (all, its) ||
         (at && strncmp (all, its, head) == 0 && begins (all + head, at + strlen (fresh)));
}

/* With the bound that its own search has found. */
static bool take_own (const placing *p, solution *best, const solution *s, error *err) {
  const char *order = strstr (best->plan->certificate.covers, ", with its ops in ");
  certificate *c = &s->plan->certificate;
  c->covers = arena_format (p->arena, err, "%s%s", c->covers, order ? order : "");
  best->plan = s->plan;
  best->robust = s->robust;
  best->bound = s->bound;
  return c->covers;
}

static bool search_again (const placing *p, const again *how, solution *out, error *err) {
  if (how->anew)
    return search_arena_once (p, out, err);
  return how->kind == PLACEMENT_ARENA ? solve_arena (p, out, err)
                                      : search_once (p, p->o, p->effort, out, err);
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
  p.one = search_solve;
  p.fixed = how_else->anew ? NULL : &v;
  if (like->n_order && !trace_reorder (t, like->order, like->n_order, p.arena, &p.t, &order, err))
    return false;
  bool ok = search_again (&p, how_else, &s, &why);
  best->ticks += how_else->anew ? s.ticks : s.ticks / events_of (outer);
  if (!ok)
    return may_go_on (&why) || !why.code || error_set (err, why.code, "%s", why.text);
  best->candidates += s.candidates;
  if (found)
    *found = s;
  if (!s.plan || s.plan->predicted.step_ns >= best->plan->predicted.step_ns)
    return true;
  if (!how_else->anew || is_covered (t, best, &s))
    take_again (outer, best, &s, e);
  else if (!take_own (outer, best, &s, err))
    return false;
  if (how_else->anew || (!v.n_sections && !v.n_recomputes))
    best->why = s.why; /* it was of cuts and drops that the plan has not */
  return plan_set_order (best->plan, t, like->order, like->n_order, p.arena, err) &&
         (!like->n_order || check_plan (t, best->plan, p.arena, NULL, err));
}

/* The bound was of another order. */
static bool bound_of_any_order (const placing *p, const effort *e, solution *best, error *err) {
  if (!solve_certify_by_compute (p->t, p->o, e, best, p->arena, err))
    return false;
  best->plan->certificate.covers =
      "every plan, with whatever sections and recompute entries, in whatever order";
  return true;
}

/* Granules lose so much of the budget that other cuts and drops may pay where they do not. */
static bool is_lossy (const placing *p, const plan *best, bool *lossy, error *err) {
  const trace *t = p->t;
  int64_t lost, least_ppm = tuned (p->o->tuning, TUNE_arena_anew_ppm);
  *lossy = false;
  if (best->placement.kind == PLACEMENT_ARENA)
    return true;
  if (!lost_bytes (t, best, p->arena, &lost, err))
    return false;
  *lossy = lost > units_scale (p->o->budget_bytes, least_ppm, 1000000);
  return true;
}

/* Cuts and drops are compared by plans that are not placed, all with one share of the budget. So
   those that were chosen may still be the best with another, though their plan is not. */
static bool anew_in_arena (const placing *p, solution *best, error *err) {
  static const again anew = { "arena", PLACEMENT_ARENA, false, true };
  bool lossy;
  plan like = *best->plan;
  const plan *had = best->plan;
  solution found = { 0 };
  effort how = effort_again (p, best, TUNE_arena_anew_part);
  how.limit_ticks /= events_of (p);
  if (!is_lossy (p, best->plan, &lossy, err) ||
      (lossy && !try_again (p, &like, &anew, &how, best, &found, err)))
    return false;
  bool may = found.plan && best->plan == had && !is_done (p, best) &&
             found.plan->predicted.compute_ns < had->predicted.step_ns;
  if (!may || !is_covered (p->t, best, &found))
    return true;
  plan chosen = *found.plan;
  chosen.order = like.order;
  chosen.n_order = like.n_order;
  how = effort_again (p, best, TUNE_arena_again_part);
  return try_again (p, &chosen, &again_arena, &how, best, NULL, err);
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

static bool again_in_arena (const placing *p, solution *best, error *err) {
  plan like = *best->plan;
  effort how = effort_again (p, best, TUNE_arena_again_part);
  if (!try_again (p, &like, &again_arena, &how, best, NULL, err))
    return false;
  bool rewritten = like.n_sections || like.n_recomputes;
  like.n_sections = like.n_recomputes = 0;
  if (rewritten && best->plain_bound_ns < best->plan->predicted.step_ns && !is_done (p, best) &&
      !try_again (p, &like, &again_arena, &how, best, NULL, err))
    return false;
  const plan *had = best->plan;
  bool is_other = false;
  return (is_done (p, best) || other_order (p, &like, &is_other, err)) &&
         (!is_other || try_again (p, &like, &again_arena, &how, best, NULL, err)) &&
         (best->plan == had || bound_of_any_order (p, &how, best, err));
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
static bool again_by_latency (const placing *p, solution *best, error *err) {
  plan like = *best->plan;
  again larger = { "by-latency", like.placement.kind, true, false };
  effort how =
      effort_again (p, best, rewrites (p->o) ? TUNE_arena_again_part : TUNE_latency_again_part);
  return !is_late (p, &like) || try_again (p, &like, &larger, &how, best, NULL, err);
}

bool placements_again (const trace *t, const solve_options *o, const effort *e, arena *a,
                       solution *best, error *err) {
  placing p = { .t = t, .o = o, .effort = e, .arena = a };
  if (!may_again (&p, best))
    return true;
  if (o->placement == PLACES_AUTO && rewrites (o) &&
      (!anew_in_arena (&p, best, err) || (!is_done (&p, best) && !again_in_arena (&p, best, err))))
    return false;
  return is_done (&p, best) || again_by_latency (&p, best, err);
}
