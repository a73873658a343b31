/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/recompute/recompute.h"

#include <assert.h>

#include "base/units.h"
#include "solver/attempt/narrow.h"
#include "solver/recompute/find.h"

/* ---- the strategies that are not files of their own ---- */

static bool with_prefixes (finding *f, error *err) {
  bool ok = find_greedy (f, err) && find_try_kept (f, find_number (f, TUNE_drops_try), err);
  f->best.name = "greedy recompute";
  return ok;
}

static bool with_fit (finding *f, error *err) {
  bool ok = find_fit (f, err);
  f->best.name = "greedy recompute";
  return ok;
}

static bool with_segments (finding *f, error *err) {
  bool ok = find_segments (f, f->ticks + (f->limit_ticks - f->ticks) / f->part, err);
  log_say (f->o->log, LOG_DETAIL, "drops: %d candidates, %d sets, %.6g s, %lld ticks", f->n_drops,
           f->priced, (double)f->kept[0].ns / 1e9, (long long)f->ticks);
  return ok;
}

static bool with_online (finding *f, error *err) {
  return find_online (f, err);
}

static bool with_climb (finding *f, error *err) {
  int64_t left = f->limit_ticks - f->ticks;
  return find_climb (f, &f->kept[0], f->ticks + left / f->part, err);
}

static bool with_room (finding *f, error *err) {
  return find_room (f, err);
}

static bool with_spare (finding *f, error *err) {
  narrowed n = { .v = f->best, .value = f->value };
  if (!narrow_drops (f->t, f->o, (f->limit_ticks - f->ticks) / f->part, f->arena, f->scratch, &n,
                     err))
    return false;
  f->best = n.v;
  f->value = n.value;
  f->ticks += n.ticks;
  return true;
}

/* ---- when the strategies apply ---- */

static bool always (finding *f) {
  return f != NULL;
}

static bool fits_not (finding *f) {
  return f->value.step_ns == INT64_MAX;
}

/* The first sets were not enough, so the others were looked for. */
static bool goes_on (finding *f) {
  f->looks |= !find_is_enough (f);
  return !find_is_enough (f);
}

static bool has_looked (finding *f) {
  return goes_on (f) || f->looks;
}

/* Ops that run again may be why. */
static bool is_slow (finding *f) {
  return f->value.step_ns < INT64_MAX && f->best.n_recomputes && !find_is_enough (f);
}

/* ---- the search ---- */

static search_place place_of (const finding *f) {
  int64_t events = solve_events_per_tick (f->t->n_ops);
  return (search_place){ f->value.step_ns, f->priced, f->ticks * events };
}

#define RULE_DROPS(name, applies, part) { STRATEGY_DROPS_##name, applies, with_##name, part },
#define STAGE_RUN run_strategies
#define STAGE_SEARCH finding
#define STAGE_ASKED finding
#define STAGE_OPTIONS o
#define STAGE_GRANT(f, parts) (f)->part = (parts)
#include "solver/tuning/stage.def"

/* ---- the whole ---- */

bool recompute_search (const recompute_request *q, arena *a, recompute_result *out, error *err) {
  assert (q->trace && q->options);
  assert (q->options->recompute != RECOMPUTE_OFF);
  static const variant nothing = { .name = "swap" };
  const solve_options *o = q->options;
  finding f = { .t = q->trace,
                .cut = q->cut ? q->cut : &nothing,
                .o = o,
                .arena = a,
                .guide = q->guide,
                .keeps = q->keeps,
                .keeps_first = q->keeps && q->keeps_first,
                .enough_ns = q->enough_ns,
                .bold_ns = INT64_MAX,
                .stall_ppm = 1000000 };
  f.limit_ticks = q->limit_ticks   ? q->limit_ticks
                  : o->limit_ticks ? o->limit_ticks
                                   : tuned (o->tuning, TUNE_search_swaps_ticks);
  f.best = f.bold = *f.cut;
  f.bold_value.step_ns = INT64_MAX;
  f.room_bytes = units_scale (o->budget_bytes, find_number (&f, TUNE_drops_room_ppm), 1000000);
  f.scratch = arena_made (err);
  bool ok = f.scratch && find_begin (&f, err) &&
            variant_try (f.t, f.cut, o, 0, f.scratch, &f.value, err) && run_strategies (&f, err);
  *out = (recompute_result){ .best = f.best,
                             .value = f.value,
                             .bold = f.bold,
                             .bold_value = f.bold_value,
                             .candidates = f.n_drops,
                             .missed = f.missed,
                             .tried = f.priced,
                             .ticks = f.ticks };
  assert (!ok || f.value.step_ns == INT64_MAX || f.value.step_ns >= f.value.compute_ns);
  arena_free (f.scratch);
  return ok;
}
