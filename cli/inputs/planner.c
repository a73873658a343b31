/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "config.h"

#include "base/clock.h"
#include "cli/inputs/planner.h"

#include <string.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/effort.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/progress.h"
#include "cli/inputs/rewriting.h"
#include "cli/inputs/stopping.h"
#include "trace/simulate/noise.h"

/* ---- the question ---- */

/* Bytes, or a share of the budget; it stands before the budget is set. */
static bool read_reserve (call *c, ask *q) {
  const char *text = call_own_text (c, "reserve");
  enum { ALL_PPM = 1000000 };
  if (text && !strchr (text, '%')) {
    q->reserve_ppm = -1;
    return call_amount (c, "reserve", 0, &q->reserve_bytes);
  }
  return !text || call_amount (c, "reserve", ALL_PPM, &q->reserve_ppm);
}

static bool read_effort (call *c, planner *p) {
  int64_t seed = 1, noise = 0, threads = 1;
  ask *q = &p->ask;
  if (!call_quantity (c, "gap", &q->options.gap_ppm))
    return false;
  if (call_text (c, "gap") && q->options.gap_ppm == 0)
    q->options.gap_ppm = 1; /* 0 stands for the default */
  if (!effort_read (c, LEVEL_NORMAL, &q->options.limit_ticks, &q->options.level) ||
      (call_has_option (c, "noise") && !call_percent (c, "noise", &noise)) ||
      !call_quantity (c, "seconds", &p->seconds) || !call_quantity (c, "seed", &seed) ||
      (call_has_option (c, "jobs") && !call_jobs (c, &threads)))
    return false;
  p->ask.options.threads = (int32_t)threads;
  p->ask.options.seed = (uint64_t)seed;
  p->ask.options.noise_percent = (int32_t)noise;
  p->ask.options.keep_proof = call_flag (c, "proof");
  p->from = call_own_text (c, "from");
  p->ask.options.same_places = call_own_text (c, "same-places");
  return true;
}

/* For developers: other numbers for the search, or without one of its strategies. */
static bool read_tuning (call *c, planner *p) {
  const char *text = call_own_text (c, "tune");
  error wrong = { 0 };
  if (!text)
    return true;
  tuning *t = NEW (c->arena, 1, tuning, &c->err);
  if (!t)
    return false;
  *t = tuning_shipped;
  p->tuned = text;
  p->ask.options.tuning = t;
  return tuning_read (t, text, &wrong) || call_usage (c, "--tune: %s", wrong.text);
}

/* One of a list of words in the order of an enumeration, where the command has the option. */
static bool read_word (call *c, const char *option, const char *const *words, int *value) {
  return !call_has_option (c, option) || call_word (c, option, words, value);
}

static bool read_allowed (call *c, const trace *t, planner *p) {
  int parts = ORDERS_AUTO;
  allowed x;
  if (!rewriting_read (c, t, &x) || !read_word (c, "section-order", section_order_words, &parts) ||
      !placement_read (c, &p->ask.options.placement))
    return false;
  if (parts != ORDERS_AUTO && x.sections == SECTIONS_OFF)
    return call_usage (c,
                       "--section-order %s says how parts run, but no op is cut; give --sections "
                       "auto too",
                       section_order_words[parts]);
  x.section_orders = (sections_orders)parts;
  allowed_into (&x, &p->ask.options);
  return true;
}

bool planner_read (call *c, const trace *t, planner *p) {
  int64_t budget_bytes;
  device d;
  *p = (planner){ 0 };
  if (!trace_must_plan (t, &c->err) || !device_needed (c, t, &d))
    return false;
  p->ask = ask_default (t, &d);
  p->ask.options.log = &c->log;
  return policy_asked_budget (c, t, &d, &budget_bytes) && read_reserve (c, &p->ask) &&
         ask_budget (&p->ask, budget_bytes, &c->err) &&
         device_host (c, &d, &p->ask.options.host_bytes) && read_allowed (c, t, p) &&
         read_effort (c, p) && read_tuning (c, p);
}

bool planner_plain (planner *p, const call *c, const trace *t, const device *d,
                    int64_t budget_bytes, int64_t limit_ticks, error *err) {
  *p = (planner){ .ask = ask_default (t, d) };
  allowed_into (&(allowed)SWAPS_ALONE, &p->ask.options);
  p->ask.options.limit_ticks = limit_ticks;
  p->ask.options.log = &c->log;
  return ask_budget (&p->ask, budget_bytes, err);
}

/* ---- stopping ---- */

static bool stop (void *context) {
  planner *p = context;
  progress_look (p->call);
  p->interrupted = stopping_asked (p->call);
  bool due = stopping_due (p->call);
  p->stopped |= due;
  return due;
}

/* ---- solving ---- */

static const char *made_by (const planner *p, arena *a, error *err) {
  json_writer w;
  bytes text = { 0 };
  const char *out = NULL;
  json_begin_object (&w, 0);
  json_add_text (&w, "ferry", PACKAGE_VERSION);
  json_add_object (&w, "options");
  json_add_int (&w, "budget_bytes", p->ask.asked_bytes);
  if (p->ask.options.level)
    json_add_text (&w, "effort", effort_words[p->ask.options.level]);
  if (p->from)
    json_add_text (&w, "from", p->from);
  json_add_int (&w, "gap_ppm", p->ask.options.gap_ppm);
  json_add_int (&w, "host_bytes", p->ask.options.host_bytes);
  json_add_int (&w, "limit_ticks", p->ask.options.limit_ticks);
  if (p->ask.options.noise_percent)
    json_add_int (&w, "noise_percent", p->ask.options.noise_percent);
  if (p->ask.options.order)
    json_add_text (&w, "order", order_words[p->ask.options.order]);
  if (p->ask.options.placement)
    json_add_text (&w, "placement", places_words[p->ask.options.placement]);
  if (p->ask.options.recompute)
    json_add_text (&w, "recompute", recompute_words[p->ask.options.recompute]);
  json_add_int (&w, "reserve_bytes", p->ask.reserve_bytes);
  if (p->ask.options.same_places)
    json_add_bool (&w, "same_places", true);
  json_add_int (&w, "seconds", p->seconds);
  if (p->ask.options.sections)
    json_add_text (&w, "section_order", section_order_words[p->ask.options.section_orders]);
  if (p->ask.options.sections == SECTIONS_AUTO)
    json_add_text (&w, "sections", "auto");
  else if (p->ask.options.sections)
    json_add_int (&w, "sections", p->ask.options.section_parts);
  if (p->tuned)
    json_add_text (&w, "tune", p->tuned);
  json_close_object (&w);
  json_add_int (&w, "seed", (int64_t)p->ask.options.seed);
  json_close_object (&w);
  if (json_finish (&w, &text, err))
    out = arena_string_n (a, text.data, (size_t)text.size, err);
  bytes_free (&text);
  return out;
}

static void begin_search (call *c, planner *p) {
  stopping_begin (c);
  p->call = c;
  p->stopped = false;
  c->going.best_ns = c->going.bound_ns = 0;
  p->ask.options.stats = &p->stats;
  p->ask.options.stop = stop;
  p->ask.options.stop_context = p;
}

static bool end_search (call *c, planner *p, bool ok) {
  p->interrupted |= stopping_asked (c);
  call_clear_line (c);
  if (!ok && (c->err.code == ERR_infeasible || c->err.code == ERR_limit) && p->interrupted) {
    c->err = (error){ 0 };
    return error_set (&c->err, ERR_interrupted, "stopped before a plan was found");
  }
  return ok;
}

static bool finish (call *c, const planner *p, plan *made, arena *a) {
  certificate *x = &made->certificate;
  if (x->limit_met && (p->interrupted || p->stopped))
    x->limit_met = p->interrupted ? "interrupted" : "seconds";
  return (made->made_by = made_by (p, a, &c->err));
}

bool planner_solve (call *c, planner *p, const trace *t, arena *a, solution *out) {
  begin_search (c, p);
  return end_search (c, p, ask_solve (t, &p->ask, a, out, &c->err)) && finish (c, p, out->plan, a);
}

bool planner_ranks (call *c, planner *p, trace *const *traces, int32_t n, const ranks_question *r,
                    arena *a, ranks_answer *out) {
  ranks_job jobs[HOST_MOST_CARDS];
  for (int32_t i = 0; i < n; i++)
    begin_search (c, &p[i]);
  for (int32_t i = 0; i < r->ranks; i++)
    jobs[i] = (ranks_job){ traces[i % n], &p[i % n].ask };
  bool ok = end_search (c, p, ranks_solve (jobs, r, a, out, &c->err));
  for (int32_t i = 0; ok && i < out->n_plans; i++)
    ok = finish (c, &p[out->plans[i].rank % n], out->plans[i].found.plan, a);
  return ok;
}
