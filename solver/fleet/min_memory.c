/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bisection: of the bound first, which no plan can beat, and then of plans, from there upward. */
#include <assert.h>

#include "base/units.h"
#include "solver/fleet/curve.h"
#include "solver/fleet/needs.h"

enum { MOST_ASKED = 24 };

static bool is_stopped (const curve_options *o) {
  return o->stop && o->stop (o->stop_context);
}

/* Afterwards no plan below *none_below is fast enough. */
static bool bisect_bound (const trace *t, const curve_options *o, int64_t fine_bytes, min_memory *m,
                          error *err) {
  int64_t low = m->none_below_bytes, high = m->peak_bytes;
  while (high - low > fine_bytes && m->bounds < MOST_ASKED && !is_stopped (o)) {
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

/* A plan that is fast enough in `granules`; *fits says whether one was found. */
static bool try_plan (const trace *t, const curve_options *o, int64_t granules, arena *a,
                      min_memory *m, bool *fits, error *err) {
  const plan *p;
  int64_t lower_bound, budget_bytes = granules * o->device->granule_bytes;
  arena_mark mark = arena_here (a);
  m->solves++;
  if (!curve_solve (t, o, budget_bytes, m->most_ns, a, &p, &lower_bound, err))
    return false;
  *fits = p && p->predicted.step_ns <= m->most_ns;
  if (*fits) {
    m->plan = p;
    m->plan_bytes = budget_bytes;
  } else
    arena_back (a, mark);
  return true;
}

/* Plans are near their bound, so one is looked for from where the bound stopped, in steps that
   double; between the last step and the one before, by halving. Where more than copies is allowed
   the bound says little, and budgets that are too small take longest: by halving alone. */
static bool search_plans (const trace *t, const curve_options *o, int64_t first, int64_t top,
                          int64_t fine, arena *a, min_memory *m, error *err) {
  int64_t low = first, high = top, step = allowed_rewrites (&o->allowed) ? top - first : fine;
  bool fits = false;
  while (!fits && !is_stopped (o)) {
    high = low + step < top ? low + step : top;
    if (!try_plan (t, o, high, a, m, &fits, err))
      return false;
    if (!fits && high == top)
      return true;
    if (!fits)
      low = high;
    step *= 2;
  }
  while (high - low > fine && !is_stopped (o)) {
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

/* Stopped before there was any: if nothing has to move, nothing is searched for. */
static bool plan_all (const trace *t, const curve_options *o, int64_t top, arena *a, min_memory *m,
                      error *err) {
  curve_options how = *o;
  bool fits;
  how.stop = NULL;
  return try_plan (t, &how, units_div_up (m->peak_bytes, o->device->granule_bytes), a, m, &fits,
                   err) &&
         (fits || try_plan (t, &how, top, a, m, &fits, err));
}

/* The bisection may end above what the step needs, where nothing has to move. */
static bool try_needs (const trace *t, const curve_options *o, arena *a, min_memory *m,
                       error *err) {
  int64_t granule = o->device->granule_bytes, needs = units_div_up (m->peak_bytes, granule);
  bool fits;
  return (m->plan && m->plan_bytes <= needs * granule) || is_stopped (o) ||
         try_plan (t, o, needs, a, m, &fits, err);
}

/* A little above the peak nothing moves: places on a circle may take more than is held at any
   moment. */
static bool climb_plans (const trace *t, const curve_options *o, int64_t fine_bytes, arena *a,
                         min_memory *m, error *err) {
  int64_t granule = o->device->granule_bytes, top = units_div_up (m->peak_bytes, granule);
  int64_t fine = fine_bytes / granule > 1 ? fine_bytes / granule : 1;
  top += 8 + top / 16;
  return search_plans (t, o, m->none_below_bytes / granule, top, fine, a, m, err) &&
         try_needs (t, o, a, m, err) &&
         (m->plan || !is_stopped (o) || plan_all (t, o, top, a, m, err));
}

bool min_memory_of (const trace *t, const curve_options *o, int64_t slowdown_ppm,
                    int64_t fine_bytes, arena *a, min_memory *out, error *err) {
  assert (slowdown_ppm >= 0 && fine_bytes >= 0);
  *out = (min_memory){ .baseline_ns = trace_total_ns (t) };
  int64_t ordinary_bytes;
  if (!curve_range (t, o->device, a, &ordinary_bytes, &out->peak_bytes, err) ||
      !curve_floor (t, o, a, &out->floor_bytes, err))
    return false;
  ordinary_bytes = curve_gross (o, ordinary_bytes);
  out->peak_bytes = curve_gross (o, out->peak_bytes);
  out->most_ns = out->baseline_ns + units_scale (out->baseline_ns, slowdown_ppm, 1000000);
  int64_t fine = fine_bytes > 0 ? fine_bytes : (out->peak_bytes - ordinary_bytes) / 64;
  if (fine < o->device->granule_bytes)
    fine = o->device->granule_bytes;
  return bisect_bound (t, o, fine, out, err) && climb_plans (t, o, fine, a, out, err);
}
