/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/curve_case.h"

#include <stdio.h>

#include "solver/fleet/curve.h"
#include "tests/random_case.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

enum { POINTS = 7 };

static bool wrong (char *text, int size, const char *what, long long x, long long y) {
  snprintf (text, (size_t)size, "%s: %lld and %lld", what, x, y);
  return false;
}

static bool points_hold (const trace *t, const curve *v, curve_seen *seen, char *text, int size) {
  for (int32_t i = 0; i < v->count; i++) {
    const curve_point *p = &v->points[i], *before = i ? p - 1 : NULL;
    arena *a = arena_new (0);
    error err = { 0 };
    predicted again = { 0 };
    bool ok = !p->plan || (check_plan (t, p->plan, a, NULL, &err) &&
                           simulate_plan (t, p->plan, a, &again, &err));
    arena_free (a);
    seen->points++;
    seen->without_plan += !p->plan;
    seen->reused += p->plan && !p->searched;
    if (!ok)
      return wrong (text, size, err.text, i, 0);
    if (!p->plan && before && before->plan)
      return wrong (text, size, "less memory has a plan, more has none", i, 0);
    if (before && before->lower_bound_ns >= 0 && p->lower_bound_ns > before->lower_bound_ns)
      return wrong (text, size, "the bound rises", before->lower_bound_ns, p->lower_bound_ns);
    if (!p->plan)
      continue;
    seen->stalled += again.stall_ns > 0;
    if (again.step_ns != p->plan->predicted.step_ns || again.peak_bytes > p->budget_bytes)
      return wrong (text, size, "a point is not what it says", again.step_ns, again.peak_bytes);
    if (p->lower_bound_ns < 0 || p->lower_bound_ns > again.step_ns)
      return wrong (text, size, "a plan beats its bound", again.step_ns, p->lower_bound_ns);
    if (before && before->plan && before->plan->predicted.step_ns < again.step_ns)
      return wrong (text, size, "more memory is slower", before->plan->predicted.step_ns,
                    again.step_ns);
  }
  const curve_point *last = &v->points[v->count - 1];
  if (!last->plan || last->plan->predicted.step_ns != v->baseline_ns)
    return wrong (text, size, "with room for everything something stalls", v->baseline_ns, 0);
  return true;
}

/* A plan at one end, none below the other, and no point of the curve that says otherwise. */
static bool least_holds (const curve *v, const min_memory *m, char *text, int size) {
  if (!m->plan)
    return wrong (text, size, "no plan even at the peak", m->most_ns, m->peak_bytes);
  if (m->plan->predicted.step_ns > m->most_ns)
    return wrong (text, size, "its plan is too slow", m->plan->predicted.step_ns, m->most_ns);
  if (m->plan->budget_bytes <= m->none_below_bytes)
    return wrong (text, size, "a plan where there is none", m->plan->budget_bytes,
                  m->none_below_bytes);
  for (int32_t i = 0; i < v->count; i++) {
    const curve_point *p = &v->points[i];
    if (p->plan && p->plan->predicted.step_ns <= m->most_ns &&
        p->plan->budget_bytes <= m->none_below_bytes)
      return wrong (text, size, "the curve has a plan where there is none", p->plan->budget_bytes,
                    m->none_below_bytes);
    if (p->lower_bound_ns > m->most_ns && p->budget_bytes >= m->plan->budget_bytes)
      return wrong (text, size, "the curve's bound forbids its plan", p->budget_bytes,
                    m->plan->budget_bytes);
  }
  return true;
}

bool curve_holds (uint64_t seed, curve_seen *seen, char *text, int size) {
  error err = { 0 };
  random_case c;
  arena *a = arena_new (0);
  case_options make = { .seed = seed,
                        .features = CASE_WRAP | CASE_WORKSPACE | CASE_SHARED_RATE | CASE_COPY_NS |
                                    CASE_GAPS | CASE_LIVES,
                        .most_ops = 14,
                        .most_tensors = 10 };
  bool ok = a && random_case_make (&make, a, &c, &err);
  curve v = { 0 };
  min_memory m;
  int64_t *budgets, slowdown_ppm = (int64_t)(seed % 5) * 40000;
  int32_t n;
  device d = ok ? c.plan->device : (device){ 0 };
  d.memory_bytes = d.host_bytes = (int64_t)1 << 40;
  d.reserved_bytes = 0;
  curve_options o = { .device = &d, .host_bytes = d.host_bytes, .limit_ticks = 4000, .seed = 3 };
  ok = ok && curve_range (c.trace, &d, a, &v.floor_bytes, &v.peak_bytes, &err) &&
       curve_even (v.floor_bytes, v.peak_bytes, d.granule_bytes, POINTS, a, &budgets, &n, &err) &&
       curve_of (c.trace, &o, budgets, n, a, &v, &err) &&
       min_memory_of (c.trace, &o, slowdown_ppm, 0, a, &m, &err);
  if (!ok) {
    snprintf (text, (size_t)size, "%s", err.text);
  } else {
    seen->asked++;
    seen->solves += m.solves;
    seen->bounds += m.bounds;
    ok = points_hold (c.trace, &v, seen, text, size) && least_holds (&v, &m, text, size);
  }
  arena_free (a);
  return ok;
}
