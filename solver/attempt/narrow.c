/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/narrow.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"

typedef struct narrowing narrowing;

/* Its items: ops that are cut, or entries. */
typedef struct narrowing_of {
  int32_t (*count) (const variant *v);
  /* The variant without those [from, to) of its items. */
  bool (*without) (const variant *v, int32_t from, int32_t to, arena *a, variant *out, error *err);
} narrowing_of;

struct narrowing {
  const trace *trace;
  const solve_options *options;
  const narrowing_of *items;
  narrow_judge *judge;
  narrowed *now;
  int64_t compute_ns; /* with nothing narrower left */
  arena *arena, *scratch;
  error *err;
};

/* ---- ops that are cut ---- */

static int32_t cut_ops (const variant *v) {
  int32_t n = 0;
  for (int32_t i = 0; i < v->n_sections; i++)
    n += v->sections[i].end - v->sections[i].first;
  return n;
}

static void add (variant *v, section s) {
  if (s.first >= s.end)
    return;
  if (s.end == s.first + 1)
    s.order = SECTION_LEVEL;
  v->sections[v->n_sections++] = s;
}

static bool without_ops (const variant *v, int32_t from, int32_t to, arena *a, variant *out,
                         error *err) {
  int32_t at = 0; /* items before the section */
  *out = *v;
  out->n_sections = 0;
  out->sections = NEW (a, (int64_t)v->n_sections + 1, section, err);
  if (!out->sections)
    return false;
  for (int32_t i = 0; i < v->n_sections; i++) {
    section s = v->sections[i], before = s, behind = s;
    before.end = (int32_t)max_of (s.first, min_of (s.end, s.first + (int64_t)from - at));
    behind.first = (int32_t)max_of (s.first, min_of (s.end, s.first + (int64_t)to - at));
    at += s.end - s.first;
    if (before.end == behind.first) { /* all of it stays */
      add (out, s);
      continue;
    }
    add (out, before);
    add (out, behind);
  }
  return true;
}

/* ---- entries ---- */

static int32_t entries (const variant *v) {
  return v->n_recomputes;
}

static bool without_entries (const variant *v, int32_t from, int32_t to, arena *a, variant *out,
                             error *err) {
  int32_t behind = v->n_recomputes - to;
  *out = *v;
  out->n_recomputes = from + behind;
  out->recomputes = NEW (a, out->n_recomputes, recompute, err);
  if (!out->recomputes)
    return false;
  memcpy (out->recomputes, v->recomputes, (size_t)from * sizeof *v->recomputes);
  memcpy (out->recomputes + from, v->recomputes + to, (size_t)behind * sizeof *v->recomputes);
  return true;
}

/* ---- both ---- */

static bool is_faster (const variant_value *x, const variant_value *y) {
  return x->step_ns != y->step_ns ? x->step_ns < y->step_ns : x->compute_ns < y->compute_ns;
}

/* *taken: it is better so. */
static bool take_out (narrowing *n, int32_t from, int32_t to, bool *taken) {
  variant v;
  variant_value value;
  narrowed *now = n->now;
  arena_mark mark = arena_here (n->arena);
  *taken = false;
  if (!n->items->without (&now->v, from, to, n->arena, &v, n->err) ||
      !n->judge (n->trace, &v, n->options, now->value.step_ns + 1, n->scratch, &value, n->err))
    return false;
  now->ticks += value.ticks / solve_events_per_tick (value.n_ops) + 1;
  now->tried++;
  *taken = value.legal && value.step_ns < INT64_MAX && is_faster (&value, &now->value);
  if (*taken) {
    now->v = v;
    now->value = value;
  } else
    arena_back (n->arena, mark);
  return true;
}

/* True if those of its items together take enough time to be worth a look. */
static bool pays (const narrowing *n, int32_t items) {
  int64_t over_ns = n->now->value.compute_ns - n->compute_ns, all = n->items->count (&n->now->v);
  int64_t least_ns =
      units_scale (n->compute_ns, tuned (n->options->tuning, TUNE_narrow_ppm), 1000000);
  return items > 0 && all > 1 && units_scale (over_ns, items, all) >= least_ns;
}

static bool run (narrowing *n, int64_t limit_ticks) {
  narrowed *now = n->now;
  assert (now->value.step_ns < INT64_MAX);
  for (int32_t some = n->items->count (&now->v) / 2; pays (n, some); some /= 2)
    for (int32_t from = 0, all; from < (all = n->items->count (&now->v));) {
      bool taken;
      if (now->ticks >= limit_ticks || solve_stops (n->options))
        return true;
      int32_t to = (int32_t)min_of (from + some, all);
      if (to - from == all)
        break;
      if (!take_out (n, from, to, &taken))
        return false;
      from += taken ? 0 : some;
    }
  return true;
}

bool narrow_cut (const trace *t, const solve_options *o, narrow_judge *judge, int64_t limit_ticks,
                 arena *a, arena *scratch, narrowed *of, error *err) {
  static const narrowing_of ops = { cut_ops, without_ops };
  narrowing n = { t, o, &ops, judge, of, trace_total_ns (t), a, scratch, err };
  return run (&n, limit_ticks);
}

bool narrow_drops (const trace *t, const solve_options *o, int64_t limit_ticks, arena *a,
                   arena *scratch, narrowed *of, error *err) {
  static const narrowing_of drops = { entries, without_entries };
  narrowing n = { t, o, &drops, variant_try, of, trace_total_ns (t), a, scratch, err };
  return run (&n, limit_ticks);
}
