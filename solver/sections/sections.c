/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/sections/sections.h"

#include <assert.h>

enum {
  SHARES = TUNE_cuts_fit_ppm_last - TUNE_cuts_fit_ppm + 1,
  TRIES = TUNE_cuts_parts_last - TUNE_cuts_parts + 1,
  NARROWED = 2,
  ROOM = SECTIONS_FORMS * TRIES + SHARES + NARROWED
};

static bool allowed (const solve_options *o, sections_form form) {
  bool depth = form >= SECTIONS_DEPTH_ALL;
  return o->section_orders == ORDERS_AUTO || depth == (o->section_orders == ORDERS_DEPTH);
}

/* Somebody wants it to end; or the ticks are spent, and something fits. */
static bool is_over (const solve_options *o, const sections_family *f) {
  return solve_stops (o) || (f->count && f->ticks >= f->limit_ticks);
}

static bool better (const variant_value *a, const variant_value *b) {
  if (a->step_ns != b->step_ns)
    return a->step_ns < b->step_ns;
  return a->bound_ns < b->bound_ns;
}

static void put (sections_family *f, const variant *v, const variant_value *value) {
  assert (f->count < ROOM);
  int32_t at = f->count++;
  for (; at > 0 && better (value, &f->values[at - 1]); at--) {
    f->at[at] = f->at[at - 1];
    f->values[at] = f->values[at - 1];
  }
  f->at[at] = *v;
  f->values[at] = *value;
}

/* Values it, and puts it where it belongs. */
static bool consider (const trace *t, const solve_options *o, variant *v, arena *scratch,
                      sections_family *f, error *err) {
  variant_value value;
  if (variant_has_cuts_of (v, f->at, f->count))
    return true;
  int64_t ops = t->n_ops;
  for (int32_t i = 0; i < v->n_sections; i++)
    ops += (v->sections[i].end - v->sections[i].first) * (v->sections[i].parts - 1);
  if (ops > tuned (o->tuning, TUNE_cuts_ops))
    return true;
  f->proposed++;
  int64_t beat_ns = f->count && f->values[0].step_ns != INT64_MAX ? f->values[0].step_ns : 0;
  if (!variant_try (t, v, o, beat_ns, scratch, &value, err))
    return false;
  f->ticks += value.ticks / solve_events_per_tick (value.n_ops);
  if (!value.legal) {
    f->refused++;
    return true;
  }
  if (value.floor_bytes < f->least_floor_bytes)
    f->least_floor_bytes = value.floor_bytes;
  if (value.bound_ns == INT64_MAX) {
    f->too_large++;
    return true;
  }
  if (value.bound_ns < f->least_bound_ns)
    f->least_bound_ns = value.bound_ns;
  put (f, v, &value);
  log_say (o->log, LOG_DETAIL, "cut %s in %lld: %lld sections, %.6g s, at least %.6g s", v->name,
           (long long)v->sections[0].parts, (long long)v->n_sections,
           value.step_ns == INT64_MAX ? -1 : (double)value.step_ns / 1e9,
           (double)value.bound_ns / 1e9);
  return true;
}

/* If nothing fits so far: cuts of single ops, ever finer. */
static bool fit_each (const trace *t, const solve_options *o, arena *a, arena *scratch,
                      sections_family *f, error *err) {
  for (int i = 0; !f->count && i < SHARES; i++) {
    variant v;
    if (!sections_fit (t, o, tuned (o->tuning, TUNE_cuts_fit_ppm + (tuning_id)i), a, &v, err) ||
        (v.n_sections && !consider (t, o, &v, scratch, f, err)))
      return false;
  }
  return true;
}

/* Every form in every number of parts. */
static bool propose_all (const trace *t, const solve_options *o, arena *a, arena *scratch,
                         sections_family *out, error *err) {
  bool fixed = o->sections == SECTIONS_FIXED;
  for (int i = 0; i < (fixed ? 1 : TRIES); i++) {
    int64_t parts = fixed ? o->section_parts : tuned (o->tuning, TUNE_cuts_parts + (tuning_id)i);
    if (parts > t->batch)
      continue;
    for (int form = 0; form < SECTIONS_FORMS; form++) {
      variant v;
      if (!allowed (o, (sections_form)form))
        continue;
      if (!sections_propose (t, o, (sections_form)form, parts, a, &v, err) ||
          (v.n_sections && !consider (t, o, &v, scratch, out, err)))
        return false;
      if (is_over (o, out))
        return true;
    }
  }
  return true;
}

bool sections_narrow (const trace *t, const solve_options *o, narrow_judge *judge, arena *a,
                      arena *scratch, sections_family *f, narrowed *x, error *err) {
  int64_t ticks = f->limit_ticks / tuned (o->tuning, TUNE_cuts_narrow_part);
  if (!narrow_cut (t, o, judge, ticks, a, scratch, x, err))
    return false;
  f->ticks += x->ticks;
  f->proposed += x->tried;
  return true;
}

/* The best of them, each narrowed, before it; the bound of all that fit is theirs still. */
static bool narrow_best (const trace *t, const solve_options *o, arena *a, arena *scratch,
                         sections_family *f, error *err) {
  narrowed at[NARROWED];
  int64_t many = tuned (o->tuning, TUNE_cuts_narrow), count = 0;
  for (; count < many && count < f->count && f->values[count].step_ns < INT64_MAX; count++) {
    at[count] = (narrowed){ .v = f->at[count], .value = f->values[count] };
    if (!sections_narrow (t, o, variant_try, a, scratch, f, &at[count], err))
      return false;
  }
  for (int64_t i = 0; i < count; i++) {
    if (variant_has_cuts_of (&at[i].v, f->at, f->count))
      continue;
    put (f, &at[i].v, &at[i].value);
    log_say (o->log, LOG_DETAIL, "cut %s narrowed: %lld sections, %.6g s, at least %.6g s",
             at[i].v.name, (long long)at[i].v.n_sections, (double)at[i].value.step_ns / 1e9,
             (double)at[i].value.bound_ns / 1e9);
  }
  return true;
}

bool sections_search (const trace *t, const solve_options *o, int64_t limit_ticks, arena *a,
                      sections_family *out, error *err) {
  assert (o->sections != SECTIONS_OFF);
  assert (o->sections != SECTIONS_FIXED || o->section_parts > 0);
  *out = (sections_family){ .least_bound_ns = INT64_MAX,
                            .least_floor_bytes = INT64_MAX,
                            .compute_ns = trace_total_ns (t),
                            .limit_ticks = limit_ticks };
  out->at = NEW (a, ROOM, variant, err);
  out->values = NEW (a, ROOM, variant_value, err);
  arena *scratch = arena_made (err);
  bool ok = scratch && out->at && out->values && propose_all (t, o, a, scratch, out, err) &&
            (is_over (o, out) || fit_each (t, o, a, scratch, out, err)) &&
            narrow_best (t, o, a, scratch, out, err) &&
            (o->recompute == RECOMPUTE_OFF || sections_for_drops (t, o, a, scratch, out, err));
  arena_free (scratch);
  return ok;
}
