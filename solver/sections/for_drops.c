/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cuts for steps that drop as well.  What a cut takes without drops says little about them: a
   chain over the whole batch saves most of the copies, but a few parts of the fullest ops may be
   all that drops cannot do. */
#include "base/order.h"
#include "solver/recompute/recompute.h"
#include "solver/sections/sections.h"

enum { WORK_A_TICK = 64, NEAR = 100 };

/* By the quick bound of all that it may drop and swap, which lies a few percent below what its
   program says. */
static bool judge (const trace *t, const variant *v, const solve_options *o, int64_t beat_ns,
                   arena *scratch, variant_value *out, error *err) {
  if (!variant_look (t, v, o, scratch, out, err))
    return false;
  bool hope = out->bound_ns != INT64_MAX && !(beat_ns && out->compute_ns >= beat_ns);
  int64_t ops = out->n_ops, work = min_of (3 * ops * ops, tuned (o->tuning, TUNE_crossing_work));
  out->ticks = ops + (hope ? work / WORK_A_TICK : 0);
  return !hope || recompute_bound (t, v, o, scratch, &out->step_ns, err);
}

static bool is_known (const sections_family *f, const variant *v) {
  return variant_has_cuts_of (v, f->for_drops, f->n_for_drops);
}

static void put (sections_family *f, int32_t at, const narrowed *x) {
  f->for_drops[at] = x->v;
  f->drops_values[at] = x->value;
}

/* In order of what they take, as long as there is room. */
static void put_sorted (sections_family *f, const narrowed *x) {
  int32_t at = f->n_for_drops;
  while (at > 0 && x->value.step_ns < f->drops_values[at - 1].step_ns)
    at--;
  if (at == SECTIONS_BY_DROPS || is_known (f, &x->v))
    return;
  f->n_for_drops += f->n_for_drops < SECTIONS_BY_DROPS;
  for (int32_t i = f->n_for_drops - 1; i > at; i--) {
    f->for_drops[i] = f->for_drops[i - 1];
    f->drops_values[i] = f->drops_values[i - 1];
  }
  put (f, at, x);
}

typedef struct judging {
  const trace *t;
  const solve_options *o;
  arena *arena, *scratch;
  sections_family *f;
  narrowed whole; /* nothing is cut */
} judging;

static bool judge_one (const judging *j, narrowed *x, error *err) {
  if (!judge (j->t, &x->v, j->o, 0, j->scratch, &x->value, err))
    return false;
  j->f->ticks += x->value.ticks / solve_events_per_tick (x->value.n_ops);
  return true;
}

/* The best, and what they become with fewer ops cut. */
static bool narrow_best (const judging *j, error *err) {
  sections_family *f = j->f;
  narrowed best[SECTIONS_BY_DROPS];
  int32_t count = f->n_for_drops;
  for (int32_t i = 0; i < count; i++) {
    best[i] = (narrowed){ .v = f->for_drops[i], .value = f->drops_values[i] };
    if (!sections_narrow (j->t, j->o, judge, j->arena, j->scratch, f, &best[i], err))
      return false;
  }
  for (int32_t i = 0; i < count; i++)
    put_sorted (f, &best[i]);
  return true;
}

/* Drops alone may come so near to compute that no cut is worth its time. */
static bool pays (const judging *j) {
  int64_t compute_ns = trace_total_ns (j->t);
  return j->whole.value.step_ns > compute_ns + compute_ns / NEAR;
}

/* Those that bring nothing where drops are allowed go. */
static void keep_useful (const judging *j) {
  sections_family *f = j->f;
  while (f->n_for_drops && f->drops_values[f->n_for_drops - 1].step_ns >= j->whole.value.step_ns)
    f->n_for_drops--;
  f->n_by_drops = f->n_for_drops;
}

/* Bytes may not see what a cut is for: where granules are few, for example. */
static bool add_best (const judging *j, error *err) {
  sections_family *f = j->f;
  int32_t end = f->n_for_drops + SECTIONS_FOR_DROPS - SECTIONS_BY_DROPS;
  for (int32_t i = 0; i < f->count && i < SECTIONS_FOR_DROPS && f->n_for_drops < end; i++) {
    narrowed x = { .v = f->at[i] };
    if (is_known (f, &x.v))
      continue;
    if (!judge_one (j, &x, err))
      return false;
    put (f, f->n_for_drops++, &x);
  }
  return true;
}

/* More parts cost more, so those that are too many for a program are not looked at. */
static bool judge_all (const judging *j, error *err) {
  sections_family *f = j->f;
  for (int32_t i = 0; i < f->count; i++) {
    narrowed x = { .v = f->at[i] };
    if (f->values[i].n_ops > tuned (j->o->tuning, TUNE_attempt_program_ops))
      continue;
    if (!judge_one (j, &x, err))
      return false;
    if (x.value.step_ns < INT64_MAX)
      put_sorted (f, &x);
  }
  return true;
}

bool sections_for_drops (const trace *t, const solve_options *o, arena *a, arena *scratch,
                         sections_family *f, error *err) {
  judging j = { t, o, a, scratch, f, { .v = { .name = "as it is" } } };
  if (!judge_one (&j, &j.whole, err) ||
      (f->count && pays (&j) && (!judge_all (&j, err) || !narrow_best (&j, err))))
    return false;
  keep_useful (&j);
  if (!add_best (&j, err))
    return false;
  for (int32_t i = 0; i < f->n_for_drops; i++)
    log_say (o->log, LOG_DETAIL, "cut %s with drops: %d sections, at least %.6g s, whole %.6g s",
             f->for_drops[i].name, f->for_drops[i].n_sections,
             (double)f->drops_values[i].step_ns / 1e9,
             j.whole.value.step_ns == INT64_MAX ? -1 : (double)j.whole.value.step_ns / 1e9);
  return true;
}
