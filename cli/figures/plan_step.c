/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/plan_step.h"

#include "trace/check/check.h"

bool plan_step_read (call *c, const char *trace_path, const char *plan_path, plan_step *s) {
  *s = (plan_step){ .job.original = call_trace (c, trace_path) };
  s->job.plan = s->job.original ? call_plan (c, plan_path) : NULL;
  if (!s->job.plan)
    return false;
  if (!check_plan (s->job.original, s->job.plan, c->arena, NULL, &c->err) ||
      !plan_rewrite (s->job.original, s->job.plan, c->arena, &s->rewritten, &c->err)) {
    error_in_file (&c->err, plan_path);
    return false;
  }
  s->job.rewritten = &s->rewritten;
  sim_options o = { .timeline_arena = c->arena };
  return simulate (&s->job, 1, &o, c->arena, &s->costs, &s->line, &c->err) &&
         plan_figure (&s->job, &s->costs, &s->line, c->arena, &s->page, &c->err);
}

bool plan_step_json (call *c, const plan_step *s) {
  json_writer w;
  json_begin (&w, 1);
  predicted_write (&w, &s->costs);
  return call_print_json (c, &w);
}
