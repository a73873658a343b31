/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rates of copies are not in a timeline: they are dealt out again, by the function that the
   simulator uses, from what carries at each moment. */
#include "cli/figures/ranks_figure.h"

#include <stdlib.h>

#include "base/order.h"
#include "cli/figures/plan_figure.h"
#include "trace/host_rates.h"

/* ---- lanes ---- */

/* The spans of a rank's lane by the clock of the first rank: later, and cut at the period. */
static bool put_late (const figure_lane *from, int64_t late_ns, int64_t period_ns, arena *a,
                      figure_lane *to, error *err) {
  figure_span *spans = NEW (a, 2 * (int64_t)from->n_spans, figure_span, err);
  int32_t n = 0;
  for (int32_t i = 0; spans && i < from->n_spans; i++) {
    figure_span s = from->spans[i];
    int64_t shift = (s.start + late_ns) / period_ns * period_ns - late_ns;
    s.start -= shift;
    s.end -= shift;
    if (s.end > period_ns) {
      figure_span rest = s;
      rest.start = 0;
      rest.end -= period_ns;
      rest.bytes = 0;
      spans[n++] = rest;
      s.end = period_ns;
    }
    spans[n++] = s;
  }
  if (n)
    qsort (spans, (size_t)n, sizeof *spans, plan_compare_spans);
  to->spans = spans;
  to->n_spans = n;
  return spans;
}

static bool make_lanes (const sim_job *jobs, int32_t ranks, const predicted *costs,
                        const timeline *lines, arena *a, figure *f, error *err) {
  int64_t period_ns = lines[0].period_ns;
  int32_t n = 0;
  figure_lane *lanes = NEW (a, (int64_t)ranks * (PLAN_LANES + MOST_STREAMS), figure_lane, err);
  for (int32_t r = 0; lanes && r < ranks; r++) {
    figure_page one;
    if (!plan_figure (&jobs[r], &costs[r], &lines[r], a, &one, err))
      return false;
    const figure *of = &one.figures[FIGURE_LANES];
    for (int32_t i = 0; i < of->n_lanes; i++, n++) {
      lanes[n].name = arena_format (a, err, "%d %s", r, of->lanes[i].name);
      if (!lanes[n].name ||
          !put_late (&of->lanes[i], lines[r].late_ns, period_ns, a, &lanes[n], err))
        return false;
    }
  }
  *f = (figure){ .id = "lanes",
                 .title = "Who is busy when, by rank",
                 .x = { "time in the step", FIGURE_NS, true, NULL, 0 },
                 .x_end = period_ns,
                 .lanes = lanes,
                 .n_lanes = n };
  return lanes;
}

/* ---- loads ---- */

/* A copy of a rank begins to carry, or ends. */
typedef struct turn {
  int64_t at_ns;
  int32_t rank;
  int8_t way, more; /* more: 1 or -1 */
} turn;

typedef struct turns {
  turn *at;
  int32_t count;
  int32_t carry[COPY_WAYS][HOST_MOST_CARDS]; /* at time 0; a copy may carry over it */
} turns;

static int by_time (const void *a, const void *b) {
  const turn *x = a, *y = b;
  return ORDER (x->at_ns, y->at_ns);
}

static void add_turns (turns *t, const span *s, int32_t rank, copy_way way, int64_t from_ns,
                       int64_t period_ns) {
  int64_t start = s->start_ns + from_ns, end = s->end_ns + from_ns;
  if (start >= end)
    return;
  int64_t first = start % period_ns + (start % period_ns < 0 ? period_ns : 0), length = end - start;
  t->at[t->count++] = (turn){ first, rank, (int8_t)way, 1 };
  t->at[t->count++] = (turn){ (first + length) % period_ns, rank, (int8_t)way, -1 };
  t->carry[way][rank] += (int32_t)((first + length) / period_ns);
}

/* Each copy first takes copy_ns, in which it carries nothing. */
static bool find_turns (const gpu_host *h, const sim_job *jobs, int32_t ranks,
                        const timeline *lines, arena *a, turns *t, error *err) {
  int64_t most = 0;
  for (int32_t r = 0; r < ranks; r++)
    most += 4 * (int64_t)jobs[r].plan->n_moves;
  *t = (turns){ .at = NEW (a, most, turn, err) };
  for (int32_t r = 0; t->at && r < ranks; r++)
    for (int32_t i = 0; i < jobs[r].plan->n_moves; i++) {
      const span *copies[COPY_WAYS] = { &lines[r].outs[i], &lines[r].ins[i] };
      for (int way = 0; way < COPY_WAYS; way++) {
        span s = *copies[way];
        s.start_ns += h->link.copy_ns;
        add_turns (t, &s, r, (copy_way)way, lines[r].late_ns, lines[0].period_ns);
      }
    }
  if (t->at && t->count)
    qsort (t->at, (size_t)t->count, sizeof *t->at, by_time);
  return t->at;
}

typedef struct loads {
  const gpu_host *host;
  link_rates own;
  figure_point *points[HOST_MOST_GROUPS][COPY_WAYS];
  int32_t n_points;
} loads;

/* The load of each group from here on. */
static void put_loads (loads *l, const turns *t, int64_t at_ns) {
  host_flows f = { .carries = { 0 } };
  for (int way = 0; way < COPY_WAYS; way++)
    for (int32_t r = 0; r < HOST_MOST_CARDS; r++)
      f.carries[way] |= (uint64_t)(t->carry[way][r] > 0) << r;
  host_rates (l->host, &l->own, &f);
  for (int32_t g = 0; g < l->host->n_groups; g++)
    for (int way = 0; way < COPY_WAYS; way++) {
      int64_t sum = 0;
      for (int32_t r = 0; r < l->host->n_cards; r++)
        sum += l->host->groups[g].cards >> r & 1 ? f.rate[way][r] : 0;
      l->points[g][way][l->n_points] = (figure_point){ .x = at_ns, .y = sum };
    }
  l->n_points++;
}

static void sweep (loads *l, turns *t) {
  put_loads (l, t, 0);
  for (int32_t i = 0; i < t->count; i++) {
    t->carry[t->at[i].way][t->at[i].rank] += t->at[i].more;
    if (i + 1 == t->count || t->at[i + 1].at_ns > t->at[i].at_ns)
      put_loads (l, t, t->at[i].at_ns);
  }
}

static bool make_load (const loads *l, int32_t g, int64_t period_ns, arena *a, figure *f,
                       error *err) {
  static const char *const names[COPY_WAYS] = { "out", "in" };
  const host_group *group = &l->host->groups[g];
  figure_series *s = NEW (a, COPY_WAYS, figure_series, err);
  figure_mark *m = NEW (a, COPY_WAYS, figure_mark, err);
  if (!s || !m)
    return false;
  for (int way = 0; way < COPY_WAYS; way++) {
    s[way] = (figure_series){ .name = names[way],
                              .kind = FIGURE_STEP,
                              .tone = TONE_out + way,
                              .points = l->points[g][way],
                              .n_points = l->n_points };
    m[way] = (figure_mark){ MARK_Y, 0, group->one_way[way],
                            way ? "in, while nothing goes out" : "out, while nothing comes in",
                            TONE_limit };
  }
  *f = (figure){ .id = arena_format (a, err, "load%d", g),
                 .title = arena_format (a, err, "Load of %s, of %d cards", group->name,
                                        __builtin_popcountll (group->cards)),
                 .x = { "time in the step", FIGURE_NS, true, NULL, 0 },
                 .y = { "bytes a second", FIGURE_BYTES, true, NULL, 0 },
                 .x_end = period_ns,
                 .series = s,
                 .n_series = COPY_WAYS,
                 .marks = m,
                 .n_marks = group->one_way[0] == group->one_way[1] ? 1 : COPY_WAYS };
  return f->id && f->title;
}

static bool make_loads (const gpu_host *h, turns *t, int64_t period_ns, arena *a, figure *figures,
                        error *err) {
  loads *l = NEW (a, 1, loads, err);
  if (!l)
    return false;
  *l = (loads){ .host = h, .own = device_rates (&h->link, 1000000) };
  for (int32_t g = 0; g < h->n_groups; g++)
    for (int way = 0; way < COPY_WAYS; way++)
      if (!(l->points[g][way] = NEW (a, (int64_t)t->count + 1, figure_point, err)))
        return false;
  sweep (l, t);
  for (int32_t g = 0; g < h->n_groups; g++)
    if (!make_load (l, g, period_ns, a, &figures[g], err))
      return false;
  return true;
}

bool ranks_figure (const gpu_host *h, const sim_job *jobs, int32_t ranks, const predicted *costs,
                   const timeline *lines, arena *a, figure_page *out, error *err) {
  turns t;
  figure *figures = NEW (a, 1 + h->n_groups, figure, err);
  if (!figures || !make_lanes (jobs, ranks, costs, lines, a, &figures[0], err) ||
      !find_turns (h, jobs, ranks, lines, a, &t, err) ||
      !make_loads (h, &t, lines[0].period_ns, a, &figures[1], err))
    return false;
  *out = (figure_page){ .title = jobs[0].original->name ? jobs[0].original->name : "",
                        .subtitle =
                            arena_format (a, err, "one step of %d ranks on %s", ranks, h->name),
                        .figures = figures,
                        .n_figures = 1 + h->n_groups };
  return out->subtitle;
}
