#include "solver/curve.h"

#include <stdlib.h>

#include "base/units.h"
#include "solver/gaps.h"
#include "solver/recompute.h"
#include "solver/schedule.h"

enum { LIMIT_TICKS = 200000, MOST_ASKED = 24, GAP_PPM = 5000 };
#define GIB ((int64_t)1 << 30)

bool curve_range (const trace *t, const device *dev, arena *a, int64_t *floor_bytes,
                  int64_t *peak_bytes, error *err) {
  int64_t pool_below;
  units u;
  gaps g;
  arena_mark mark = arena_here (a);
  bool ok = schedule_pool (t, NULL, 0, dev->granule_bytes, a, &pool_below, NULL, err) &&
            units_of (t, NULL, 0, dev->granule_bytes, pool_below, a, &u, err) &&
            gaps_of (&u, dev->granule_bytes, INT64_MAX / 8, a, &g, err);
  if (ok) {
    *floor_bytes = g.floor_bytes;
    *peak_bytes = g.peak_bytes;
  }
  arena_back (a, mark);
  return ok;
}

bool curve_even (int64_t floor_bytes, int64_t peak_bytes, int64_t granule_bytes, int32_t count,
                 arena *a, int64_t **budgets, int32_t *n, error *err) {
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
                          .limit_ticks = o->limit_ticks ? o->limit_ticks : LIMIT_TICKS,
                          .seed = o->seed,
                          .sections = o->sections,
                          .recompute = o->recompute,
                          .log = o->log };
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
  arena *a = arena_new (0);
  if (!a)
    return error_set (err, ERR_memory, "out of memory");
  bool rewrites = o->sections != SECTIONS_OFF || o->recompute != RECOMPUTE_OFF;
  bool ok = rewrites ? weak_bound (t, &how, a, &b.lower_bound_ns, &why)
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

/* One budget's plan; NULL where none was found. Beyond the card's memory the card is thought
   larger, and as fast. */
static bool solve_at (const trace *t, const curve_options *o, int64_t budget_bytes, arena *a,
                      const plan **found, int64_t *lower_bound_ns, error *err) {
  device larger = *o->device;
  if (larger.memory_bytes < budget_bytes + larger.reserved_bytes)
    larger.memory_bytes = budget_bytes + larger.reserved_bytes;
  solve_options how = options_at (o, budget_bytes);
  solution s;
  error why = { 0 };
  how.device = &larger;
  *found = NULL;
  if (solve (t, &how, a, &s, &why)) {
    *found = s.plan;
    *lower_bound_ns = s.bound.lower_bound_ns;
    return how.sections == SECTIONS_OFF && how.recompute == RECOMPUTE_OFF
               ? true
               : curve_bound (t, o, budget_bytes, lower_bound_ns, err);
  }
  if (why.code == ERR_infeasible) /* no plan found is not yet a proof that there is none */
    return curve_bound (t, o, budget_bytes, lower_bound_ns, err);
  *err = why;
  return false;
}

static int by_bytes (const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t step_of (const curve_point *p) {
  return p->plan ? p->plan->predicted.step_ns : INT64_MAX;
}

/* Nothing is faster than ops without stalls, so what is that near to them need not be looked for
   again with more memory. */
static bool is_enough (const curve_options *o, const curve_point *p, int64_t baseline_ns) {
  int64_t gap_ppm = o->gap_ppm ? o->gap_ppm : GAP_PPM;
  return p->plan && step_of (p) <= baseline_ns + units_scale (baseline_ns, gap_ppm, 1000000);
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

bool curve_of (const trace *t, const curve_options *o, const int64_t *budgets, int32_t count,
               arena *a, curve *out, error *err) {
  *out = (curve){ .baseline_ns = trace_total_ns (t), .knee = -1 };
  int64_t *sorted = NEW (a, count, int64_t, err);
  out->points = NEW (a, count, curve_point, err);
  if (!sorted || !out->points ||
      !curve_range (t, o->device, a, &out->floor_bytes, &out->peak_bytes, err))
    return false;
  for (int32_t i = 0; i < count; i++)
    sorted[i] = budgets[i];
  qsort (sorted, (size_t)count, sizeof *sorted, by_bytes);
  for (int32_t i = 0; i < count; i++)
    if (i == 0 || sorted[i] > sorted[i - 1])
      out->points[out->count++] = (curve_point){ .budget_bytes = sorted[i], .plan_of = -1 };
  for (int32_t i = 0; i < out->count; i++) {
    curve_point *p = &out->points[i];
    bool last = i + 1 == out->count; /* there, exactly */
    if (i > 0 &&
        (last ? step_of (&p[-1]) == out->baseline_ns : is_enough (o, &p[-1], out->baseline_ns))) {
      p->plan = p[-1].plan;
      p->plan_of = p[-1].plan_of;
      p->lower_bound_ns = out->baseline_ns;
    } else {
      if (!solve_at (t, o, p->budget_bytes, a, &p->plan, &p->lower_bound_ns, err))
        return false;
      p->plan_of = p->plan ? i : -1;
      p->searched = true;
    }
    if (o->progress)
      o->progress (o->context, i + 1, out->count, p->plan ? step_of (p) : -1);
  }
  make_monotone (out);
  out->knee = find_knee (out);
  return true;
}

int64_t curve_price_ns (const curve *c, int32_t i) {
  if (i + 1 >= c->count || !c->points[i].plan)
    return 0;
  const curve_point *p = &c->points[i];
  return units_scale (step_of (p) - step_of (p + 1), GIB, p[1].budget_bytes - p->budget_bytes);
}

/* ---- the smallest memory ---- */

/* Afterwards no plan below *none_below is fast enough. */
static bool bisect_bound (const trace *t, const curve_options *o, int64_t fine_bytes, min_memory *m,
                          error *err) {
  int64_t low = m->none_below_bytes, high = m->peak_bytes;
  while (high - low > fine_bytes && m->bounds < MOST_ASKED) {
    int64_t middle = low + (high - low) / 2, lower_bound;
    m->bounds++;
    if (!curve_bound (t, o, middle, &lower_bound, err))
      return false;
    if (lower_bound < 0 || lower_bound > m->most_ns)
      low = middle;
    else
      high = middle;
  }
  m->none_below_bytes = low;
  return true;
}

/* A plan that is fast enough at so many granules; *fits says whether one was found. */
static bool try_plan (const trace *t, const curve_options *o, int64_t granules, arena *a,
                      min_memory *m, bool *fits, error *err) {
  const plan *p;
  int64_t lower_bound;
  arena_mark mark = arena_here (a);
  m->solves++;
  if (!solve_at (t, o, granules * o->device->granule_bytes, a, &p, &lower_bound, err))
    return false;
  *fits = p && p->predicted.step_ns <= m->most_ns;
  if (*fits)
    m->plan = p;
  else
    arena_back (a, mark);
  return true;
}

/* Plans are near their bound, so one is looked for from where the bound stopped, in steps that
   double; between the last step and the one before, by halving. A little above the peak nothing
   moves: places on a circle may take more than is held at any moment. */
static bool climb_plans (const trace *t, const curve_options *o, int64_t fine_bytes, arena *a,
                         min_memory *m, error *err) {
  int64_t granule = o->device->granule_bytes;
  int64_t low = m->none_below_bytes / granule, top = units_div_up (m->peak_bytes, granule);
  top += 8 + top / 16;
  int64_t fine = fine_bytes / granule > 1 ? fine_bytes / granule : 1, step = fine, high = top;
  bool fits = false;
  while (!fits) {
    high = low + step < top ? low + step : top;
    if (!try_plan (t, o, high, a, m, &fits, err))
      return false;
    if (!fits && high == top)
      return true;
    if (!fits)
      low = high;
    step *= 2;
  }
  while (high - low > fine) {
    int64_t middle = low + (high - low) / 2;
    if (!try_plan (t, o, middle, a, m, &fits, err))
      return false;
    if (fits)
      high = middle;
    else
      low = middle;
  }
  return true;
}

bool min_memory_of (const trace *t, const curve_options *o, int64_t slowdown_ppm,
                    int64_t fine_bytes, arena *a, min_memory *out, error *err) {
  *out = (min_memory){ .baseline_ns = trace_total_ns (t) };
  if (!curve_range (t, o->device, a, &out->floor_bytes, &out->peak_bytes, err))
    return false;
  out->most_ns = out->baseline_ns + units_scale (out->baseline_ns, slowdown_ppm, 1000000);
  int64_t fine = fine_bytes > 0 ? fine_bytes : (out->peak_bytes - out->floor_bytes) / 64;
  if (fine < o->device->granule_bytes)
    fine = o->device->granule_bytes;
  return bisect_bound (t, o, fine, out, err) && climb_plans (t, o, fine, a, out, err);
}
