/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/pictures.h"

#include "plot/term.h"

enum { MEMORY_ROWS = 8 };

/* Time runs as the ops take it, so that long ops are wide. */
bool picture_needs (call *c, const trace *t, const int64_t *bytes_at, int64_t budget_bytes) {
  term_point *points = NEW (c->arena, t->n_ops, term_point, &c->err);
  if (!points)
    return false;
  int64_t at_ns = 0;
  for (int32_t i = 0; i < t->n_ops; i++) {
    points[i] = (term_point){ at_ns, bytes_at[i] };
    at_ns += t->ops[i].gap_ns + t->ops[i].ns;
  }
  term_style style = { c->utf8, c->color, c->columns };
  bytes picture = { 0 };
  term_amount needs = { points, t->n_ops, at_ns, budget_bytes, "budget" };
  bool ok = term_area (&needs, MEMORY_ROWS, &style, &picture, &c->err) &&
            call_write (c, NULL, picture.data, picture.size);
  bytes_free (&picture);
  return ok;
}

/* The spans that there are, of those of all ops or moves. */
static term_span *spans_of (call *c, const span *from, int32_t n, int32_t *count) {
  term_span *spans = NEW (c->arena, n, term_span, &c->err);
  *count = 0;
  for (int32_t i = 0; spans && i < n; i++)
    if (from[i].end_ns > from[i].start_ns)
      spans[(*count)++] = (term_span){ from[i].start_ns, from[i].end_ns };
  return spans;
}

bool picture_step (call *c, const sim_job *job, const timeline *line) {
  term_style style = { c->utf8, c->color, c->columns };
  term_lane lanes[] = { { .name = "compute" }, { .name = "out" }, { .name = "in" } };
  const span *from[] = { line->ops, line->outs, line->ins };
  int32_t moves = job->plan->n_moves;
  int32_t counts[] = { job->rewritten->trace->n_ops, moves, moves };
  for (int i = 0; i < 3; i++) {
    lanes[i].spans = spans_of (c, from[i], counts[i], &lanes[i].n_spans);
    if (!lanes[i].spans)
      return false;
  }
  term_point *points = NEW (c->arena, (int64_t)line->n_memory + 1, term_point, &c->err);
  if (!points)
    return false;
  for (int32_t i = 0; i < line->n_memory; i++)
    points[i] = (term_point){ line->memory[i].at_ns, line->memory[i].bytes };
  term_amount used = { points, line->n_memory, line->period_ns, job->plan->budget_bytes, "budget" };
  bytes picture = { 0 };
  bool ok = term_lanes (lanes, 3, line->period_ns, &style, &picture, &c->err) &&
            bytes_append (&picture, "\n", 1, &c->err) &&
            term_area (&used, MEMORY_ROWS, &style, &picture, &c->err) &&
            call_write (c, NULL, picture.data, picture.size);
  bytes_free (&picture);
  return ok;
}
