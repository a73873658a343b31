/* SPDX-License-Identifier: GPL-3.0-or-later */
/* solve beside the best of all plans of tiny traces.  FERRY_CASES: how many seeds; `make bench` has
   more, and says how the misses look. */
#include <stdio.h>
#include <stdlib.h>

#include "solver/solve.h"
#include "tests/best_plan.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

enum { CASES = 400, TICKS = 20000, ODD_CASES = 60, ODD_TICKS = 4000000, ODD_TRIED = 300000 };

static bool solved (const tiny_case *c, int64_t ticks, arena *a, solution *s) {
  error err = { 0 };
  solve_options o = { .device = &c->device,
                      .budget_bytes = c->budget_bytes,
                      .host_bytes = c->device.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = ticks,
                      .seed = 1 };
  bool ok = solve (c->trace, &o, a, s, &err);
  ck_assert_msg (ok || err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
  return ok;
}

CLAIM (no_plan_at_all_beats_the_bound_and_solve_finds_the_best_ones) {
  int tried = 0, reached = 0, proved = 0;
  for (int seed = 0; seed < suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    tiny_case c;
    solution s;
    best_plan best;
    bool made = tiny_make ((uint64_t)seed, a, &c, &err);
    ck_assert_msg (made || err.code == ERR_none, "%s", err.text);
    if (made) {
      bool ok = solved (&c, TICKS, a, &s);
      int64_t step_ns = ok ? s.plan->predicted.step_ns : INT64_MAX / 4;
      int64_t bound_ns = ok ? s.bound.lower_bound_ns : 0;
      ck_assert_msg (best_search (&c, step_ns + 1, BEST_TRIED, a, &best, &err), "%s", err.text);
      /* or else it would not try all */
      ck_assert_msg (!ok || best.counted_ns <= step_ns || !best.complete,
                     "seed %d: solve finds %lld ns, all choices give no less than %lld", seed,
                     (long long)step_ns, (long long)best.counted_ns);
      ck_assert_msg (best.counted_ns >= bound_ns, "seed %d: bound %lld ns, possible are %lld", seed,
                     (long long)bound_ns, (long long)best.counted_ns);
      tried++;
      proved += step_ns == bound_ns;
      reached += best.step_ns >= step_ns;
    }
    arena_free (a);
  }
  printf ("%d traces: %d plans are the best possible, %d of them at the bound\n", tried, reached,
          proved);
  ck_assert_int_gt (tried, suite_cases (CASES) / 5);
  ck_assert_int_lt (proved, tried); /* else the search had nothing to find */
  ck_assert_int_eq (reached, tried);
}

/* More ops and tensors, many of them smaller than a granule, which no pool may keep. */
CLAIM (odd_steps_are_solved_within_one_percent) {
  int tried = 0;
  for (int seed = 0; seed < suite_cases (ODD_CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    tiny_case c;
    solution s;
    best_plan best;
    if (tiny_make_odd ((uint64_t)seed, a, &c, &err)) {
      ck_assert_msg (solved (&c, ODD_TICKS, a, &s), "seed %d: no plan", seed);
      int64_t step_ns = s.plan->predicted.step_ns;
      ck_assert_msg (best_search (&c, step_ns, ODD_TRIED, a, &best, &err), "%s", err.text);
      ck_assert_msg (best.step_ns * 101 >= step_ns * 100, "seed %d: %lld ns, possible are %lld",
                     seed, (long long)step_ns, (long long)best.step_ns);
      ck_assert_int_ge (best.counted_ns, s.bound.lower_bound_ns);
      tried++;
    }
    arena_free (a);
  }
  ck_assert_int_gt (tried, suite_cases (ODD_CASES) / 10);
}

/* The search has to be worth something itself: without a plan to beat it finds one that is legal,
   and that costs what was counted, nearly always. */
CLAIM (the_best_plan_is_one) {
  int tried = 0, found = 0, exact = 0;
  for (int seed = 0; seed < 120; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    tiny_case c;
    best_plan best;
    if (tiny_make ((uint64_t)seed, a, &c, &err)) {
      predicted cost;
      int64_t most_ns = 4 * trace_total_ns (c.trace);
      ck_assert_msg (best_search (&c, most_ns, BEST_TRIED, a, &best, &err), "%s", err.text);
      ck_assert_int_le (best.counted_ns, best.step_ns);
      tried++;
      if (best.plan) {
        found++;
        exact += best.counted_ns == best.step_ns;
        ck_assert_msg (check_plan (c.trace, best.plan, a, NULL, &err), "seed %d: %s", seed,
                       err.text);
        ck_assert_msg (simulate_plan (c.trace, best.plan, a, &cost, &err), "%s", err.text);
        ck_assert_int_eq (cost.step_ns, best.step_ns);
        ck_assert_int_le (cost.peak_bytes, c.budget_bytes);
      }
    }
    arena_free (a);
  }
  ck_assert_int_gt (found * 10, tried * 9);
  ck_assert_int_gt (exact * 10, found * 9);
}

int main (void) {
  return suite_run ("solve beside all plans", 600);
}
