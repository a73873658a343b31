/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry export`: a plan's steps for a viewer of traces, or its walk for an executor. */
#include <stdlib.h>

#include "cli/figures/plan_step.h"
#include "plot/chrome.h"
#include "trace/streams.h"
#include "trace/walk/walk.h"

enum { MOST_STEPS = 1000 };

/* Spans of n steps, those of the steady state again and again; what began before the first is left
   out, so that each slice is whole. */
typedef struct many {
  figure_lane lanes[PLAN_LANES];
  figure_span *spans[PLAN_LANES];
  figure_series counters[2];
  chrome_arrow *arrows;
  int32_t n_arrows;
} many;

/* The step's own spans, not wrapped around: of figures they are cut at the end of the step. */
static void add_ops (const plan_step *s, int64_t shift, many *m) {
  const trace *t = s->rewritten.trace;
  figure_lane *lane = &m->lanes[LANE_COMPUTE];
  figure_span *spans = m->spans[LANE_COMPUTE];
  for (int32_t i = 0; i < t->n_ops; i++) {
    const span *at = &s->line.ops[i];
    int64_t free =
        i ? s->line.ops[i - 1].end_ns : s->line.ops[t->n_ops - 1].end_ns - s->line.period_ns;
    figure_span stall = { free + t->ops[i].gap_ns + shift, at->start_ns + shift, t->ops[i].name, 0,
                          TONE_stall };
    if (stall.end > stall.start && stall.start >= 0)
      spans[lane->n_spans++] = stall;
    spans[lane->n_spans++] =
        (figure_span){ at->start_ns + shift, at->end_ns + shift, t->ops[i].name, 0, TONE_compute };
  }
}

static bool add_copies (const plan_step *s, int64_t shift, int64_t end_ns, many *m, arena *a,
                        error *err) {
  const plan *p = s->job.plan;
  const int64_t *bytes = plan_move_bytes (&s->job, a, err);
  for (int32_t i = 0; i < p->n_moves; i++) {
    const span *at[] = { &s->line.outs[i], &s->line.ins[i] };
    const char *name = plan_move_name (&s->job, i, a, err);
    if (!name || !bytes)
      return false;
    for (int k = 0; k < 2; k++) {
      figure_lane *lane = &m->lanes[LANE_OUT + k];
      if (at[k]->end_ns > at[k]->start_ns && at[k]->start_ns + shift >= 0)
        m->spans[LANE_OUT + k][lane->n_spans++] =
            (figure_span){ at[k]->start_ns + shift, at[k]->end_ns + shift, name, bytes[i],
                           TONE_out + k };
    }
    int64_t back_ns = at[1]->start_ns;
    if (back_ns < at[0]->start_ns)
      back_ns += s->line.period_ns; /* it comes back in the next step */
    if (at[0]->end_ns > at[0]->start_ns && at[0]->start_ns + shift >= 0 && back_ns + shift < end_ns)
      m->arrows[m->n_arrows++] =
          (chrome_arrow){ LANE_OUT, LANE_IN, at[0]->start_ns + shift, back_ns + shift };
  }
  return true;
}

static bool add_counters (const plan_step *s, int64_t n_steps, many *m, arena *a, error *err) {
  static const char *const names[] = { "device memory", "away on the host" };
  figure_point *from[2];
  int32_t counts[2] = { s->line.n_memory, 0 };
  from[0] = NEW (a, s->line.n_memory, figure_point, err);
  for (int32_t i = 0; from[0] && i < s->line.n_memory; i++)
    from[0][i] = (figure_point){ .x = s->line.memory[i].at_ns, .y = s->line.memory[i].bytes };
  if (!from[0] || !plan_away (&s->job, &s->line, a, &from[1], &counts[1], err))
    return false;
  for (int k = 0; k < 2; k++) {
    figure_point *points = NEW (a, counts[k] * n_steps, figure_point, err);
    if (!points)
      return false;
    int32_t n = 0;
    for (int64_t step = 0; step < n_steps; step++)
      for (int32_t i = 0; i < counts[k]; i++, n++) {
        points[n] = from[k][i];
        points[n].x += step * s->line.period_ns;
      }
    m->counters[k] = (figure_series){ .name = names[k], .points = points, .n_points = n };
  }
  return true;
}

static bool make_chrome (call *c, const plan_step *s, int64_t n_steps, bytes *out) {
  many m = { .n_arrows = 0 };
  int64_t room[] = { 2 * n_steps * s->rewritten.trace->n_ops, n_steps * s->job.plan->n_moves,
                     n_steps * s->job.plan->n_moves };
  int64_t end_ns;
  if (!streams_must_be_one (s->rewritten.trace, "a timeline for Perfetto", &c->err))
    return false;
  if (__builtin_mul_overflow (s->line.period_ns, n_steps, &end_ns) || end_ns > MOST_NS ||
      room[0] > INT32_MAX / 2 || room[1] > INT32_MAX / 2)
    return call_usage (c, "--steps: %lld of these steps are too long or too many; ask for fewer",
                       (long long)n_steps);
  m.arrows = NEW (c->arena, room[1], chrome_arrow, &c->err);
  for (int i = 0; i < PLAN_LANES; i++) {
    if (!ALLOC (c->arena, m.spans[i], room[i], &c->err) || !m.arrows)
      return false;
    m.lanes[i] = s->page.figures[FIGURE_LANES].lanes[i];
    m.lanes[i].spans = m.spans[i];
    m.lanes[i].n_spans = 0;
  }
  for (int64_t step = 0; step < n_steps; step++) {
    add_ops (s, step * s->line.period_ns, &m);
    if (!add_copies (s, step * s->line.period_ns, end_ns, &m, c->arena, &c->err))
      return false;
  }
  if (!add_counters (s, n_steps, &m, c->arena, &c->err))
    return false;
  for (int i = 0; i < PLAN_LANES; i++)
    qsort (m.spans[i], (size_t)m.lanes[i].n_spans, sizeof *m.spans[i], plan_compare_spans);
  chrome_trace t = { .title = s->page.title,
                     .lanes = m.lanes,
                     .counters = m.counters,
                     .arrows = m.arrows,
                     .facts = s->page.facts,
                     .n_lanes = PLAN_LANES,
                     .n_counters = 2,
                     .n_arrows = m.n_arrows,
                     .n_facts = s->page.n_facts };
  return chrome_text (&t, out, &c->err);
}

static bool print_json (call *c, const char *path, int64_t n_steps, int64_t size) {
  json_writer w;
  json_begin_object (&w, 1);
  json_add_int (&w, "bytes", size);
  json_add_text (&w, "output", path);
  if (n_steps > 0)
    json_add_int (&w, "steps", n_steps);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static bool export_chrome (call *c, const char *path) {
  plan_step s;
  int64_t n_steps = 2;
  bytes text = { 0 };
  bool ok = call_json_beside (c, "chrome") && call_quantity (c, "steps", &n_steps) &&
            plan_step_read (c, c->operands[0], c->operands[1], &s) &&
            make_chrome (c, &s, n_steps, &text) && call_write (c, path, text.data, text.size) &&
            (!c->json || print_json (c, path, n_steps, text.size));
  bytes_free (&text);
  return ok;
}

static bool export_walk (call *c, const char *path) {
  plan_step s;
  walk w;
  bytes text = { 0 };
  bool ok = call_json_beside (c, "walk") &&
            plan_step_read (c, c->operands[0], c->operands[1], &s) &&
            walk_make (&s.rewritten, s.job.plan, c->arena, &w, &c->err) &&
            walk_text (&w, s.job.original, &text, &c->err) &&
            call_write (c, path, text.data, text.size) &&
            (!c->json || print_json (c, path, 0, text.size));
  bytes_free (&text);
  return ok;
}

static int run (call *c) {
  const char *chrome = call_text (c, "chrome"), *walk_path = call_text (c, "walk");
  if (!chrome == !walk_path) {
    call_usage (c, "one file is written: give either --chrome or --walk");
    return call_failed (c);
  }
  if (walk_path && call_text (c, "steps")) {
    call_usage (c, "--steps is for a trace viewer; a walk is one step");
    return call_failed (c);
  }
  bool ok = walk_path ? export_walk (c, walk_path) : export_chrome (c, chrome);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  { 0, "chrome", "FILE", "trace events as JSON, which ui.perfetto.dev and chrome://tracing open" },
  { 0, "walk", "FILE", "the plan's ops and copies, with their waits and places, as JSON" },
  { 0,
    "steps",
    "N",
    "number of steps in a file for a trace viewer; default: 2",
    { UNITS_COUNT, 1, MOST_STEPS } },
  OPTIONS_END,
};

const cli_command command_export = {
  .name = "export",
  .says = "write a plan's steps for a trace viewer or an executor",
  .operands = "TRACE PLAN",
  .least = 2,
  .most = 2,
  .about =
      "--chrome writes the times of a plan for a trace viewer: a row each for ops, copies out and "
      "copies in, with the stalls; counters of device memory and of what is away on the host; an "
      "arrow from each copy out to its copy in. --walk writes what an executor needs: ops and "
      "copies in an order in which one thread can issue them, what each waits for and where its "
      "bytes lie. trace/walk/format.md defines the file.\n",
  .options = options,
  .json = true,
  .run = run,
};
