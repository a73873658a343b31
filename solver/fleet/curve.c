#include "solver/fleet/curve.h"

#include <assert.h>
#include <stdlib.h>

#include "base/units.h"
#include "solver/flow/bound_range.h"
#include "solver/flow/gaps.h"
#include "solver/recompute/recompute.h"
#include "solver/place/schedule.h"

#define GIB ((int64_t)1 << 30)

bool curve_range (const trace *t, const device *dev, arena *a, int64_t *floor_bytes,
                  int64_t *peak_bytes, error *err) {
  count_rule how = { .budget_bytes = INT64_MAX / 8, .granule_bytes = dev->granule_bytes };
  arena_mark mark = arena_here (a);
  counted_step *step = NEW (a, 1, counted_step, err);
  bool ok = step && schedule_count (t, &how, a, step, err);
  if (ok) {
    *floor_bytes = step->gaps.floor_bytes;
    *peak_bytes = step->gaps.peak_bytes;
  }
  arena_back (a, mark);
  return ok;
}

bool curve_even (int64_t floor_bytes, int64_t peak_bytes, int64_t granule_bytes, int32_t count,
                 arena *a, int64_t **budgets, int32_t *n, error *err) {
  assert (count >= 2 && granule_bytes > 0);
  int64_t first = units_div_up (floor_bytes, granule_bytes);
  int64_t last = units_div_up (peak_bytes, granule_bytes);
  last += last / 64 + 4;
  *n = 0;
  *budgets = NEW (a, count, int64_t, err);
  for (int32_t i = 0; *budgets && i < count; i++) {
    int64_t at = (first + units_scale (last - first, i, count - 1)) * granule_bytes;
    if (*n == 0 || at > (*budgets)[*n - 1])
      (*budgets)[(*n)++] = at;
  }
  return *budgets;
}

static solve_options options_at (const curve_options *o, int64_t budget_bytes) {
  return (solve_options){ .device = o->device,
                          .budget_bytes = budget_bytes,
                          .host_bytes = o->host_bytes,
                          .gap_ppm = o->gap_ppm,
                          .limit_ticks =
                              o->limit_ticks ? o->limit_ticks : tuned (o->tuning, TUNE_curve_ticks),
                          .seed = o->seed,
                          .sections = o->sections,
                          .recompute = o->recompute,
                          .log = o->log,
                          .tuning = o->tuning };
}

static bool rewrites (const curve_options *o) {
  return o->sections != SECTIONS_OFF || o->recompute != RECOMPUTE_OFF;
}

/* Cuts add time to ops and never take any away; drops may also spare the link. */
static bool weak_bound (const trace *t, const solve_options *how, arena *a, int64_t *ns,
                        error *err) {
  *ns = trace_total_ns (t);
  if (how->sections != SECTIONS_OFF)
    return true;
  int64_t drops_ns;
  if (!recompute_bound (t, NULL, how, a, &drops_ns, err))
    return false;
  *ns = drops_ns == INT64_MAX ? -1 : drops_ns > *ns ? drops_ns : *ns;
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
  bool ok = rewrites (o) ? weak_bound (t, &how, a, &b.lower_bound_ns, &why)
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

/* What plans of neighbouring budgets know of each other. */
typedef struct shared {
  bound_range *bounds; /* NULL: every point is planned by itself */
  char digest[TRACE_DIGEST];
  bool led;
  recipe lead; /* of the last plan that was searched for in full */
  int64_t lead_gap_ppm;
} shared;

static int64_t gap_ppm_of (const solution *s) {
  int64_t over = s->plan->predicted.step_ns - s->bound.lower_bound_ns;
  return s->bound.lower_bound_ns > 0 ? units_scale (over, 1000000, s->bound.lower_bound_ns) : 0;
}

/* A few roundings as its neighbour's was made; a whole search where they come out worse than that,
   or bad: at the floor all plans are. */
static bool solve_near (const trace *t, const solve_options *o, const bound *guide, shared *with,
                        arena *a, solution *out, error *err) {
  int64_t gap_ppm = o->gap_ppm ? o->gap_ppm : SOLVE_GAP_PPM;
  int64_t bad_ppm = tuned (o->tuning, TUNE_curve_bad_ppm);
  effort how = { .guide = guide };
  solution near = { 0 };
  error why = { 0 };
  if (with->led) {
    effort like = how;
    like.follow = &with->lead;
    like.gap_ppm = with->lead_gap_ppm < bad_ppm ? with->lead_gap_ppm : bad_ppm;
    if (like.gap_ppm < gap_ppm)
      like.gap_ppm = gap_ppm;
    if (!solve_with (t, o, &like, a, &near, &why) && why.code != ERR_infeasible)
      return error_set (err, why.code, "%s", why.text);
    if (near.plan && gap_ppm_of (&near) <= like.gap_ppm + tuned (o->tuning, TUNE_curve_worse_ppm))
      return *out = near, true;
  }
  why = (error){ 0 };
  /* the first point has seen what the policies find, where that takes long */
  how.own_only = with->led && t->n_ops > tuned (o->tuning, TUNE_curve_own_ops);
  if (!solve_with (t, o, &how, a, out, &why)) {
    *out = near;
    return (near.plan && why.code == ERR_infeasible) || error_set (err, why.code, "%s", why.text);
  }
  with->led = true;
  with->lead = out->recipe;
  with->lead_gap_ppm = gap_ppm_of (out);
  if (near.plan && near.plan->predicted.step_ns < out->plan->predicted.step_ns)
    *out = near;
  return true;
}

/* One budget's plan; NULL where none was found. Beyond the card's memory the card is thought
   larger, and as fast. */
static bool solve_at (const trace *t, const curve_options *o, shared *with, const bound *guide,
                      arena *a, curve_point *out, error *err) {
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
  if (with ? solve_near (t, &how, guide, with, a, &s, &why) : solve (t, &how, a, &s, &why)) {
    out->plan = s.plan;
    *lower_bound_ns = s.bound.lower_bound_ns;
    /* that of drops alone may speak only of plans that keep nothing beyond its last use */
    bool of_all = o->sections != SECTIONS_OFF || o->recompute == RECOMPUTE_OFF;
    return of_all || curve_bound (t, o, budget_bytes, lower_bound_ns, err);
  }
  /* no plan found is not yet a proof that there is none */
  if (why.code == ERR_infeasible || (why.code == ERR_limit && rewrites (o)))
    return guide || curve_bound (t, o, budget_bytes, lower_bound_ns, err);
  *err = why;
  return false;
}

bool curve_solve (const trace *t, const curve_options *o, int64_t budget_bytes, arena *a,
                  const plan **found, int64_t *lower_bound_ns, error *err) {
  assert (found && lower_bound_ns);
  curve_point at = { .budget_bytes = budget_bytes, .lower_bound_ns = *lower_bound_ns };
  bool ok = solve_at (t, o, NULL, NULL, a, &at, err);
  *found = at.plan;
  *lower_bound_ns = at.lower_bound_ns;
  return ok;
}

static int by_bytes (const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t step_of (const curve_point *p) {
  return p->plan ? p->plan->predicted.step_ns : INT64_MAX;
}

/* A plan for less memory that is near the bound here need not be looked for again. At the last
   point nothing but the bound itself is near. */
static bool is_enough (const curve_options *o, const curve_point *before, int64_t lower_bound_ns,
                       bool last) {
  int64_t gap_ppm = last ? 0 : o->gap_ppm ? o->gap_ppm : SOLVE_GAP_PPM;
  return before->plan &&
         step_of (before) <= lower_bound_ns + units_scale (lower_bound_ns, gap_ppm, 1000000);
}

static void make_monotone (curve *c) {
  for (int32_t i = 1; i < c->count; i++) {
    curve_point *p = &c->points[i];
    if (step_of (&p[-1]) < step_of (p)) {
      p->plan = p[-1].plan;
      p->plan_of = p[-1].plan_of;
    }
  }
  for (int32_t i = c->count - 2; i >= 0; i--) {
    curve_point *p = &c->points[i];
    if (p->lower_bound_ns >= 0 && p[1].lower_bound_ns > p->lower_bound_ns)
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
  if (!at || !out->points ||
      !curve_range (t, o->device, a, &out->floor_bytes, &out->peak_bytes, err))
    return false;
  for (int32_t i = 0; i < count; i++)
    at[i] = budgets[i];
  qsort (at, (size_t)count, sizeof *at, by_bytes);
  for (int32_t i = 0; i < count; i++)
    if (i == 0 || at[i] > at[out->count - 1]) {
      at[out->count] = at[i];
      out->points[out->count++] = (curve_point){ .budget_bytes = at[i], .plan_of = -1 };
    }
  return true;
}

/* What no plan at this budget beats, without any solving; *guide is NULL where nobody knows. */
static bool bound_point (const trace *t, shared *with, arena *a, curve_point *p,
                         const bound **guide, error *err) {
  error why = { 0 };
  bound *b = NEW (a, 1, bound, err);
  *guide = NULL;
  p->lower_bound_ns = trace_total_ns (t);
  if (!b || !with->bounds)
    return b;
  if (bound_range_at (with->bounds, p->budget_bytes, a, b, &why)) {
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
  if (!bound_point (t, with, a, p, &guide, err))
    return false;
  if (p->lower_bound_ns < 0) /* none fits */
    return true;
  if (i > 0 && is_enough (o, &p[-1], p->lower_bound_ns, i + 1 == out->count)) {
    p->plan = p[-1].plan;
    p->plan_of = p[-1].plan_of;
    return true;
  }
  p->searched = true;
  if (!solve_at (t, o, with->bounds ? with : NULL, guide, a, p, err))
    return false;
  p->plan_of = p->plan ? i : -1;
  return true;
}

/* A curve has many programs. With slots merged each takes half the time, and what that loses is
   less than what chords leave open: on ResNet-50, where it was tried, less than half a per mille.
 */
static bound_options range_options (const trace *t, const curve_options *o) {
  enum { FEW_OPS = 200, MANY_OPS = 600, BLOCKS = 80, ROUNDS = 1 };
  bound_options how = { .dev = o->device,
                        .host_bytes = o->host_bytes,
                        .any_units = true,
                        .log = o->log,
                        .tuning = o->tuning };
  if (t->n_ops > FEW_OPS && t->n_ops <= MANY_OPS) { /* beyond, slots are merged in any case */
    how.whole_ops = FEW_OPS;
    how.blocks = BLOCKS;
    how.limit_rounds = ROUNDS;
  }
  return how;
}

bool curve_of (const trace *t, const curve_options *o, const int64_t *budgets, int32_t count,
               arena *a, curve *out, error *err) {
  assert (count > 0 && budgets);
  shared with = { 0 };
  int64_t *sorted;
  arena *scratch = arena_made (err);
  bool ok = scratch && begin_curve (t, o, budgets, count, a, &sorted, out, err);
  if (ok && out->count > 1 && !rewrites (o)) {
    bound_options how = range_options (t, o);
    ok = trace_digest (t, with.digest, err) &&
         bound_range_new (t, &how, sorted, out->count, tuned (o->tuning, TUNE_curve_apart_ppm),
                          scratch, &with.bounds, err);
    out->programs = ok ? bound_range_seen (with.bounds).programs : 0;
  }
  for (int32_t i = 0; ok && i < out->count; i++) {
    ok = plan_point (t, o, &with, out, i, a, err);
    if (ok && o->progress)
      o->progress (o->context, i + 1, out->count,
                   out->points[i].plan ? step_of (&out->points[i]) : -1);
  }
  arena_free (scratch);
  if (!ok)
    return false;
  make_monotone (out);
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
