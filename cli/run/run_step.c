/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/run_step.h"

#include <string.h>

#include "base/units.h"
#include "cli/remote/remote.h"
#include "cli/run/run_html.h"
#include "executor/watch/answer.h"
#include "executor/watch/steps.h"
#include "executor/watch/unroll.h"
#include "trace/check/check.h"
#include "trace/summary.h"

/* A part of the plan's room is for what steps hand to each other. */
enum { PLAN_TICKS = 400000, MORE_BITS = 3, STAYING_PART = 8 };
/* In thousandths of the present step: a plan that takes more is not worth the change. */
enum { MOST_OF_TIME = 995 };

/* The host has room for what a step leaves to the next, and for what it has from the one before. */
static int64_t crossing_bytes (const steps *s) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < s->n_crossings; i++)
    bytes += 2 * beats_life (&s->beats, s->crossings[i].carried_out)->bytes;
  return bytes;
}

/* The device's and the options' limits, as the planner's options. */
static bool allow (const run_planner *w, const steps *s, solve_options *o) {
  const shim_block *b = w->run->block;
  const shim_config *k = &b->config;
  int64_t crossing = crossing_bytes (s), ticks = PLAN_TICKS;
  if (!call_quantity (w->call, "limit", &ticks))
    return false;
  *o = (solve_options){ .device = w->device,
                        .budget_bytes = b->step_granules * b->step_granule,
                        .host_bytes = k->host_bytes > crossing ? k->host_bytes - crossing : 1,
                        .limit_ticks = ticks << MORE_BITS * b->step_effort,
                        .seed = 1,
                        .same_places = true };
  return true;
}

/* The answer has the time that the program's own step takes, by what the shim does. */
static bool put_prediction (run_planner *w, const steps *s, const steps_map *map, bytes *text) {
  int64_t ns = 0;
  const unroll_question q = { .steps = s,
                              .map = map,
                              .words = text,
                              .device = w->device,
                              .verifies = w->run->block->config.remake == REMAKE_VERIFIED,
                              .checks = w->run->block->step_checks };
  if (!unroll_step_ns (&q, w->call->arena, &ns, &w->call->err))
    return false;
  memcpy (text->data + sizeof ns * PLAN_PREDICTED, &ns, sizeof ns);
  const shim_block *b = w->run->block;
  return b->step_effort == 0 || ns * 1000 < b->step_plan_ns * MOST_OF_TIME ||
         error_set (&w->call->err, ERR_infeasible, "no faster plan was found");
}

/* A plan that was given may have been made for more. */
static bool has_room (run_planner *w, const bytes *text) {
  const shim_block *b = w->run->block;
  int64_t needs;
  char needs_text[UNITS_TEXT], has_text[UNITS_TEXT];
  memcpy (&needs, text->data + sizeof needs * PLAN_GRANULES, sizeof needs);
  return needs <= b->step_granules ||
         error_set (&w->call->err, ERR_infeasible,
                    "the plan takes %s of the device, and the budget leaves %s to it; raise "
                    "--budget, or give a plan for less",
                    units_bytes (needs_text, needs * b->step_granule),
                    units_bytes (has_text, b->step_granules * b->step_granule));
}

static bool write_files (run_planner *w, const steps *s, const trace *t, const plan *p,
                         const steps_map *map, int number) {
  call *c = w->call;
  char path[SHIM_PATH + 64];
  bytes text = { 0 };
  const answer_question q = { t, p, s, map };
  bool good = answer_text (&q, c->arena, &text, &c->err) && has_room (w, &text) &&
              put_prediction (w, s, map, &text) &&
              file_write (program_file (w->run, path, sizeof path, SHIM_PLAN, number), text.data,
                          text.size, FILE_PLAIN, &c->err);
  bytes_free (&text);
  return good;
}

/* For the page that is drawn in the end. */
static bool keep_drawn (const run_planner *w, const trace *t, const plan *p) {
  char path[SHIM_PATH + 64];
  call *c = w->call;
  return !call_text (c, "html") ||
         (plan_store (p, program_file (w->run, path, sizeof path, DRAWN_PLAN, -1), false,
                      &c->err) &&
          trace_store (t, program_file (w->run, path, sizeof path, DRAWN_TRACE, -1), TRACE_PLAIN,
                       &c->err));
}

/* An option's file; NULL: none, or c->err. */
static const char *file_of (const run_planner *w, const char *option) {
  const char *given = call_text (w->call, option);
  return given ? call_rank_path (w->call, given, w->rank) : NULL;
}

static bool keep_files (const run_planner *w, const trace *t, const plan *p) {
  call *c = w->call;
  const char *kept = file_of (w, "keep-plan"), *kept_trace = file_of (w, "keep-trace");
  return !c->err.code && (!kept || plan_store (p, kept, false, &c->err)) &&
         (!kept_trace || trace_store (t, kept_trace, TRACE_PLAIN, &c->err));
}

static const plan *plan_here (run_planner *w, const trace *t, const solve_options *o) {
  solution found;
  return solve (t, o, w->call->arena, &found, &w->call->err) ? found.plan : NULL;
}

/* With tensors made again, as far as it is known what ops write. */
static bool may_remake (const run_planner *w, const trace *t) {
  return w->run->block->config.remake != REMAKE_OFF && !trace_knows_only_touches (t);
}

/* It may be for the step as a profile without --learn has it. */
static const plan *plan_given (run_planner *w, const steps *s, const steps_options *o, trace **t,
                               steps_map *map) {
  call *c = w->call;
  steps_options touched = *o;
  touched.touched = true;
  const plan *p = plan_load (call_text (c, "plan"), NULL, c->arena, &c->err);
  if (!p || check_plan (*t, p, c->arena, NULL, &c->err))
    return p;
  c->err = (error){ 0 };
  *t = steps_trace (s, &touched, c->arena, map, &c->err);
  return *t && check_plan (*t, p, c->arena, NULL, &c->err) ? p : NULL;
}

/* A server that is away or has no plan does not keep the program from one. */
static const plan *plan_there (run_planner *w, const trace *t, const solve_options *o) {
  call *c = w->call;
  char from[SHIM_PATH + 64], to[SHIM_PATH + 64];
  const plan *p = NULL;
  if (trace_store (t, program_file (w->run, from, sizeof from, "asked.json", -1), TRACE_PLAIN,
                   &c->err) &&
      remote_step (c, from, o, program_file (w->run, to, sizeof to, "made.json", -1)))
    p = plan_load (to, NULL, c->arena, &c->err);
  if (p && check_plan (t, p, c->arena, NULL, &c->err)) {
    w->run->block->seen.served_plans++;
    return p;
  }
  call_note (c, "no plan from %s: %s; it is made here", call_text (c, "server"), c->err.text);
  c->err = (error){ 0 };
  return NULL;
}

/* By the server, as long as it has plans for this step; if it has none, one line says so. */
static const plan *plan_made (run_planner *w, const trace *t, const solve_options *o, bool *there) {
  const plan *p = *there ? plan_there (w, t, o) : NULL;
  *there = p != NULL;
  return p ? p : plan_here (w, t, o);
}

static const plan *plan_remaking (run_planner *w, const trace *t, const solve_options *o,
                                  bool *there) {
  solve_options more = *o;
  more.recompute = RECOMPUTE_AUTO;
  return plan_made (w, t, &more, there);
}

run_outcome run_step (run_planner *w, int number) {
  call *c = w->call;
  char path[SHIM_PATH + 64];
  const shim_block *b = w->run->block;
  steps s;
  steps_map map;
  solve_options o;
  const char *given = call_text (c, "plan");
  if (!steps_read (program_file (w->run, path, sizeof path, SHIM_STEP, number), c->arena, &s,
                   &c->err))
    return RUN_NO_PLAN;
  steps_options told = { .name = c->operands[0],
                         .detail = "event pairs around each op, in a run under a budget",
                         .round_bytes = b->step_granule,
                         .most_staying_bytes = b->step_granules * b->step_granule / STAYING_PART };
  trace *t = steps_trace (&s, &told, c->arena, &map, &c->err);
  w->device->granule_bytes = b->step_granule;
  const plan *p = NULL;
  bool there = call_text (c, "server") != NULL;
  if (t)
    w->run->block->step_ops_ns = trace_total_ns (t);
  bool allowed = t && allow (w, &s, &o);
  bool good = allowed && !given && may_remake (w, t) && (p = plan_remaking (w, t, &o, &there)) &&
              write_files (w, &s, t, p, &map, number);
  if (!good) {
    c->err = (error){ 0 };
    p = !allowed ? NULL : given ? plan_given (w, &s, &told, &t, &map) : plan_made (w, t, &o, &there);
    good = p && write_files (w, &s, t, p, &map, number);
  }
  good = good && (!call_text (c, "share") || share_tell_step (c, w->share, t));
  steps_close (&s);
  return !good                                          ? RUN_NO_PLAN
         : keep_files (w, t, p) && keep_drawn (w, t, p) ? RUN_PLANNED
                                                        : RUN_UNKEPT;
}
