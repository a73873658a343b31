/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/ahead.h"

#include <assert.h>
#include <stdlib.h>

#include "solver/options/lane.h"

enum { MOST_AHEAD = 2 }; /* times the threads: points that are begun before their turn */

typedef struct ahead_point {
  lane lane;
  const trace *trace;
  curve_options options;
  curve_point point;
  error why;
  bool ok;
} ahead_point;

struct ahead {
  const trace *t;
  const curve_options *o;
  const curve *curve;
  solve_options caller; /* as lanes know it */
  int32_t threads, begun;
  ahead_point at[];
};

/* Two large steps at once take the memory of two. */
static int32_t threads_of (const trace *t, const curve_options *o) {
  return t->n_ops <= tuned (o->tuning, TUNE_lanes_ops) ? o->threads : 1;
}

bool ahead_pays (const trace *t, const curve_options *o, int32_t count) {
  return count > 1 && threads_of (t, o) > 1 && allowed_rewrites (&o->allowed);
}

ahead *ahead_new (const trace *t, const curve_options *o, const curve *c, error *err) {
  ahead *w = calloc (1, sizeof *w + (size_t)c->count * sizeof *w->at);
  if (!w) {
    (void)error_memory (err);
    return NULL;
  }
  w->t = t;
  w->o = o;
  w->curve = c;
  w->caller = (solve_options){ .stop = o->stop, .stop_context = o->stop_context };
  w->threads = threads_of (t, o);
  return w;
}

static void plan_point (void *context) {
  ahead_point *p = context;
  p->ok = curve_plan (p->trace, &p->options, 0, p->lane.arena, &p->point, &p->why);
}

static bool begin_point (ahead *w, error *err) {
  ahead_point *p = &w->at[w->begun];
  int32_t count = w->curve->count;
  if (!lane_open (&p->lane, &w->caller, err))
    return false;
  p->trace = w->t;
  p->options = *w->o;
  p->options.log = NULL;
  p->options.stop = p->lane.options.stop;
  p->options.stop_context = p->lane.options.stop_context;
  p->options.threads = w->threads > count ? w->threads / count : 1;
  p->point.budget_bytes = w->curve->points[w->begun].budget_bytes;
  w->begun++;
  lane_begin (&p->lane, plan_point, p);
  return true;
}

/* No point for more memory is searched then, but for the last. */
static bool is_enough (const ahead *w, const ahead_point *p) {
  return p->ok && p->point.plan &&
         p->point.plan->predicted.step_ns <= solve_enough_ns (w->o->gap_ppm, w->curve->baseline_ns);
}

/* Points from i on, as far as there are threads and a need is to be seen. */
static bool begin_more (ahead *w, int32_t i, error *err) {
  int32_t running = 0;
  bool enough = false;
  for (int32_t k = i; k < w->begun; k++) {
    bool ended = lane_has_ended (&w->at[k].lane);
    running += !ended;
    enough |= ended && is_enough (w, &w->at[k]);
  }
  while (w->begun < w->curve->count && running < w->threads &&
         w->begun < i + MOST_AHEAD * w->threads && (w->begun == i || !enough)) {
    if (!begin_point (w, err))
      return false;
    running++;
  }
  return true;
}

/* Those that were passed over are not asked for any more. */
static void pass (ahead *w, int32_t i) {
  for (int32_t k = 0; k < i && k < w->begun; k++)
    lane_drop (&w->at[k].lane);
  w->begun = w->begun < i ? i : w->begun;
}

static void call_off (ahead *w) {
  for (int32_t k = 0; k < w->begun; k++)
    if (w->at[k].lane.arena)
      lane_call_off (&w->at[k].lane);
}

bool ahead_take (ahead *w, int32_t i, arena *to, curve_point *out, error *err) {
  assert (i < w->curve->count);
  ahead_point *p = &w->at[i];
  pass (w, i);
  do {
    if (solve_stops (&w->caller))
      call_off (w);
    else if (!begin_more (w, i, err))
      return false;
  } while (p->lane.arena && !lane_look (&p->lane));
  if (!p->lane.arena) /* not begun before somebody wanted to stop */
    return true;
  lane_take (&p->lane, to);
  if (!p->ok)
    return error_set (err, p->why.code, "%s", p->why.text);
  out->plan = p->point.plan;
  out->lower_bound_ns = p->point.lower_bound_ns;
  out->ticks = p->point.ticks;
  return true;
}

void ahead_free (ahead *w) {
  if (w)
    call_off (w);
  for (int32_t k = 0; w && k < w->begun; k++)
    lane_drop (&w->at[k].lane);
  free (w);
}
