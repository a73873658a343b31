/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/timeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"

typedef struct drawing {
  const plan *plan;
  const trace *trace;
  const units *units;
  timeline *out;
  int32_t *moves_of; /* moves sorted by unit, part, out_after */
} drawing;

static span *spans (arena *a, int32_t count, error *err) {
  span *s = NEW (a, count, span, err);
  for (int32_t i = 0; s && i < count; i++)
    s[i] = (span){ -1, -1 };
  return s;
}

bool timeline_begin (const sim_job *job, arena *a, timeline *out, error *err) {
  assert (job && out);
  out->ops = spans (a, job->rewritten->trace->n_ops, err);
  out->outs = spans (a, job->plan->n_moves, err);
  out->ins = spans (a, job->plan->n_moves, err);
  return out->ops && out->outs && out->ins;
}

static void shift (span *s, int32_t count, int64_t start_ns) {
  for (int32_t i = 0; i < count; i++)
    if (s[i].end_ns >= 0) {
      s[i].start_ns -= start_ns;
      s[i].end_ns -= start_ns;
    }
}

static int compare_moves (const void *a, const void *b, void *context) {
  const move *moves = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  const move *x = &moves[i], *y = &moves[j];
  return ORDER (x->unit, y->unit) ?: ORDER (x->part, y->part) ?: ORDER (x->out_after, y->out_after)
         ?: ORDER (i, j);
}

/* The first place in moves_of whose move is of (unit, part) or behind. */
static int32_t first_move (const drawing *d, int32_t unit, int32_t part) {
  int32_t low = 0, high = d->plan->n_moves;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    const move *m = &d->plan->moves[d->moves_of[middle]];
    if (m->unit < unit || (m->unit == unit && m->part < part))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool is_of (const drawing *d, int32_t place, int32_t unit, int32_t part) {
  if (place >= d->plan->n_moves)
    return false;
  const move *m = &d->plan->moves[d->moves_of[place]];
  return m->unit == unit && m->part == part;
}

/* When a stay that holds (unit, part) at op `from` ends: with the next move, or the last use. */
static int64_t stay_end (const drawing *d, int32_t unit, int32_t part, int32_t from) {
  const timeline *t = d->out;
  int32_t first = first_move (d, unit, part), place = first;
  while (is_of (d, place, unit, part) && d->plan->moves[d->moves_of[place]].out_after < from)
    place++;
  bool again = !is_of (d, place, unit, part);
  if (again && !d->units->at[unit].persistent)
    return t->ops[d->units->at[unit].last].end_ns;
  int32_t m = d->moves_of[again ? first : place];
  const move *leaves = &d->plan->moves[m];
  int64_t end_ns = leaves->clean ? t->ops[leaves->out_after].end_ns : t->outs[m].end_ns;
  return end_ns + (again ? t->period_ns : 0);
}

/* False: the stay is held always. */
static bool stay_span (const drawing *d, const stay *s, span *out) {
  const timeline *t = d->out;
  int32_t unit, part = s->part, from;
  switch (s->kind) {
  case STAY_WORKSPACE:
    *out = t->ops[s->index];
    return true;
  case STAY_MOVE:
    unit = d->plan->moves[s->index].unit;
    part = d->plan->moves[s->index].part;
    from = d->plan->moves[s->index].in_before;
    out->start_ns = t->ins[s->index].start_ns;
    break;
  default:
    unit = s->kind == STAY_GROUP ? d->trace->n_tensors + s->index : s->index;
    from = d->units->at[unit].first;
    if (d->units->at[unit].persistent)
      return false;
    out->start_ns = t->ops[from].start_ns;
  }
  out->end_ns = stay_end (d, unit, part, from);
  return true;
}

typedef struct edge {
  int64_t at_ns, granules;
} edge;

static int compare_edges (const void *a, const void *b) {
  const edge *x = a, *y = b;
  return ORDER (x->at_ns, y->at_ns) ?: ORDER (x->granules, y->granules); /* ends before births */
}

static int64_t into_period (int64_t at_ns, int64_t period_ns) {
  int64_t rest = at_ns % period_ns;
  return rest < 0 ? rest + period_ns : rest;
}

/* How many times an interval, repeated every period, covers time 0. */
static int64_t covers_zero (const span *s, int64_t period_ns) {
  /* the number of k with start <= k x period < end */
  int64_t first = s->start_ns / period_ns * period_ns;
  while (first < s->start_ns)
    first += period_ns;
  while (first - period_ns >= s->start_ns)
    first -= period_ns;
  return s->end_ns > first ? (s->end_ns - 1 - first) / period_ns + 1 : 0;
}

static bool draw_memory (drawing *d, arena *a, error *err) {
  const placement *pl = &d->plan->placement;
  timeline *t = d->out;
  edge *edges = NEW (a, 2 * (int64_t)pl->n_stays, edge, err);
  t->memory = NEW (a, 2 * (int64_t)pl->n_stays + 1, memory_change, err);
  t->stays = spans (a, pl->n_stays, err);
  if (!edges || !t->memory || !t->stays)
    return false;
  int64_t held = units_div_up (pl->pool_bytes, pl->granule_bytes);
  int32_t n = 0;
  for (int32_t i = 0; i < pl->n_stays; i++) {
    span s;
    int64_t granules = stay_granules (pl, &pl->stays[i]);
    if (!stay_span (d, &pl->stays[i], &s)) {
      held += granules;
      continue;
    }
    t->stays[i] = s;
    if (s.end_ns == s.start_ns)
      continue;
    held += granules * covers_zero (&s, t->period_ns);
    edges[n++] = (edge){ into_period (s.start_ns, t->period_ns), granules };
    edges[n++] = (edge){ into_period (s.end_ns, t->period_ns), -granules };
  }
  qsort (edges, (size_t)n, sizeof *edges, compare_edges);
  /* covers_zero has counted what is born and what ends at 0 already */
  t->memory[t->n_memory++] = (memory_change){ 0, held * pl->granule_bytes };
  for (int32_t i = 0; i < n; i++) {
    if (edges[i].at_ns == 0)
      continue;
    held += edges[i].granules;
    if (t->memory[t->n_memory - 1].at_ns != edges[i].at_ns)
      t->n_memory++;
    t->memory[t->n_memory - 1] = (memory_change){ edges[i].at_ns, held * pl->granule_bytes };
  }
  for (int32_t i = 0; i < t->n_memory; i++)
    if (t->memory[i].bytes > t->peak_bytes) {
      t->peak_bytes = t->memory[i].bytes;
      t->peak_ns = t->memory[i].at_ns;
    }
  return true;
}

static int compare_holders (const void *a, const void *b, void *context) {
  const placement *pl = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  int64_t x = stay_granules (pl, &pl->stays[i]), y = stay_granules (pl, &pl->stays[j]);
  return ORDER (y, x) ?: ORDER (i, j);
}

static bool find_holders (drawing *d, arena *a, error *err) {
  timeline *t = d->out;
  const placement *pl = &d->plan->placement;
  if (!ALLOC (a, t->holders, pl->n_stays, err))
    return false;
  for (int32_t i = 0; i < pl->n_stays; i++) {
    span s;
    bool held = !stay_span (d, &pl->stays[i], &s);
    if (!held) {
      span from_peak = { s.start_ns - t->peak_ns, s.end_ns - t->peak_ns };
      held = covers_zero (&from_peak, t->period_ns) > 0;
    }
    if (held)
      t->holders[t->n_holders++] = i;
  }
  qsort_r (t->holders, (size_t)t->n_holders, sizeof *t->holders, compare_holders,
           (void *)(uintptr_t)pl);
  return true;
}

bool timeline_finish (const sim_job *job, const units *u, int64_t start_ns, int64_t period_ns,
                      arena *a, timeline *out, error *err) {
  assert (period_ns >= 0);
  drawing d = { .plan = job->plan, .trace = job->rewritten->trace, .units = u, .out = out };
  out->period_ns = period_ns;
  shift (out->ops, d.trace->n_ops, start_ns);
  shift (out->outs, d.plan->n_moves, start_ns);
  shift (out->ins, d.plan->n_moves, start_ns);
  if (period_ns <= 0)
    return true; /* a trace of no length has no picture */
  if (!ALLOC (a, d.moves_of, d.plan->n_moves, err))
    return false;
  for (int32_t i = 0; i < d.plan->n_moves; i++)
    d.moves_of[i] = i;
  qsort_r (d.moves_of, (size_t)d.plan->n_moves, sizeof *d.moves_of, compare_moves, d.plan->moves);
  return draw_memory (&d, a, err) && find_holders (&d, a, err);
}
