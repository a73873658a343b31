/* Curves on random traces: bounds below steps, both lines falling, the smallest memory between its
   ends; and packing against trying everything. */
#include "base/random.h"
#include "solver/curve.h"
#include "solver/pack.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check.h"
#include "trace/simulate.h"

enum { CURVES = 12, PACKS = 300, POINTS = 4 };

static void set_up (uint64_t seed, arena *a, random_case *c, curve_options *o) {
  error err = { 0 };
  case_options how = { .seed = seed,
                       .features =
                           CASE_EVERYTHING & ~(CASE_ZERO_NS | CASE_SECTIONS | CASE_RECOMPUTE),
                       .most_ops = (int32_t)(4 + seed % 17),
                       .most_tensors = (int32_t)(3 + seed % 9) };
  ck_assert_msg (random_case_make (&how, a, c, &err), "%s", err.text);
  device *d = &c->plan->device;
  d->memory_bytes = (int64_t)1 << 40;
  *o = (curve_options){ .device = d, .host_bytes = d->host_bytes, .limit_ticks = 20000 };
}

static void check_curve (uint64_t seed, const trace *t, const curve *v) {
  for (int32_t i = 0; i < v->count; i++) {
    const curve_point *p = &v->points[i];
    error err = { 0 };
    predicted again;
    arena *a = arena_new (0);
    if (p->plan) {
      ck_assert_int_le (p->plan->budget_bytes, p->budget_bytes);
      ck_assert_msg (p->lower_bound_ns <= p->plan->predicted.step_ns, "seed %d point %d", (int)seed,
                     i);
      ck_assert_msg (check_plan (t, p->plan, a, NULL, &err), "seed %d: %s", (int)seed, err.text);
      ck_assert_msg (simulate_plan (t, p->plan, a, &again, &err), "%s", err.text);
      ck_assert_int_eq (again.step_ns, p->plan->predicted.step_ns);
    }
    if (i > 0 && v->points[i - 1].plan) {
      ck_assert_ptr_nonnull (p->plan);
      ck_assert_int_le (p->plan->predicted.step_ns, v->points[i - 1].plan->predicted.step_ns);
      ck_assert_int_le (p->lower_bound_ns, v->points[i - 1].lower_bound_ns);
    }
    arena_free (a);
  }
}

START_TEST (more_memory_is_never_slower_and_bounds_lie_below) {
  int fell = 0;
  for (uint64_t seed = 1; seed <= CURVES; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    curve_options o;
    curve v;
    int64_t low, high, *budgets;
    int32_t n;
    set_up (seed, a, &c, &o);
    ck_assert_msg (curve_range (c.trace, o.device, a, &low, &high, &err), "%s", err.text);
    ck_assert_int_le (low, high);
    ck_assert (curve_even (low, high, o.device->granule_bytes, POINTS, a, &budgets, &n, &err));
    ck_assert_msg (curve_of (c.trace, &o, budgets, n, a, &v, &err), "seed %d: %s", (int)seed,
                   err.text);
    check_curve (seed, c.trace, &v);
    const curve_point *last = &v.points[v.count - 1];
    ck_assert_msg (last->plan && last->plan->predicted.step_ns == v.baseline_ns,
                   "seed %d: at the peak nothing has to move", (int)seed);
    fell += v.points[0].plan && v.points[0].plan->predicted.step_ns > v.baseline_ns;
    arena_free (a);
  }
  ck_assert_int_gt (fell, 0);
}
END_TEST

START_TEST (the_smallest_memory_lies_between_its_ends) {
  int below_peak = 0;
  for (uint64_t seed = 1; seed <= CURVES; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    curve_options o;
    min_memory m;
    int64_t slowdown = (int64_t)(seed % 5) * 100000, bound;
    set_up (seed, a, &c, &o);
    ck_assert_msg (min_memory_of (c.trace, &o, slowdown, 0, a, &m, &err), "%s", err.text);
    ck_assert_msg (m.plan != NULL, "seed %d: everything on the device is fast enough", (int)seed);
    ck_assert_int_le (m.none_below_bytes, m.plan->budget_bytes);
    ck_assert_int_le (m.plan->predicted.step_ns, m.most_ns);
    ck_assert_int_le (m.plan->budget_bytes, m.peak_bytes + o.device->granule_bytes);
    if (m.none_below_bytes > 0) {
      ck_assert (curve_bound (c.trace, &o, m.none_below_bytes, &bound, &err));
      ck_assert (bound < 0 || bound > m.most_ns);
    }
    /* the curve at that budget is as fast */
    curve v;
    ck_assert (curve_of (c.trace, &o, &m.plan->budget_bytes, 1, a, &v, &err));
    ck_assert_int_eq (v.points[0].plan->predicted.step_ns, m.plan->predicted.step_ns);
    below_peak += m.plan->budget_bytes < m.peak_bytes;
    arena_free (a);
  }
  ck_assert_int_gt (below_peak, 0);
}
END_TEST

typedef struct tried {
  bool fits;
  int64_t first, second; /* the objective, and the other one */
} tried;

/* Every combination, as an odometer. */
static tried try_all (const pack_job *jobs, int32_t n, const pack_limits *limits) {
  int32_t at[4] = { 0 };
  tried best = { 0 };
  for (;;) {
    int64_t budget = 0, host = 0, share = 0, worst = 0, total = 0;
    for (int32_t i = 0; i < n; i++) {
      const pack_choice *c = &jobs[i].choices[at[i]];
      budget += c->budget_bytes;
      host += c->host_bytes;
      share += c->share_ppm;
      total += c->slowdown_ppm;
      worst = c->slowdown_ppm > worst ? c->slowdown_ppm : worst;
    }
    bool by_worst = limits->objective == PACK_WORST;
    int64_t first = by_worst ? worst : total, second = by_worst ? total : worst;
    if (budget <= limits->memory_bytes && host <= limits->host_bytes &&
        share <= limits->share_ppm &&
        (!best.fits || first < best.first || (first == best.first && second < best.second)))
      best = (tried){ true, first, second };
    int32_t i = 0;
    while (i < n && ++at[i] == jobs[i].count)
      at[i++] = 0;
    if (i == n)
      return best;
  }
}

START_TEST (packing_is_as_good_as_trying_everything) {
  int fitted = 0, refused = 0;
  for (uint64_t seed = 1; seed <= PACKS; seed++) {
    random_state r = random_seed (seed);
    error err = { 0 };
    arena *a = arena_new (0);
    pack_choice choices[4][7];
    pack_job jobs[4];
    pack_answer got;
    int32_t n = 1 + (int32_t)(random_next (&r) % 4);
    for (int32_t i = 0; i < n; i++) {
      jobs[i] = (pack_job){ choices[i], 1 + (int32_t)(random_next (&r) % 7) };
      for (int32_t k = 0; k < jobs[i].count; k++)
        choices[i][k] =
            (pack_choice){ (int64_t)(random_next (&r) % 12), (int64_t)(random_next (&r) % 9),
                           1 + (int64_t)(random_next (&r) % 5), (int64_t)(random_next (&r) % 20) };
    }
    pack_limits limits = { 2 + (int64_t)(random_next (&r) % 24),
                           2 + (int64_t)(random_next (&r) % 20),
                           4 + (int64_t)(random_next (&r) % 9),
                           seed % 2 ? PACK_WORST : PACK_TOTAL };
    tried want = try_all (jobs, n, &limits);
    ck_assert (pack_choose (jobs, n, &limits, a, &got, &err));
    ck_assert_msg (got.fits == want.fits, "seed %d", (int)seed);
    if (got.fits) {
      bool by_worst = limits.objective == PACK_WORST;
      ck_assert_int_eq (by_worst ? got.worst_ppm : got.total_ppm, want.first);
      ck_assert_int_eq (by_worst ? got.total_ppm : got.worst_ppm, want.second);
      int64_t budget = 0;
      for (int32_t i = 0; i < n; i++)
        budget += choices[i][got.chosen[i]].budget_bytes;
      ck_assert_int_le (budget, limits.memory_bytes);
    }
    fitted += got.fits;
    refused += !got.fits;
    arena_free (a);
  }
  ck_assert_int_gt (fitted, PACKS / 5);
  ck_assert_int_gt (refused, PACKS / 20);
}
END_TEST

int main (void) {
  const TTest *tests[] = { more_memory_is_never_slower_and_bounds_lie_below,
                           the_smallest_memory_lies_between_its_ends,
                           packing_is_as_good_as_trying_everything, NULL };
  return suite_run ("curve", tests, 60);
}
