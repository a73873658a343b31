/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/attempt.h"

#include <assert.h>

#include "base/units.h"
#include "solver/attempt/robust.h"
#include "trace/check/check.h"

/* ---- the bound ---- */

/* The bound's own view of memory: any granules, groups and pool that a plan may choose. */
static bool bound_step (const counted_step *step, const solve_options *o, const effort *e, arena *a,
                        bound *out, error *err) {
  if (e->guide) {
    *out = *e->guide;
    return true;
  }
  bound_options b = solve_bound_options (o);
  b.limit_rounds = e->rough ? -1 : 0;
  b.program = o->program;
  b.beat_ns = e->beat_ns;
  return bound_of (&step->gaps, &b, a, out, err);
}

bool attempt_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  assert (t && o->device && out);
  static const effort all = { 0 };
  counted_step *step = NEW (a, 1, counted_step, err);
  return step && step_count_bytes (t, o->budget_bytes, a, step, err) &&
         bound_step (step, o, &all, a, out, err);
}

static bool is_worth_a_program (const solve_request *q) {
  const variant_value *known = q->known;
  return !known || (known->n_ops <= tuned (q->options->tuning, TUNE_attempt_program_ops) &&
                    known->step_ns > solve_enough_of (&q->effort, known->bound_ns));
}

static bound quick_bound (const variant_value *known) {
  return (bound){ .lower_bound_ns = known->bound_ns,
                  .compute_ns = known->compute_ns,
                  .by = known->bound_ns > known->compute_ns ? "crossing" : "compute" };
}

/* ---- layouts ---- */

static bool is_wanted (const search *s, layout_kind kind) {
  static const tuning_id of[LAYOUTS] = {
    [LAYOUT_TIGHT] = TUNE_layout_tight, [LAYOUT_STATE] = TUNE_layout_state,
    [LAYOUT_CLOSE] = TUNE_layout_close, [LAYOUT_LARGE] = TUNE_layout_large,
    [LAYOUT_MANY] = TUNE_layout_many,   [LAYOUT_SMALL] = TUNE_layout_small,
  };
  if (s->effort.follow)
    return kind == (layout_kind)s->effort.follow->layout;
  if (kind == LAYOUT_BARE)
    return layout_suits (kind, s->rewritten->trace, s->options->tuning);
  if (kind == LAYOUT_STATE && (!s->share || s->options->by_latency))
    return false; /* as the first */
  return kind == LAYOUT_MIDDLE || tuned (s->options->tuning, of[kind]);
}

/* The layouts of the kinds [from, end), those that differ; the last of all is the one with the
   lowest floor where all are too large. */
static bool make_layouts (search *s, layout_kind from, layout_kind end, error *err) {
  const solve_options *o = s->options;
  if (!s->layouts && !(s->layouts = NEW (s->arena, LAYOUTS, layout, err)))
    return false;
  for (layout_kind kind = from; kind < end; kind++) {
    layout *l = &s->layouts[s->n_layouts];
    layout_request q = { .trace = s->rewritten->trace,
                         .kind = kind,
                         .device = o->device,
                         .budget_bytes = o->counted_bytes ? o->counted_bytes : o->budget_bytes,
                         .part_bytes = o->arena_granule_bytes,
                         .by_latency = o->by_latency,
                         .singles = s->singles,
                         .share = s->share,
                         .tuning = o->tuning };
    if (!is_wanted (s, kind))
      continue;
    if (!layout_make (&q, s->arena, l, err))
      return false;
    if (s->n_layouts == 0 || l->n_groups > 0 || kind >= LAYOUT_MANY)
      s->n_layouts++;
  }
  return true;
}

static bool is_too_small (const search *s, error *err) {
  const gaps *least = &s->layouts[0].step.gaps;
  for (int32_t i = 1; i < s->n_layouts; i++)
    if (s->layouts[i].step.gaps.floor_bytes < least->floor_bytes)
      least = &s->layouts[i].step.gaps;
  return gaps_too_small (least, s->options->budget_bytes, err);
}

/* ---- when the strategies apply ---- */

static bool nothing_moves (search *s) {
  return s->options->recompute == RECOMPUTE_ONLY;
}

static bool has_recipe (search *s) {
  return !nothing_moves (s) && s->effort.follow;
}

static bool searches (search *s) {
  return !nothing_moves (s) && !s->effort.follow;
}

static bool goes_on (search *s) {
  return searches (s) && !search_is_over (s);
}

static bool has_few_ops (search *s) {
  return goes_on (s) && s->rewritten->trace->n_ops <= tuned (s->options->tuning, TUNE_pieces_ops);
}

static bool has_plan (search *s) {
  return goes_on (s) && s->best.step_ns < INT64_MAX;
}

/* ---- the strategies that are not files of their own ---- */

/* Groups and granules may be why one layout does not fit. */
static bool search_still (search *s, error *err) {
  bool ok = true;
  for (int32_t i = 0; ok && i < s->n_layouts && s->best.step_ns == INT64_MAX; i++) {
    search_clear (&s->trial, &s->layouts[i]);
    s->trial.found_by = "drops";
    s->trial.early_ppm = -1;
    ok = search_try (s, err);
  }
  return ok;
}

static bool search_layouts (search *s, error *err) {
  const tuning *by = s->options->tuning;
  return make_layouts (s, LAYOUT_MIDDLE + 1, LAYOUTS, err) && search_widen (s, err) &&
         (!has_few_ops (s) || search_keep_good (s, (int32_t)tuned (by, TUNE_turns_starts), err));
}

/* ---- the search ---- */

static search_place place_of (const search *s) {
  return (search_place){ s->best.step_ns, s->tried, s->ticks };
}

static int64_t part_of (const search *s, int part) {
  return part ? s->limit_ticks / part : s->limit_ticks;
}

#define RULE_ATTEMPT(name, applies, part) { STRATEGY_ATTEMPT_##name, applies, search_##name, part },
#define STAGE_RUN run_strategies
#define STAGE_SEARCH search
#define STAGE_ASKED search
#define STAGE_OPTIONS options
#define STAGE_GRANT(s, part) (s)->until_ticks = part_of (s, part)
#include "solver/tuning/stage.def"

/* ---- the whole ---- */

static bool take_best (search *s, solution *out, error *err) {
  if (s->best.step_ns == INT64_MAX)
    return is_too_small (s, err);
  if (s->robust && !robust_choose (s->robust, s, &out->robust, err))
    return false;
  return search_cost (s, &s->best, &out->plan, err) &&
         (out->plan || error_set (err, ERR_internal, "the best candidate has no plan"));
}

static void certify (const search *s, solution *out) {
  const variant *v = s->variant;
  certified c = { .lower_bound_ns = out->bound.lower_bound_ns,
                  .bound_by = out->bound.by,
                  .cover = cover_of_rewriting (v->n_sections, v->n_recomputes),
                  .found_by = s->best.found_by,
                  .proof = out->bound.proof,
                  .enough_ns = s->enough_ns,
                  .limit_met = s->stopped ? "stopped" : "ticks" };
  solve_write_certificate (out->plan, &c);
}

/* From a bound to a plan. */
static bool search_plan (search *s, solution *out, error *err) {
  s->lower_bound_ns = out->bound.lower_bound_ns;
  s->enough_ns = solve_enough_of (&s->effort, s->lower_bound_ns);
  s->schedule.trace_digest = s->digest;
  layout_kind first = searches (s) ? LAYOUT_MIDDLE + 1 : LAYOUTS;
  if (!make_layouts (s, LAYOUT_MIDDLE, first, err) || !search_begin (s, err) ||
      !run_strategies (s, err) || !take_best (s, out, err))
    return false;
  certify (s, out);
  out->recipe = (recipe){ s->best.layout->kind, s->best.early_ppm, s->best.by_release };
  return check_plan (s->trace, out->plan, s->scratch, NULL, err);
}

enum { PLACE_PART = 16 }; /* of the ticks, for the offsets of one plan */

bool attempt_solve (const solve_request *q, arena *a, solution *out, error *err) {
  assert (q->trace && q->options && q->options->device);
  static const variant nothing = { 0 };
  const solve_options *o = q->options;
  effort e = solve_effort (o, &q->effort);
  int64_t limit_ticks = e.limit_ticks ? e.limit_ticks : tuned (o->tuning, TUNE_search_swaps_ticks);
  bool program = is_worth_a_program (q);
  rewritten_step *step = NEW (a, 1, rewritten_step, err);
  arena *scratch = arena_made (err);
  robust near = { 0 };
  search s = { .trace = q->trace,
               .variant = q->variant ? q->variant : &nothing,
               .options = o,
               .effort = e,
               .arena = a,
               .scratch = scratch,
               .robust = o->noise_percent ? &near : NULL,
               .limit_ticks = limit_ticks,
               .schedule = { .budget_bytes = e.place_bytes,
                             .host_bytes = o->host_bytes,
                             .granule_bytes = o->device->granule_bytes,
                             .auto_clean = true,
                             .same_places = o->same_places,
                             .arena_granule_bytes = o->arena_granule_bytes,
                             .place_ticks = limit_ticks / PLACE_PART + 1,
                             .held_bytes = o->counted_bytes,
                             .tuning = o->tuning } };
  *out = (solution){ 0 };
  bool ok = scratch && step && variant_rewrite (q->trace, s.variant, o, a, step, err);
  if (ok && program)
    ok = bound_step (&step->step, o, &e, a, &out->bound, err);
  else if (ok)
    out->bound = quick_bound (q->known);
  bool of_use = ok && !(e.beat_ns && out->bound.lower_bound_ns >= e.beat_ns);
  if (of_use) {
    s.rewritten = &step->rw;
    s.singles = program ? &step->step.gaps : NULL;
    s.share = program ? out->bound.share : NULL;
    ok = search_plan (&s, out, err);
    out->ticks = s.ticks;
    out->candidates = s.tried;
  }
  assert (!ok || !of_use || (out->plan->has_certificate && out->plan->has_predicted));
  arena_free (scratch);
  return ok;
}
