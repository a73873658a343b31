/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Curves, the smallest memory, and jobs that share cards. */
#include "config.h"

#include "library/inner.h"

#include <stdlib.h>

#include "base/order.h"

#include "solver/fleet/cards.h"
#include "solver/fleet/curve.h"
#include "solver/fleet/needs.h"
#include "trace/summary.h"

#define MOST_BYTES ((int64_t)1 << 53)

struct ferry_curve {
  arena *arena;
  device device;
  curve curve;
};

struct ferry_packing {
  arena *arena;
  int n_jobs;
  cards_answer answer;
};

/* All that a search of one budget takes, but for what no curve has. */
static bool suits_a_curve (const ferry_options *x, error *err) {
  return (!x->noise_percent && !x->same_places) ||
         error_set (err, ERR_usage, "noise_percent and same_places are for one budget: solve it");
}

static curve_options curve_ask (const ferry_options *x, const ask *q, const trace *t) {
  return (curve_options){ .device = &q->device,
                          .host_bytes = q->options.host_bytes,
                          .limit_ticks = q->options.limit_ticks,
                          .gap_ppm = q->options.gap_ppm,
                          .reserve_ppm = x->has_reserve ? 0 : reserve_ppm (t),
                          .reserve_bytes = x->has_reserve ? x->reserve_bytes : 0,
                          .seed = q->options.seed,
                          .level = q->options.level,
                          .allowed = library_allowed (x, t),
                          .placement = library_places (x),
                          .log = q->options.log,
                          .stop = q->options.stop,
                          .stop_context = q->options.stop_context };
}

static bool are_possible (const int64_t *budgets, int n, error *err) {
  for (int i = 0; i < n; i++)
    if (budgets[i] <= 0 || budgets[i] > MOST_BYTES)
      return error_set (err, ERR_usage, "budget %d is %lld bytes: 1 to 2^53", i,
                        (long long)budgets[i]);
  return true;
}

static bool budgets_of (const ferry_trace *t, const curve_options *o, const int64_t **budgets,
                        int *n, arena *a, error *err) {
  int64_t floor, peak, *made;
  int32_t count;
  summary s;
  if (*n < 1 || *n > 512)
    return error_set (err, ERR_usage, "%d budgets: 1 to 512", *n);
  if (*budgets)
    return are_possible (*budgets, *n, err);
  if (!curve_range (t->trace, o->device, a, &floor, &peak, err) ||
      !summary_of (t->trace, a, &s, err))
    return false;
  if (o->allowed.sections != SECTIONS_OFF)
    floor = min_of (floor, s.floor_sections_bytes);
  if (!curve_even (curve_gross (o, floor), curve_gross (o, peak), o->device->granule_bytes,
                   *n < 2 ? 2 : *n, a, &made, &count, err))
    return false;
  *budgets = made;
  *n = count;
  return true;
}

ferry_curve *ferry_curve_of (const ferry_trace *t, const ferry_options *o, const int64_t *budgets,
                             int n_budgets, ferry_error *told) {
  error err = { 0 };
  ask q;
  library_speaker speaker;
  ferry_curve *c = NULL;
  if (library_ask (t, o, &speaker, &q, &err) && suits_a_curve (&speaker.options, &err) &&
      !(c = calloc (1, sizeof *c)))
    error_memory (&err);
  if (c && (c->arena = library_arena (&err))) {
    curve_options how = curve_ask (&speaker.options, &q, t->trace);
    if (!budgets_of (t, &how, &budgets, &n_budgets, c->arena, &err) ||
        !curve_of (t->trace, &how, budgets, n_budgets, c->arena, &c->curve, &err))
      c->curve.count = 0;
  }
  if (library_told (told, &err))
    return c;
  ferry_curve_free (c);
  return NULL;
}

int ferry_curve_count (const ferry_curve *c) {
  return c ? c->curve.count : -1;
}

static ferry_point point_of (const curve_point *p) {
  ferry_point out = { .budget_bytes = p->budget_bytes,
                      .lower_bound_ns = p->lower_bound_ns,
                      .step_ns = -1,
                      .host_peak_bytes = -1,
                      .d2h_bytes = -1,
                      .h2d_bytes = -1 };
  if (p->plan) {
    const predicted *q = &p->plan->predicted;
    out.step_ns = q->step_ns;
    out.host_peak_bytes = q->host_peak_bytes;
    out.d2h_bytes = q->d2h_bytes;
    out.h2d_bytes = q->h2d_bytes;
    out.gap = p->lower_bound_ns > 0 ? (double)q->step_ns / (double)p->lower_bound_ns - 1 : 0;
  }
  return out;
}

bool ferry_curve_point (const ferry_curve *c, int i, ferry_point *out, ferry_error *told) {
  error err = { 0 };
  if (library_given (c, "the curve", &err) && library_sized (out, sizeof *out, "the point", &err)) {
    if (i < 0 || i >= c->curve.count)
      error_set (&err, ERR_usage, "there is no point %d, but 0 to %d", i, c->curve.count - 1);
    else {
      ferry_point made = point_of (&c->curve.points[i]);
      library_out (out, &made, sizeof made);
    }
  }
  return library_told (told, &err);
}

char *ferry_curve_json (const ferry_curve *c, ferry_error *told) {
  error err = { 0 };
  json_writer w;
  bytes text = { 0 };
  char *made = NULL;
  if (library_given (c, "the curve", &err)) {
    json_begin_object (&w, 2);
    json_add_int (&w, "baseline_ns", c->curve.baseline_ns);
    json_add_int (&w, "floor_bytes", c->curve.floor_bytes);
    json_add_int (&w, "knee", c->curve.knee);
    json_add_int (&w, "needs_bytes", c->curve.peak_bytes);
    json_add_array (&w, "points");
    for (int32_t i = 0; i < c->curve.count; i++)
      curve_point_write (&w, &c->curve, i);
    json_close_array (&w);
    json_close_object (&w);
    if (json_finish (&w, &text, &err))
      made = library_text (&text, NULL, &err);
  }
  return library_told (told, &err) ? made : NULL;
}

void ferry_curve_free (ferry_curve *c) {
  if (c)
    arena_free (c->arena);
  free (c);
}

ferry_plan *ferry_min_memory (const ferry_trace *t, const ferry_options *o, int64_t slowdown_ppm,
                              int64_t *none_below_bytes, ferry_error *told) {
  error err = { 0 };
  ask q;
  library_speaker speaker;
  min_memory m;
  ferry_plan *p = NULL;
  arena *a = library_ask (t, o, &speaker, &q, &err) && suits_a_curve (&speaker.options, &err)
                 ? library_arena (&err)
                 : NULL;
  if (a && (slowdown_ppm < 0 || slowdown_ppm > 100000000))
    error_set (&err, ERR_usage, "a slowdown of %lld millionths", (long long)slowdown_ppm);
  else if (a) {
    curve_options how = curve_ask (&speaker.options, &q, t->trace);
    if (min_memory_of (t->trace, &how, slowdown_ppm, 0, a, &m, &err)) {
      if (none_below_bytes)
        *none_below_bytes = m.none_below_bytes;
      if (m.plan)
        p = library_plan (m.plan, &err);
      else
        error_set (&err, ERR_infeasible, "no plan was found that is so fast");
    }
  }
  arena_free (a);
  return library_told (told, &err) ? p : NULL;
}

/* ---- packing ---- */

static bool pack_into (ferry_packing *p, const ferry_trace *const *jobs,
                       const ferry_device *const *cards, int n_cards, const library_speaker *s,
                       error *err) {
  const ferry_options *x = &s->options;
  cards_job named[CARDS_MOST_JOBS];
  device *at = NEW (p->arena, n_cards, device, err);
  if (!at)
    return false;
  for (int i = 0; i < n_cards; i++) {
    if (!library_given (cards[i], "a card", err))
      return false;
    at[i] = cards[i]->device;
    if (x->budget_bytes > at[i].memory_bytes - at[i].reserved_bytes)
      return error_set (err, ERR_usage, "the budget is %lld bytes, but %s leaves %lld free",
                        (long long)x->budget_bytes, at[i].name,
                        (long long)(at[i].memory_bytes - at[i].reserved_bytes));
  }
  for (int i = 0; i < p->n_jobs; i++) {
    if (!library_given (jobs[i], "a job", err) || !trace_must_plan (jobs[i]->trace, err) ||
        !library_parts (x, jobs[i]->trace, err))
      return false;
    const trace *t = jobs[i]->trace;
    named[i] = (cards_job){ t->name, t, library_allowed (x, t) };
  }
  int64_t ticks = x->limit_ticks ? x->limit_ticks : cards_level_ticks[x->effort];
  cards_options how = { .cards = at,
                        .n_cards = n_cards,
                        .memory_bytes = x->budget_bytes,
                        .host_bytes = x->host_bytes,
                        .limit_ticks = ticks,
                        .sampling = { .device = at,
                                      .limit_ticks =
                                          ticks < CARDS_SAMPLE_TICKS ? ticks : CARDS_SAMPLE_TICKS,
                                      .gap_ppm = x->gap_ppm,
                                      .seed = x->seed,
                                      .log = x->progress ? &s->log : NULL,
                                      .stop = x->stop,
                                      .stop_context = x->stop_context } };
  return cards_place_jobs (named, p->n_jobs, &how, p->arena, &p->answer, err);
}

ferry_packing *ferry_pack (const ferry_trace *const *jobs, int n_jobs,
                           const ferry_device *const *cards, int n_cards, const ferry_options *o,
                           ferry_error *told) {
  error err = { 0 };
  ferry_packing *p = NULL;
  library_speaker speaker;
  bool ok = library_given (jobs, "the jobs", &err) && library_given (cards, "the cards", &err) &&
            library_options (o, &speaker, &err);
  if (ok && (n_jobs < 1 || n_jobs > CARDS_MOST_JOBS || n_cards < 1 || n_cards > CARDS_MOST))
    ok = error_set (&err, ERR_usage, "%d jobs on %d cards: at most %d on %d", n_jobs, n_cards,
                    CARDS_MOST_JOBS, CARDS_MOST);
  if (ok && !(p = calloc (1, sizeof *p)))
    error_memory (&err);
  if (p && (p->arena = library_arena (&err))) {
    p->n_jobs = n_jobs;
    if (!pack_into (p, jobs, cards, n_cards, &speaker, &err))
      p->n_jobs = 0;
  }
  if (library_told (told, &err))
    return p;
  ferry_pack_free (p);
  return NULL;
}

static const cards_place *place_at (const ferry_packing *p, int job, error *err) {
  if (!library_given (p, "the packing", err))
    return NULL;
  if (job >= 0 && job < p->n_jobs)
    return &p->answer.places[job];
  error_set (err, ERR_usage, "there is no job %d, but 0 to %d", job, p->n_jobs - 1);
  return NULL;
}

bool ferry_pack_place (const ferry_packing *p, int job, ferry_place *out, ferry_error *told) {
  error err = { 0 };
  const cards_place *at = place_at (p, job, &err);
  if (at && library_sized (out, sizeof *out, "the place", &err)) {
    ferry_place made = { .card = at->card,
                         .budget_bytes = at->budget_bytes,
                         .share_ppm = at->share_ppm,
                         .together_ns = at->together_ns,
                         .baseline_ns = at->baseline_ns,
                         .reason = at->reason };
    library_out (out, &made, sizeof made);
  }
  return library_told (told, &err);
}

ferry_plan *ferry_pack_plan (const ferry_packing *p, int job, ferry_error *told) {
  error err = { 0 };
  const cards_place *at = place_at (p, job, &err);
  ferry_plan *out = NULL;
  if (at && !at->plan)
    error_set (&err, ERR_infeasible, "the job has no place: %s", at->reason ? at->reason : "");
  else if (at)
    out = library_plan (at->plan, &err);
  return library_told (told, &err) ? out : NULL;
}

void ferry_pack_free (ferry_packing *p) {
  if (p)
    arena_free (p->arena);
  free (p);
}
