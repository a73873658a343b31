/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/plan_figure.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "trace/unit.h"
#include "trace/simulate/waits.h"

/* Holders of memory: the kinds of tensors, the ops' workspaces, and the pool of small ones. */
enum { HOLDER_WORKSPACE = TENSOR_KINDS, HOLDER_POOL, HOLDERS };

static const figure_tone holder_tones[HOLDERS] = {
  [TENSOR_PARAMETER] = TONE_parameter, [TENSOR_OPTIMIZER] = TONE_optimizer,
  [TENSOR_INPUT] = TONE_input,         [TENSOR_ACTIVATION] = TONE_activation,
  [TENSOR_GRADIENT] = TONE_gradient,   [TENSOR_WORKSPACE] = TONE_workspace,
  [TENSOR_TEMPORARY] = TONE_temporary, [HOLDER_WORKSPACE] = TONE_workspace,
  [HOLDER_POOL] = TONE_plain,
};

typedef struct edge {
  int64_t at_ns, bytes;
  int holder;
} edge;

static int compare_edges (const void *a, const void *b) {
  const edge *x = a, *y = b;
  return ORDER (x->at_ns, y->at_ns) ?: ORDER (x->holder, y->holder) ?: ORDER (x->bytes, y->bytes);
}

typedef struct amounts {
  edge *edges;
  int32_t n;
  int64_t held[HOLDERS]; /* at 0 */
} amounts;

static int64_t floor_periods (int64_t at_ns, int64_t period_ns) {
  return at_ns / period_ns - (at_ns % period_ns < 0);
}

/* Adds `bytes` over a span that repeats every period; one that covers 0 is counted there. */
static void hold (amounts *a, const span *s, int64_t period_ns, int holder, int64_t bytes) {
  if (s->end_ns <= s->start_ns || bytes == 0)
    return;
  int64_t from = floor_periods (s->start_ns, period_ns), to = floor_periods (s->end_ns, period_ns);
  int64_t start = s->start_ns - from * period_ns, end = s->end_ns - to * period_ns;
  /* multiples k of the period with start <= k < end: births and ends at 0 are in it */
  int64_t times = (end > 0) + to - from - (start > 0);
  a->held[holder] += times * bytes;
  if (start > 0)
    a->edges[a->n++] = (edge){ start, bytes, holder };
  if (end > 0)
    a->edges[a->n++] = (edge){ end, -bytes, holder };
}

static int holder_of (const sim_job *job, const stay *s) {
  const trace *t = job->rewritten->trace;
  int32_t unit = s->kind == STAY_MOVE ? job->plan->moves[s->index].unit : s->index;
  if (s->kind == STAY_WORKSPACE)
    return HOLDER_WORKSPACE;
  if (s->kind == STAY_GROUP)
    unit += t->n_tensors;
  if (unit >= t->n_tensors)
    unit = job->plan->groups[unit - t->n_tensors].at[0];
  return t->tensors[unit].kind;
}

/* Layers of a stack, one a holder that ever holds something; every layer has all moments. */
static bool make_layers (const amounts *m, arena *a, figure *f, error *err) {
  static const char *const names[] = { "workspace of ops", "pool of small tensors" };
  int64_t held[HOLDERS];
  bool any[HOLDERS];
  int32_t n_times = 1, n_layers = 0;
  figure_series *layers = NEW (a, HOLDERS, figure_series, err);
  figure_point *points[HOLDERS] = { NULL };
  for (int h = 0; h < HOLDERS; h++)
    any[h] = m->held[h] > 0;
  for (int32_t i = 0; i < m->n; i++) {
    any[m->edges[i].holder] = true;
    n_times += i == 0 || m->edges[i].at_ns != m->edges[i - 1].at_ns;
  }
  for (int h = 0; layers && h < HOLDERS; h++)
    if (any[h] && !(points[h] = NEW (a, n_times, figure_point, err)))
      return false;
  if (!layers)
    return false;
  memcpy (held, m->held, sizeof held);
  int32_t n = 0, at = 0;
  for (int64_t now = 0; n < n_times; n++) {
    int64_t sum = 0;
    for (; at < m->n && m->edges[at].at_ns <= now; at++)
      held[m->edges[at].holder] += m->edges[at].bytes;
    for (int h = 0; h < HOLDERS; h++)
      if (points[h]) {
        points[h][n] = (figure_point){ .x = now, .y = sum + held[h], .low = sum };
        sum += held[h];
      }
    now = at < m->n ? m->edges[at].at_ns : now;
  }
  for (int h = 0; h < HOLDERS; h++)
    if (points[h])
      layers[n_layers++] = (figure_series){
        .name = h < TENSOR_KINDS ? tensor_kind_names[h] : names[h - TENSOR_KINDS],
        .kind = FIGURE_AREA,
        .tone = holder_tones[h],
        .points = points[h],
        .n_points = n_times,
      };
  f->series = layers;
  f->n_series = n_layers;
  return true;
}

static bool make_memory (const sim_job *job, const timeline *line, arena *a, figure *f,
                         error *err) {
  const placement *pl = &job->plan->placement;
  amounts m = { .edges = NEW (a, 2 * (int64_t)pl->n_stays, edge, err) };
  figure_mark *marks = NEW (a, 2, figure_mark, err);
  if (!m.edges || !marks)
    return false;
  m.held[HOLDER_POOL] = units_div_up (pl->pool_bytes, pl->granule_bytes) * pl->granule_bytes;
  for (int32_t i = 0; i < pl->n_stays; i++) {
    const stay *s = &pl->stays[i];
    int64_t bytes = 0;
    for (int32_t k = 0; k < s->n_runs; k++)
      bytes += pl->runs[s->first_run + k].count * pl->granule_bytes;
    if (line->stays[i].end_ns < 0 && line->stays[i].start_ns < 0)
      m.held[holder_of (job, s)] += bytes;
    else
      hold (&m, &line->stays[i], line->period_ns, holder_of (job, s), bytes);
  }
  qsort (m.edges, (size_t)m.n, sizeof *m.edges, compare_edges);
  *f = (figure){ .id = "memory",
                 .title = "Device memory, by what holds it",
                 .x = { "time in the step", FIGURE_NS, true, NULL, 0 },
                 .y = { "held", FIGURE_BYTES, true, NULL, 0 },
                 .x_end = line->period_ns,
                 .marks = marks };
  char text[UNITS_TEXT];
  const char *budget = units_bytes (text, job->plan->budget_bytes);
  const char *name = arena_format (a, err, "budget %s", budget);
  const char *peak = arena_format (a, err, "most held %s", units_bytes (text, line->peak_bytes));
  marks[f->n_marks++] = (figure_mark){ MARK_Y, 0, job->plan->budget_bytes, name, TONE_limit };
  marks[f->n_marks++] =
      (figure_mark){ MARK_POINT, line->peak_ns, line->peak_bytes, peak, TONE_plain };
  return name && peak && make_layers (&m, a, f, err);
}

int64_t *plan_move_bytes (const sim_job *job, arena *a, error *err) {
  const plan *p = job->plan;
  units u;
  int64_t *bytes = NEW (a, p->n_moves, int64_t, err);
  if (!bytes || !units_of (job->rewritten->trace, p->groups, p->n_groups,
                           p->placement.granule_bytes, p->placement.pool_below_bytes, a, &u, err))
    return NULL;
  for (int32_t i = 0; i < p->n_moves; i++)
    bytes[i] = unit_part_bytes (&u.at[p->moves[i].unit], p->placement.granule_bytes,
                                p->moves[i].part, p->moves[i].of);
  return bytes;
}

bool plan_away (const sim_job *job, const timeline *line, arena *a, figure_point **points,
                int32_t *count, error *err) {
  const plan *p = job->plan;
  const int64_t *bytes = plan_move_bytes (job, a, err);
  amounts m = { .edges = NEW (a, 2 * (int64_t)p->n_moves, edge, err) };
  *points = NEW (a, 2 * (int64_t)p->n_moves + 1, figure_point, err);
  *count = 0;
  if (!bytes || !m.edges || !*points)
    return false;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *it = &p->moves[i];
    span away = { it->clean ? line->ops[it->out_after].end_ns : line->outs[i].start_ns,
                  line->ins[i].end_ns };
    if (it->in_before <= it->out_after && away.end_ns <= away.start_ns)
      away.end_ns += line->period_ns; /* it comes back in the next step */
    hold (&m, &away, line->period_ns, 0, bytes[i]);
  }
  qsort (m.edges, (size_t)m.n, sizeof *m.edges, compare_edges);
  int64_t held = m.held[0];
  figure_point *at = *points;
  at[(*count)++] = (figure_point){ .y = held };
  for (int32_t i = 0; i < m.n; i++) {
    held += m.edges[i].bytes;
    if (at[*count - 1].x != m.edges[i].at_ns)
      (*count)++;
    at[*count - 1] = (figure_point){ .x = m.edges[i].at_ns, .y = held };
  }
  return true;
}

static bool make_host (const sim_job *job, const timeline *line, arena *a, figure *f, error *err) {
  figure_series *s = NEW (a, 1, figure_series, err);
  figure_point *points;
  if (!s || !plan_away (job, line, a, &points, &s->n_points, err))
    return false;
  s->name = "away on the host";
  s->kind = FIGURE_AREA;
  s->tone = TONE_copy;
  s->points = points;
  *f = (figure){ .id = "host",
                 .title = "Away on the host",
                 .x = { "time in the step", FIGURE_NS, true, NULL, 0 },
                 .y = { "away", FIGURE_BYTES, true, NULL, 0 },
                 .x_end = line->period_ns,
                 .series = s,
                 .n_series = 1 };
  return true;
}

/* ---- lanes ---- */

int plan_compare_spans (const void *a, const void *b) {
  const figure_span *x = a, *y = b;
  return x->start != y->start ? (x->start < y->start ? -1 : 1)
                              : (x->end > y->end) - (x->end < y->end);
}

/* Into [0, period): what runs on into the next step is cut in two. */
static void add_span (figure_lane *lane, figure_span *spans, figure_span s, int64_t period_ns) {
  if (s.end <= s.start)
    return;
  int64_t shift = floor_periods (s.start, period_ns) * period_ns;
  s.start -= shift;
  s.end -= shift;
  figure_span rest = s;
  if (s.end > period_ns) {
    rest.start = 0;
    rest.end = s.end - period_ns;
    rest.bytes = 0;
    spans[lane->n_spans++] = rest;
    s.end = period_ns;
  }
  spans[lane->n_spans++] = s;
}

/* Ops with what they wait before they start: a lane for each stream. */
static bool add_ops (const sim_job *job, const timeline *line, arena *a, figure_lane lanes[],
                     figure_span *spans[], error *err) {
  const trace *t = job->rewritten->trace;
  wait *waits;
  int32_t n;
  if (!waits_of (job, line, a, &waits, &n, err))
    return false;
  for (int32_t i = 0; i < n; i++) {
    const op *o = &t->ops[waits[i].op];
    int64_t start_ns = line->ops[waits[i].op].start_ns;
    add_span (&lanes[o->stream], spans[o->stream],
              (figure_span){ start_ns - waits[i].ns, start_ns, o->name, 0, TONE_stall },
              line->period_ns);
  }
  for (int32_t i = 0; i < t->n_ops; i++) {
    const op *o = &t->ops[i];
    const span *s = &line->ops[i];
    add_span (&lanes[o->stream], spans[o->stream],
              (figure_span){ s->start_ns, s->end_ns, o->name, 0, TONE_compute }, line->period_ns);
  }
  return true;
}

static const char *unit_name (const sim_job *job, int32_t unit, arena *a, error *err) {
  const trace *t = job->rewritten->trace;
  if (unit < t->n_tensors)
    return t->tensors[unit].name;
  const index_list *group = &job->plan->groups[unit - t->n_tensors];
  return arena_format (a, err, "%.200s and %d more", t->tensors[group->at[0]].name,
                       group->count - 1);
}

const char *plan_move_name (const sim_job *job, int32_t i, arena *a, error *err) {
  const move *it = &job->plan->moves[i];
  const char *name = unit_name (job, it->unit, a, err);
  return name && it->of > 1
             ? arena_format (a, err, "%.200s (part %d of %d)", name, it->part + 1, it->of)
             : name;
}

static bool add_copies (const sim_job *job, const timeline *line, arena *a, figure_lane lanes[],
                        figure_span *spans[], error *err) {
  const plan *p = job->plan;
  const int64_t *bytes = plan_move_bytes (job, a, err);
  if (!bytes)
    return false;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const char *name = plan_move_name (job, i, a, err);
    if (!name)
      return false;
    const span *from[] = { &line->outs[i], &line->ins[i] };
    for (int k = 0; k < 2; k++)
      add_span (&lanes[LANE_OUT + k], spans[LANE_OUT + k],
                (figure_span){ from[k]->start_ns, from[k]->end_ns, name, bytes[i], TONE_out + k },
                line->period_ns);
  }
  return true;
}

static bool make_lanes (const sim_job *job, const timeline *line, arena *a, figure *f, error *err) {
  static const char *const names[PLAN_LANES] = { "compute", "copy out", "copy in" };
  const trace *t = job->rewritten->trace;
  int32_t beside = trace_has_streams (t) ? t->n_streams - 1 : 0, n = PLAN_LANES + beside;
  figure_lane *lanes = NEW (a, n, figure_lane, err);
  figure_span *spans[PLAN_LANES + MOST_STREAMS];
  for (int32_t i = 0; i < n; i++)
    if (!lanes ||
        !(spans[i] = NEW (a, i < n - 2 ? 4 * (int64_t)t->n_ops : 2 * (int64_t)job->plan->n_moves,
                          figure_span, err)))
      return false;
  if (!add_ops (job, line, a, lanes, spans, err) ||
      !add_copies (job, line, a, lanes + beside, spans + beside, err))
    return false;
  for (int32_t i = 0; i < n; i++) {
    qsort (spans[i], (size_t)lanes[i].n_spans, sizeof *spans[i], plan_compare_spans);
    lanes[i].name =
        i && i <= beside ? arena_format (a, err, "stream %d", i) : names[i ? i - beside : 0];
    lanes[i].spans = spans[i];
    if (!lanes[i].name)
      return false;
  }
  *f = (figure){ .id = "lanes",
                 .title = "Who is busy when",
                 .x = { "time in the step", FIGURE_NS, true, NULL, 0 },
                 .x_end = line->period_ns,
                 .lanes = lanes,
                 .n_lanes = n };
  return true;
}

/* ---- the page ---- */

static bool add_fact (figure_page *page, figure_fact *facts, arena *a, const char *key,
                      int64_t exact, const char *text, error *err) {
  facts[page->n_facts++] = (figure_fact){ key, arena_string (a, text, err), exact };
  return facts[page->n_facts - 1].text != NULL;
}

static bool make_facts (const sim_job *job, const predicted *p, arena *a, figure_page *page,
                        error *err) {
  char text[UNITS_TEXT];
  figure_fact *facts = NEW (a, 12, figure_fact, err);
  if (!facts)
    return false;
  page->facts = facts;
  bool ok =
      add_fact (page, facts, a, "step", p->step_ns, units_time (text, p->step_ns), err) &&
      add_fact (page, facts, a, "without a plan", p->baseline_ns, units_time (text, p->baseline_ns),
                err) &&
      add_fact (page, facts, a, "stalls", p->stall_ns, units_time (text, p->stall_ns), err) &&
      add_fact (page, facts, a, "device peak", p->peak_bytes, units_bytes (text, p->peak_bytes),
                err) &&
      add_fact (page, facts, a, "budget", job->plan->budget_bytes,
                units_bytes (text, job->plan->budget_bytes), err) &&
      add_fact (page, facts, a, "host", p->host_peak_bytes, units_bytes (text, p->host_peak_bytes),
                err) &&
      add_fact (page, facts, a, "copied out", p->d2h_bytes, units_bytes (text, p->d2h_bytes),
                err) &&
      add_fact (page, facts, a, "copied in", p->h2d_bytes, units_bytes (text, p->h2d_bytes), err);
  if (ok && job->plan->has_certificate)
    ok = add_fact (page, facts, a, "lower bound", job->plan->certificate.lower_bound_ns,
                   units_time (text, job->plan->certificate.lower_bound_ns), err);
  return ok;
}

bool plan_figure (const sim_job *job, const predicted *costs, const timeline *line, arena *a,
                  figure_page *out, error *err) {
  figure *figures = NEW (a, PLAN_FIGURES, figure, err);
  if (!figures)
    return false;
  if (line->period_ns <= 0)
    return error_set (err, ERR_infeasible, "a step of no length has no picture");
  *out = (figure_page){ .figures = figures, .n_figures = PLAN_FIGURES };
  const device *d = &job->plan->device;
  out->title = job->original->name ? job->original->name : "";
  out->subtitle = arena_format (a, err, "one step on %s, in the steady state",
                                d->name && *d->name ? d->name : "the device");
  return out->subtitle && make_memory (job, line, a, &figures[FIGURE_MEMORY], err) &&
         make_lanes (job, line, a, &figures[FIGURE_LANES], err) &&
         make_host (job, line, a, &figures[FIGURE_HOST], err) &&
         make_facts (job, costs, a, out, err);
}
