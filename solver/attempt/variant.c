/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/variant.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/attempt/parts.h"
#include "solver/attempt/round.h"
#include "solver/place/schedule.h"

static bool same_list (const index_list *a, const index_list *b) {
  return a->count == b->count &&
         (!a->count || memcmp (a->at, b->at, (size_t)a->count * sizeof *a->at) == 0);
}

bool variant_same_drops (const variant *a, const variant *b) {
  bool same = a->n_recomputes == b->n_recomputes;
  for (int32_t i = 0; same && i < a->n_recomputes; i++) {
    const recompute *x = &a->recomputes[i], *y = &b->recomputes[i];
    same = x->before == y->before && same_list (&x->ops, &y->ops) &&
           same_list (&x->replaces, &y->replaces);
  }
  return same;
}

static bool same_cuts (const variant *a, const variant *b) {
  if (a->n_sections != b->n_sections)
    return false;
  for (int32_t i = 0; i < a->n_sections; i++) {
    const section *x = &a->sections[i], *y = &b->sections[i];
    if (x->first != y->first || x->end != y->end || x->parts != y->parts || x->order != y->order)
      return false;
  }
  return true;
}

bool variant_has_cuts_of (const variant *v, const variant *others, int32_t count) {
  bool has = false;
  for (int32_t i = 0; i < count && !has; i++)
    has = same_cuts (v, &others[i]);
  return has;
}

bool variant_rewrite (const trace *t, const variant *v, const solve_options *o, arena *a,
                      rewritten_step *out, error *err) {
  assert (v->sections || v->n_sections == 0);
  assert (v->recomputes || v->n_recomputes == 0);
  return trace_rewrite (t,
                        &(rewriting){ .sections = v->sections,
                                      .n_sections = v->n_sections,
                                      .recomputes = v->recomputes,
                                      .n_recomputes = v->n_recomputes,
                                      .section_ns = o->device->section_ns },
                        a, &out->rw, err) &&
         step_count_bytes (out->rw.trace, o->budget_bytes, a, &out->step, err);
}

/* Counts bytes as any plan may. NULL where that fails; what the rewriting refuses is not legal. */
static rewritten_step *look (const trace *t, const variant *v, const solve_options *o, arena *a,
                             variant_value *out, error *err) {
  error why = { 0 };
  rewritten_step *x = NEW (a, 1, rewritten_step, err);
  *out = (variant_value){ .bound_ns = INT64_MAX, .step_ns = INT64_MAX };
  if (!x)
    return NULL;
  if (!variant_rewrite (t, v, o, a, x, &why)) {
    if (why.code == ERR_input)
      return x;
    if (err && !err->code)
      *err = why;
    return NULL;
  }
  int32_t op;
  const gaps *g = &x->step.gaps;
  out->legal = true;
  out->n_ops = x->rw.trace->n_ops;
  out->compute_ns = trace_total_ns (x->rw.trace);
  out->floor_bytes = o->recompute == RECOMPUTE_ONLY ? g->peak_bytes : g->floor_bytes;
  out->over_bytes = out->floor_bytes > o->budget_bytes ? out->floor_bytes - o->budget_bytes : 0;
  if (out->over_bytes)
    return x;
  int64_t crossing_ns = bound_crossing (g, o->device, &op);
  out->bound_ns = crossing_ns > out->compute_ns ? crossing_ns : out->compute_ns;
  return x;
}

bool variant_look (const trace *t, const variant *v, const solve_options *o, arena *scratch,
                   variant_value *out, error *err) {
  assert (t && v && o->device && out);
  arena_mark mark = arena_here (scratch);
  bool ok = look (t, v, o, scratch, out, err) != NULL;
  arena_back (scratch, mark);
  return ok;
}

bool variant_bound (const trace *t, const variant *v, const solve_options *o, bool rough,
                    arena *scratch, variant_value *out, error *err) {
  assert (t && v && o->device && out);
  arena_mark mark = arena_here (scratch);
  bound b;
  bound_options how = solve_bound_options (o);
  how.classes = 1;
  how.limit_rounds = rough ? -1 : 0;
  how.keep_proof = false;
  how.bound_only = true;
  rewritten_step *x = look (t, v, o, scratch, out, err);
  bool ok = x != NULL;
  if (ok && out->bound_ns != INT64_MAX) {
    error why = { 0 };
    bool fits = bound_of (&x->step.gaps, &how, scratch, &b, &why);
    if (!fits && why.code != ERR_infeasible)
      ok = error_set (err, why.code, "%s", why.text);
    out->bound_ns = fits ? b.lower_bound_ns : INT64_MAX; /* the host cannot hold what must leave */
    out->ticks = fits ? b.stats.ticks * solve_events_per_tick (out->n_ops) : 0;
  }
  arena_back (scratch, mark);
  return ok;
}

/* ---- quick plans ---- */

/* State that the quick plans of one variant share. */
typedef struct quick {
  const trace *trace;
  const variant *variant;
  const rewritten *rewritten;
  const solve_options *options;
  counted_step *step; /* in granules, with the pool */
  int32_t *of;        /* per unit */
  arena *scratch;
  variant_value *out;
} quick;

/* *step_ns is INT64_MAX where it does not fit. */
static bool greedy_plan (const quick *q, round_start start, schedule_options *how, int64_t *step_ns,
                         error *err) {
  const gaps *g = &q->step->gaps;
  const solve_options *o = q->options;
  int64_t room_ppm = tuned (o->tuning, TUNE_quick_room_ppm), *ticks = &q->out->ticks;
  rounding r;
  wish *wishes;
  int32_t count = 0;
  error why = { 0 };
  round_request ask = { .gaps = g,
                        .of = q->of,
                        .device = o->device,
                        .start = start,
                        .room_bytes = units_scale (g->room_bytes, room_ppm, 1000000),
                        .tuning = o->tuning };
  bool ok = round_gaps (&ask, q->scratch, &r, &why) &&
            round_wishes (&r, q->scratch, &wishes, &count, &why);
  *step_ns = INT64_MAX;
  *ticks += g->count / 4 + 2 * (int64_t)g->n_ops + (ok ? 4 * (int64_t)count : 0);
  schedule_request wanted = { .original = q->trace,
                              .rewritten = q->rewritten,
                              .sections = q->variant->sections,
                              .n_sections = q->variant->n_sections,
                              .recomputes = q->variant->recomputes,
                              .n_recomputes = q->variant->n_recomputes,
                              .units = &q->step->units,
                              .device = o->device,
                              .wishes = ok ? wishes : NULL,
                              .n_wishes = count,
                              .options = how };
  if (ok && how->arena_granule_bytes) {
    ok = schedule_guessed (&wanted, q->scratch, step_ns, &why);
    *step_ns = max_of (*step_ns, q->out->compute_ns);
  } else if (ok) {
    plan *p = schedule_simulated (&wanted, q->scratch, q->scratch, ticks, &why);
    *step_ns = p ? p->predicted.step_ns : INT64_MAX;
  }
  return !why.code || why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
}

/* The best of a few becomes out->step_ns. */
static bool greedy_plans (const quick *q, error *err) {
  static const round_start starts[] = { ROUND_LONGEST, ROUND_DOA };
  const solve_options *o = q->options;
  schedule_options how = { .budget_bytes = o->budget_bytes,
                           .host_bytes = o->host_bytes,
                           .granule_bytes = o->device->granule_bytes,
                           .pool_below_bytes = q->step->pool_below_bytes,
                           .trace_digest = "",
                           .auto_clean = true,
                           .same_places = o->same_places,
                           .arena_granule_bytes = o->arena_granule_bytes,
                           .held_bytes = o->counted_bytes,
                           .tuning = o->tuning };
  bool ok = true;
  for (int i = 0; ok && i < 4; i++) {
    arena_mark here = arena_here (q->scratch);
    int64_t step_ns;
    how.early_ppm = tuned (o->tuning, TUNE_quick_early_ppm + (tuning_id)(i % 2));
    ok = greedy_plan (q, starts[i / 2], &how, &step_ns, err);
    if (ok && step_ns < q->out->step_ns)
      q->out->step_ns = step_ns;
    arena_back (q->scratch, here);
  }
  return ok;
}

/* In granules, with parts that nothing is known of. */
static bool count_quick (quick *q, error *err) {
  static const parts_rule blind = { .most = MOST_SECTIONS };
  const solve_options *o = q->options;
  count_rule how = { .budget_bytes = o->budget_bytes, .granule_bytes = o->device->granule_bytes };
  parts_rule rule = blind;
  rule.tuning = o->tuning;
  q->step = NEW (q->scratch, 1, counted_step, err);
  return q->step && schedule_count (q->rewritten->trace, &how, q->scratch, q->step, err) &&
         (q->of = NEW (q->scratch, q->step->units.count, int32_t, err)) &&
         parts_choose (&q->step->gaps, o->device, NULL, &rule, q->scratch, q->of, err);
}

bool variant_try (const trace *t, const variant *v, const solve_options *o, int64_t beat_ns,
                  arena *scratch, variant_value *out, error *err) {
  assert (t && v && o->device && beat_ns >= 0);
  arena_mark mark = arena_here (scratch);
  rewritten_step *x = look (t, v, o, scratch, out, err);
  bool ok = x != NULL,
       hope = ok && out->bound_ns != INT64_MAX && !(beat_ns && out->bound_ns >= beat_ns);
  if (hope) {
    quick q = {
      .trace = t, .variant = v, .rewritten = &x->rw, .options = o, .scratch = scratch, .out = out
    };
    ok = count_quick (&q, err);
    const gaps *g = ok ? &q.step->gaps : NULL;
    int64_t least_bytes = !ok ? 0 : o->recompute == RECOMPUTE_ONLY ? g->peak_bytes : g->floor_bytes;
    if (ok && least_bytes > o->budget_bytes) /* whole granules do not fit, though bytes would */
      out->over_bytes = least_bytes - o->budget_bytes;
    else if (ok && g->peak_bytes <= o->budget_bytes)
      out->step_ns = out->compute_ns;
    else if (ok)
      ok = greedy_plans (&q, err);
  }
  assert (!ok || out->step_ns >= out->compute_ns);
  arena_back (scratch, mark);
  return ok;
}
