/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/plan_step.h"

#include "cli/figures/picture_files.h"
#include "cli/figures/step_timeline.h"

#include "trace/check/check.h"

bool plan_step_of (call *c, const trace *t, const plan *p, const char *path, plan_step *s) {
  *s = (plan_step){ .job = { .original = t, .plan = p } };
  if (!check_plan (t, p, c->arena, NULL, &c->err) ||
      !plan_rewrite (t, p, c->arena, &s->rewritten, &c->err)) {
    error_in_file (&c->err, path);
    return false;
  }
  s->job.rewritten = &s->rewritten;
  sim_options o = { .timeline_arena = c->arena };
  return simulate (&s->job, 1, &o, c->arena, &s->costs, &s->line, &c->err) &&
         plan_figure (&s->job, &s->costs, &s->line, c->arena, &s->page, &c->err);
}

bool plan_step_read (call *c, const char *trace_path, const char *plan_path, plan_step *s) {
  const trace *t = call_trace (c, trace_path);
  const plan *p = t ? call_plan (c, plan_path) : NULL;
  return p && plan_step_of (c, t, p, plan_path, s);
}

bool plan_step_draw (call *c, plan_step *s, bool *any) {
  const char *to = call_own_text (c, "timeline");
  bytes text = { 0 };
  bool ok = true, pictures = false;
  if (to || call_own_text (c, "html"))
    ok = step_timeline (s, c->arena, &text, &c->err);
  s->page.data = text.data;
  ok = ok && picture_files (c, &s->page, &pictures) &&
       (!to || call_write (c, to, text.data, text.size));
  s->page.data = NULL;
  bytes_free (&text);
  *any = pictures || to;
  return ok;
}

bool plan_step_json (call *c, const plan_step *s) {
  json_writer w;
  json_begin (&w, 1);
  predicted_write (&w, NULL, &s->costs);
  return call_print_json (c, &w);
}
