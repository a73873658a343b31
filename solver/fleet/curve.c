/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/curve.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/flow/bound_range.h"
#include "solver/flow/gaps.h"
#include "solver/fleet/ahead.h"
#include "solver/fleet/floor.h"
#include "solver/fleet/needs.h"
#include "solver/recompute/recompute.h"
#include "solver/sections/sections.h"
#include "solver/place/schedule.h"
#include "trace/summary.h"

#define GIB ((int64_t)1 << 30)

bool curve_range (const trace *t, const device *dev, arena *a, int64_t *floor_bytes,
                  int64_t *peak_bytes, error *err) {
  count_rule how = { .budget_bytes = INT64_MAX / 8, .granule_bytes = dev->granule_bytes };
  arena_mark mark = arena_here (a);
  counted_step *step = NEW (a, 1, counted_step, err);
  needs n;
  bool ok = step && schedule_count (t, &how, a, step, err) && needs_of (t, dev, a, &n, err);
  if (ok) {
    *floor_bytes = step->gaps.floor_bytes;
    *peak_bytes = n.bytes;
  }
  arena_back (a, mark);
  return ok;
}

bool curve_floor (const trace *t, const curve_options *o, arena *scratch, int64_t *bytes,
                  error *err) {
  memory_floor f;
  summary s;
  if (!floor_least (t, o->device, scratch, &f, err) || !summary_of (t, scratch, &s, err))
    return false;
  bool less = o->allowed.sections != SECTIONS_OFF && s.floor_sections_bytes < f.bytes;
  int64_t least = less ? s.floor_sections_bytes : f.bytes;
  solve_options how = { 0 };
  allowed_into (&o->allowed, &how);
  if (!sections_lower (t, &how, scratch, &least, err))
    return false;
  *bytes = curve_gross (o, least);
  return true;
}

bool curve_even (int64_t floor_bytes, int64_t peak_bytes, int64_t granule_bytes, int32_t count,
                 arena *a, int64_t **budgets, int32_t *n, error *err) {
  assert (count >= 2 && granule_bytes > 0);
  int64_t first = units_div_up (floor_bytes, granule_bytes);
  int64_t last = units_div_up (peak_bytes, granule_bytes);
  *n = 0;
  *budgets = NEW (a, count, int64_t, err);
  for (int32_t i = 0; *budgets && i < count; i++) {
    int64_t at = (first + units_scale (last - first, i, count - 1)) * granule_bytes;
    if (*n == 0 || at > (*budgets)[*n - 1])
      (*budgets)[(*n)++] = at;
  }
  return *budgets;
}

int64_t curve_net (const curve_options *o, int64_t budget_bytes) {
  return budget_bytes - reserve_of (budget_bytes, o->reserve_ppm) - o->reserve_bytes;
}

int64_t curve_gross (const curve_options *o, int64_t bytes) {
  return reserve_onto (bytes + o->reserve_bytes, o->reserve_ppm);
}

static solve_options options_at (const curve_options *o, int64_t budget_bytes) {
  solve_options how = { .device = o->device,
                        .budget_bytes = curve_net (o, budget_bytes),
                        .host_bytes = o->host_bytes,
                        .gap_ppm = o->gap_ppm,
                        .limit_ticks = o->limit_ticks,
                        .level = o->level,
                        .seed = o->seed,
                        .same_places = o->same_places,
                        .placement = o->placement,
                        .log = o->log,
                        .stop = o->stop,
                        .stop_context = o->stop_context,
                        .threads = o->threads };
  allowed_into (&o->allowed, &how);
  return how;
}

/* Cuts add time to ops and never take any away, and some op needs its part; drops may also spare
   the link, and the bound that counts them is of ops that run one after the other; of another order
   nothing is known but what its largest op needs. */
static bool weak_bound (const trace *t, const solve_options *how, arena *a, int64_t *ns,
                        error *err) {
  int64_t compute_ns = trace_total_ns (t), least_bytes, drops_ns;
  *ns = compute_ns;
  if (trace_has_streams (t) || how->sections != SECTIONS_OFF || how->recompute == RECOMPUTE_OFF ||
      how->order != ORDER_AS_IS) {
    if (!sections_floor (t, how, a, &least_bytes, err))
      return false;
    *ns = how->budget_bytes < least_bytes ? -1 : compute_ns;
    return true;
  }
  if (!recompute_bound (t, NULL, how, a, &drops_ns, err))
    return false;
  *ns = drops_ns == INT64_MAX ? -1 : max_of (drops_ns, compute_ns);
  return true;
}

bool curve_bound (const trace *t, const curve_options *o, int64_t budget_bytes,
                  int64_t *lower_bound_ns, error *err) {
  bound b;
  solve_options how = options_at (o, budget_bytes);
  error why = { 0 };
  arena *a = arena_made (err);
  if (!a)
    return false;
  bool ok = allowed_rewrites (&o->allowed) ? weak_bound (t, &how, a, &b.lower_bound_ns, &why)
                                           : solve_bound (t, &how, a, &b, &why);
  arena_free (a);
  if (ok)
    *lower_bound_ns = b.lower_bound_ns;
  else if (why.code == ERR_infeasible)
    *lower_bound_ns = -1;
  else
    *err = why;
  return ok || why.code == ERR_infeasible;
}

/* Plans of neighbouring budgets know of each other by this. */
typedef struct shared {
  bound_range *bounds; /* NULL: every point is planned by itself */
  ahead *ahead;        /* side by side; NULL: one after the other */
  char digest[TRACE_DIGEST];
  bool led;
  recipe lead; /* of the last plan that was searched for in full */
} shared;

static bool is_stopped (const curve_options *o) {
  return o->stop && o->stop (o->stop_context);
}

static bool is_near (const solve_options *how, const plan *p, int64_t lower_bound_ns) {
  return p->predicted.step_ns <= solve_enough_ns (how->gap_ppm, lower_bound_ns);
}

/* A few roundings as its neighbour's plan was made. Where they do not come as near as was asked
   for, the point is searched as if it were alone: it is never worse than that. */
static bool solve_near (const trace *t, const solve_options *how, const bound *guide, shared *with,
                        arena *a, solution *out, error *err) {
  solution near = { 0 };
  error why = { 0 };
  if (with->led) {
    effort like = { .follow = &with->lead, .guide = guide };
    if (!solve_with (t, how, &like, a, &near, &why) && why.code != ERR_infeasible)
      return error_set (err, why.code, "%s", why.text);
    if (near.plan && is_near (how, near.plan, near.bound.lower_bound_ns))
      return *out = near, true;
    why = (error){ 0 };
  }
  if (!solve (t, how, a, out, &why)) {
    near.ticks += out->ticks;
    *out = near;
    return (near.plan && (why.code == ERR_infeasible || why.code == ERR_limit)) ||
           error_set (err, why.code, "%s", why.text);
  }
  out->ticks += near.ticks;
  with->led = true;
  with->lead = out->recipe;
  if (near.plan && near.plan->predicted.step_ns < out->plan->predicted.step_ns)
    out->plan = near.plan;
  return true;
}

/* One budget's plan; NULL where none was found. Beyond the card's memory the card is thought
   larger, and as fast. */
static bool solve_at (const trace *t, const curve_options *o, shared *with, const bound *guide,
                      int64_t enough_ns, arena *a, curve_point *out, error *err) {
  int64_t budget_bytes = out->budget_bytes, *lower_bound_ns = &out->lower_bound_ns;
  device larger = *o->device;
  if (larger.memory_bytes < budget_bytes + larger.reserved_bytes)
    larger.memory_bytes = budget_bytes + larger.reserved_bytes;
  solve_options how = options_at (o, budget_bytes);
  solution s;
  error why = { 0 };
  how.device = &larger;
  how.trace_digest = with ? with->digest : NULL;
  out->plan = NULL;
  effort by_itself = { .enough_ns = enough_ns };
  if (enough_ns) /* near the bound is of no use where the bound itself is near what was asked for */
    how.gap_ppm = 1;
  if (enough_ns && how.sections != SECTIONS_OFF)
    by_itself.beat_ns = enough_ns + 1;
  if (with ? solve_near (t, &how, guide, with, a, &s, &why)
           : solve_with (t, &how, &by_itself, a, &s, &why)) {
    out->plan = s.plan;
    out->ticks = s.ticks;
    if (!guide || s.bound.lower_bound_ns > *lower_bound_ns)
      *lower_bound_ns = s.bound.lower_bound_ns;
    /* that of drops alone may speak only of plans that keep nothing beyond its last use */
    const allowed *x = &o->allowed;
    if (x->order != ORDER_AS_IS && !cover_keeps_nothing (&s.plan->certificate.cover))
      return true; /* of plans in the order of this one */
    bool of_all = x->sections != SECTIONS_OFF || x->recompute == RECOMPUTE_OFF;
    return of_all || curve_bound (t, o, budget_bytes, lower_bound_ns, err);
  }
  /* no plan found is not yet a proof that there is none */
  if (why.code == ERR_infeasible || why.code == ERR_limit)
    return guide || curve_bound (t, o, budget_bytes, lower_bound_ns, err);
  *err = why;
  return false;
}

bool curve_plan (const trace *t, const curve_options *o, int64_t enough_ns, arena *a,
                 curve_point *at, error *err) {
  assert (at && at->budget_bytes > 0);
  return solve_at (t, o, NULL, NULL, enough_ns, a, at, err);
}

bool curve_solve (const trace *t, const curve_options *o, int64_t budget_bytes, int64_t enough_ns,
                  arena *a, const plan **found, int64_t *lower_bound_ns, error *err) {
  assert (found && lower_bound_ns);
  curve_point at = { .budget_bytes = budget_bytes };
  bool ok = curve_plan (t, o, enough_ns, a, &at, err);
  *found = at.plan;
  *lower_bound_ns = at.lower_bound_ns;
  return ok;
}

static int64_t step_of (const curve_point *p) {
  return p->plan ? p->plan->predicted.step_ns : INT64_MAX;
}

/* A plan for less memory that is near the bound here need not be looked for again. At the last
   point nothing but the bound itself is near. */
static bool is_enough (const curve_options *o, const curve_point *before, int64_t lower_bound_ns,
                       bool last) {
  return before->plan &&
         step_of (before) <= (last ? lower_bound_ns : solve_enough_ns (o->gap_ppm, lower_bound_ns));
}

/* A bound of plans in one order says nothing of those in another. */
static void make_monotone (const curve_options *o, curve *c) {
  bool one_order = o->allowed.order == ORDER_AS_IS;
  for (int32_t i = 1; i < c->count; i++) {
    curve_point *p = &c->points[i];
    if (step_of (&p[-1]) < step_of (p)) {
      p->plan = p[-1].plan;
      p->plan_of = p[-1].plan_of;
      if (!one_order)
        p->lower_bound_ns = c->baseline_ns;
    }
  }
  for (int32_t i = c->count - 2; i >= 0; i--) {
    curve_point *p = &c->points[i];
    if (one_order && p->lower_bound_ns >= 0 && p[1].lower_bound_ns > p->lower_bound_ns)
      p->lower_bound_ns = p[1].lower_bound_ns;
    if (p[1].lower_bound_ns < 0)
      p->lower_bound_ns = -1;
  }
}

/* How far a point lies below the line from the first point with a plan to the last. */
static int32_t find_knee (const curve *c) {
  int32_t first = 0, knee = -1, last = c->count - 1;
  while (first < c->count && !c->points[first].plan)
    first++;
  if (last - first < 2)
    return -1;
  __int128 most = 0;
  const curve_point *f = &c->points[first], *l = &c->points[last];
  int64_t wide = l->budget_bytes - f->budget_bytes, high = step_of (f) - step_of (l);
  for (int32_t i = first + 1; i < last; i++) {
    const curve_point *p = &c->points[i];
    __int128 below = (__int128)(step_of (f) - step_of (p)) * wide -
                     (__int128)(p->budget_bytes - f->budget_bytes) * high;
    if (below > most) {
      most = below;
      knee = i;
    }
  }
  return knee;
}

/* Sorted, each once. */
static bool begin_curve (const trace *t, const curve_options *o, const int64_t *budgets,
                         int32_t count, arena *a, int64_t **sorted, curve *out, error *err) {
  *out = (curve){ .baseline_ns = trace_total_ns (t), .knee = -1 };
  int64_t *at = *sorted = NEW (a, count, int64_t, err);
  out->points = NEW (a, count, curve_point, err);
  needs n;
  if (!at || !out->points || !curve_floor (t, o, a, &out->floor_bytes, err) ||
      !needs_of (t, o->device, a, &n, err))
    return false;
  out->peak_bytes = curve_gross (o, n.bytes);
  for (int32_t i = 0; i < count; i++)
    at[i] = budgets[i];
  qsort (at, (size_t)count, sizeof *at, order_int64);
  for (int32_t i = 0; i < count; i++)
    if (i == 0 || at[i] > at[out->count - 1]) {
      at[out->count] = at[i];
      out->points[out->count++] =
          (curve_point){ .budget_bytes = at[i], .plan_of = -1, .lower_bound_ns = out->baseline_ns };
    }
  return true;
}

/* A time that no plan at this budget beats, without any solving; *guide is NULL if nobody knows. */
static bool bound_point (const trace *t, const curve_options *o, shared *with, arena *a,
                         curve_point *p, const bound **guide, error *err) {
  error why = { 0 };
  bound *b = NEW (a, 1, bound, err);
  *guide = NULL;
  p->lower_bound_ns = trace_total_ns (t);
  if (!b || !with->bounds)
    return b;
  if (bound_range_at (with->bounds, curve_net (o, p->budget_bytes), a, b, &why)) {
    p->lower_bound_ns = b->lower_bound_ns;
    *guide = b;
    return true;
  }
  p->lower_bound_ns = -1;
  if (why.code == ERR_infeasible)
    return true;
  *err = why;
  return false;
}

static bool plan_point (const trace *t, const curve_options *o, shared *with, curve *out, int32_t i,
                        arena *a, error *err) {
  curve_point *p = &out->points[i];
  const bound *guide;
  if (!bound_point (t, o, with, a, p, &guide, err))
    return false;
  if (p->lower_bound_ns < 0) /* none fits */
    return true;
  if (i > 0 && is_enough (o, &p[-1], p->lower_bound_ns, i + 1 == out->count)) {
    p->plan = p[-1].plan;
    p->plan_of = p[-1].plan_of;
    return true;
  }
  p->searched = true;
  if (with->ahead ? !ahead_take (with->ahead, i, a, p, err)
                  : !solve_at (t, o, with->bounds ? with : NULL, guide, 0, a, p, err))
    return false;
  p->plan_of = p->plan ? i : -1;
  return true;
}

/* A curve has many programs. With slots merged each takes half the time, and what that loses is
   less than what chords leave open: on ResNet-50, where it was tried, less than half a per mille.
 */
static bound_options range_options (const trace *t, const curve_options *o) {
  enum { FEW_OPS = 200, MANY_OPS = 600, BLOCKS = 80, ROUNDS = 1 };
  solve_options plain = options_at (o, 0);
  bound_options how = solve_bound_options (&plain);
  if (t->n_ops > FEW_OPS && t->n_ops <= MANY_OPS) { /* beyond, slots are merged in any case */
    how.whole_ops = FEW_OPS;
    how.blocks = BLOCKS;
    how.limit_rounds = ROUNDS;
  }
  return how;
}

/* Plans that only copy share bounds, and each is made like its neighbour; others may be searched
   side by side. */
static bool begin_shared (const trace *t, const curve_options *o, int64_t *sorted, arena *scratch,
                          curve *out, shared *with, error *err) {
  if (ahead_pays (t, o, out->count))
    return (with->ahead = ahead_new (t, o, out, err));
  if (out->count < 2 || allowed_rewrites (&o->allowed) || trace_has_streams (t))
    return true;
  bound_options how = range_options (t, o);
  for (int32_t i = 0; i < out->count; i++)
    sorted[i] = curve_net (o, sorted[i]);
  if (!trace_digest (t, with->digest, err) ||
      !bound_range_new (t, &how, sorted, out->count, tuned (o->tuning, TUNE_curve_apart_ppm),
                        scratch, &with->bounds, err))
    return false;
  out->programs = bound_range_seen (with->bounds).programs;
  return true;
}

static bool plan_points (const trace *t, const curve_options *o, shared *with, arena *a, curve *out,
                         error *err) {
  for (int32_t i = 0; i < out->count && !is_stopped (o); i++) {
    if (!plan_point (t, o, with, out, i, a, err))
      return false;
    out->points[i].asked = out->points[i].plan || !is_stopped (o);
    out->ticks += out->points[i].searched ? out->points[i].ticks : 0;
    if (o->progress)
      o->progress (o->context, i + 1, out->count,
                   out->points[i].plan ? step_of (&out->points[i]) : -1);
  }
  return true;
}

bool curve_of (const trace *t, const curve_options *o, const int64_t *budgets, int32_t count,
               arena *a, curve *out, error *err) {
  assert (count > 0 && budgets);
  shared with = { 0 };
  int64_t *sorted;
  arena *scratch = arena_made (err);
  bool ok = scratch && begin_curve (t, o, budgets, count, a, &sorted, out, err) &&
            begin_shared (t, o, sorted, scratch, out, &with, err) &&
            plan_points (t, o, &with, a, out, err);
  ahead_free (with.ahead);
  arena_free (scratch);
  if (!ok)
    return false;
  make_monotone (o, out);
  out->knee = find_knee (out);
  return true;
}

int64_t curve_price_ns (const curve *c, int32_t i) {
  assert (i >= 0 && i < c->count);
  if (i + 1 >= c->count || !c->points[i].plan)
    return 0;
  const curve_point *p = &c->points[i];
  return units_scale (step_of (p) - step_of (p + 1), GIB, p[1].budget_bytes - p->budget_bytes);
}

bool curve_is_wide (const curve_point *p) {
  return p->plan && p->lower_bound_ns > 0 &&
         step_of (p) > p->lower_bound_ns + units_scale (p->lower_bound_ns, CURVE_WIDE_PPM, 1000000);
}

void curve_point_write (json_writer *w, const curve *c, int32_t i) {
  const curve_point *p = &c->points[i];
  json_open_object (w);
  json_add_int (w, "budget_bytes", p->budget_bytes);
  if (p->plan && p->lower_bound_ns > 0)
    json_add_fixed (w, "gap", (double)step_of (p) / (double)p->lower_bound_ns - 1, 6);
  json_add_int (w, "lower_bound_ns", p->lower_bound_ns);
  json_add_int (w, "plan_of", p->plan_of);
  predicted_write (w, "predicted", p->plan ? &p->plan->predicted : NULL);
  json_add_int (w, "price_ns_per_gib", curve_price_ns (c, i));
  json_add_bool (w, "reached", p->asked);
  json_add_bool (w, "wide", curve_is_wide (p));
  json_close_object (w);
}
