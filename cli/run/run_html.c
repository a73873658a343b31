/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/run_html.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/order.h"
#include "base/units.h"
#include "cli/figures/plan_step.h"
#include "cli/run/run_last.h"
#include "plot/html.h"

enum { MOST_FACTS = 16 };

/* By lane: the streams first, and by time. */
static int by_lane (const void *x, const void *y) {
  const last_span *a = x, *b = y;
  int64_t p = (a->lane + LAST_LANES - LAST_STREAM) % LAST_LANES;
  int64_t q = (b->lane + LAST_LANES - LAST_STREAM) % LAST_LANES;
  return ORDER (p, q) ?: ORDER (a->start_ns, b->start_ns);
}

static figure_tone tone_of (int64_t lane) {
  return lane == LAST_OUT ? TONE_out : lane == LAST_IN ? TONE_in : TONE_compute;
}

/* Spans of one lane do not overlap: events may be rounded so that they seem to. */
static void add_span (figure_lane *lane, figure_span *to, const last_span *s, int64_t origin) {
  int64_t start = s->start_ns - origin, end = start + s->ns;
  int64_t before = lane->n_spans > 0 ? to[-1].end : start;
  start = start < before ? before : start;
  *to = (figure_span){ start, end < start ? start : end, s->name, s->bytes, tone_of (s->lane) };
  lane->n_spans++;
}

static bool seen_lanes (call *c, last_step *s, figure *f) {
  figure_span *spans = NEW (c->arena, s->n_spans + 1, figure_span, &c->err);
  figure_lane *lanes = NEW (c->arena, LAST_LANES, figure_lane, &c->err);
  int64_t origin = 0, end = 1;
  if (!spans || !lanes)
    return false;
  qsort (s->spans, (size_t)s->n_spans, sizeof *s->spans, by_lane);
  for (int32_t i = 0; i < s->n_spans; i++)
    origin = s->spans[i].start_ns < origin ? s->spans[i].start_ns : origin;
  *f = (figure){ .id = "seen",
                 .title = "The last planned step, as it was seen",
                 .x = { "time", FIGURE_NS, true, NULL, 0 },
                 .lanes = lanes };
  for (int32_t i = 0; i < s->n_spans; i++) {
    if (i == 0 || s->spans[i].lane != s->spans[i - 1].lane) {
      const char *name = last_lane (c, s->spans[i].lane);
      if (!name)
        return false;
      lanes[f->n_lanes++] = (figure_lane){ .name = name, .spans = spans + i };
    }
    add_span (&lanes[f->n_lanes - 1], spans + i, &s->spans[i], origin);
    end = spans[i].end > end ? spans[i].end : end;
  }
  f->x_end = end;
  return true;
}

static bool add_fact (call *c, figure_page *page, figure_fact *facts, const char *key, int64_t ns) {
  char text[UNITS_TEXT];
  const char *own = ns > 0 ? arena_string (c->arena, units_time (text, ns), &c->err) : "";
  if (ns > 0 && own && page->n_facts < MOST_FACTS)
    facts[page->n_facts++] = (figure_fact){ key, own, ns };
  return own != NULL;
}

/* Behind the seen step, the plan's own figures and facts, where there is one. */
static bool add_plan (call *c, const program_run *r, figure *figures, figure_fact *facts,
                      figure_page *page) {
  char plan_path[SHIM_PATH + 64], trace_path[SHIM_PATH + 64];
  program_file (r, plan_path, sizeof plan_path, DRAWN_PLAN, -1);
  program_file (r, trace_path, sizeof trace_path, DRAWN_TRACE, -1);
  plan_step *s = NEW (c->arena, 1, plan_step, &c->err);
  if (!s || access (plan_path, R_OK) != 0 || access (trace_path, R_OK) != 0)
    return s != NULL;
  const trace *t = trace_load (trace_path, NULL, c->arena, &c->err);
  const plan *p = t ? plan_load (plan_path, NULL, c->arena, &c->err) : NULL;
  if (!p || !plan_step_of (c, t, p, plan_path, s))
    return false;
  for (int32_t i = 0; i < s->page.n_figures && page->n_figures < MOST_FACTS; i++)
    figures[page->n_figures++] = s->page.figures[i];
  for (int32_t i = 0; i < s->page.n_facts && page->n_facts < MOST_FACTS; i++)
    facts[page->n_facts++] = s->page.facts[i];
  return true;
}

bool run_html (call *c, const program_run *r, const char *output) {
  const shim_seen *seen = &r->block->seen;
  int64_t timed = seen->planned_timed > 0 ? seen->planned_timed : 1;
  figure *figures = NEW (c->arena, MOST_FACTS, figure, &c->err);
  figure_fact *facts = NEW (c->arena, MOST_FACTS, figure_fact, &c->err);
  figure_page page = { .title = c->operands[0],
                       .subtitle = "one planned step: seen, then as its plan has it",
                       .figures = figures,
                       .facts = facts,
                       .n_figures = 1 };
  last_step step;
  bytes text = { 0 };
  bool good = figures && facts && last_read (c, r, &step) && seen_lanes (c, &step, figures) &&
              add_fact (c, &page, facts, "step, seen", seen->planned_ns / timed) &&
              add_fact (c, &page, facts, "step, predicted", seen->predicted_ns / timed) &&
              add_fact (c, &page, facts, "all ops alone", r->block->step_ops_ns) &&
              add_plan (c, r, figures, facts, &page) &&
              html_page (&page, c->arena, &text, &c->err) &&
              call_write (c, output, text.data, text.size);
  bytes_free (&text);
  return good;
}
