/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ours beside the published policies on random traces: no plan below its bound, no policy faster
   than ours. FERRY_CASES: how many traces. */
#include <string.h>

#include "solver/search/published.h"
#include "solver/solve.h"
#include "tests/policy_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"

enum { CASES = 12, NETWORKS = 240, ALONE = 90, TICKS = 2000 };

CLAIM (no_policy_is_faster_than_ours) {
  static const int percent[] = { 80, 35 };
  policy_tally tally = { 0 };
  int cases = suite_cases (CASES);
  for (int seed = 0; seed < cases; seed++)
    for (int n = 0; n < 2; n++) {
      policy_case x;
      error err = { 0 };
      const char *why;
      ck_assert_msg (policy_case_make ((uint64_t)seed, &x, &err), "%s", err.text);
      ck_assert_msg (policy_case_judge (&x, percent[n], TICKS, &tally, &why, &err), "seed %d: %s",
                     seed, err.text);
      ck_assert_msg (!why, "seed %d at %d %%: %s", seed, percent[n], why);
      arena_free (x.arena);
    }
  /* The cases have teeth. */
  ck_assert_int_eq (tally.answers, 2 * cases * POLICIES);
  ck_assert_int_gt (tally.fits, tally.answers / 4);
  ck_assert_int_gt (tally.dropped, 0);
  ck_assert_int_gt (tally.ours, 2 * cases);
}

/* In this one's forward run nothing is left of a copy in the very instant in which the other
   direction begins and the rates change. */
CLAIM (a_copy_may_end_when_the_rates_change) {
  policy_case x;
  policy_tally tally = { 0 };
  error err = { 0 };
  const char *why;
  ck_assert_msg (policy_case_make (93, &x, &err), "%s", err.text);
  ck_assert_msg (policy_case_judge (&x, 30, 10000, &tally, &why, &err), "%s", err.text);
  ck_assert_msg (!why, "%s", why);
  arena_free (x.arena);
}

/* The slowest plan that is at hand is put in the place of ours. */
CLAIM (a_policy_that_is_faster_gives_its_plan) {
  int taken = 0;
  for (uint64_t seed = 1; seed < NETWORKS; seed += 2) {
    policy_case x;
    policy_answer slow;
    error err = { 0 };
    ck_assert (policy_case_make (seed, &x, &err));
    solve_options o = { .device = &x.device,
                        .budget_bytes = policy_case_budget (&x, 70),
                        .host_bytes = x.device.host_bytes };
    policy_request r = { .trace = x.trace,
                         .device = &x.device,
                         .budget_bytes = o.budget_bytes,
                         .host_bytes = o.host_bytes };
    solution s = { .bound = { .lower_bound_ns = 1 } };
    ck_assert (policy_run (POLICY_vdnn_all, &r, x.arena, &slow, &err));
    s.plan = slow.plan;
    if (slow.fits) {
      certificate own = {
        .lower_bound_ns = 1, .bound_by = "compute", .found_by = "vdnn-all", .limit_met = "ticks"
      };
      s.plan->certificate = own;
      ck_assert_msg (
          published_take (&(solve_request){ .trace = x.trace, .options = &o }, &s, x.arena, &err),
          "%s", err.text);
      ck_assert_int_le (s.plan->predicted.step_ns, slow.cost.step_ns);
      ck_assert (check_plan (x.trace, s.plan, x.arena, NULL, &err));
      ck_assert_int_eq (s.plan->n_recomputes, 0); /* not allowed by these options */
      if (s.plan != slow.plan) {
        ck_assert_str_ne (s.plan->certificate.found_by, "vdnn-all");
        ck_assert_str_eq (s.plan->certificate.limit_met, "ticks");
        taken++;
      }
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (taken, 2);
}

CLAIM (where_drops_are_allowed_they_are_looked_at) {
  int dropped = 0;
  for (uint64_t seed = 1; seed < NETWORKS; seed += 2) {
    policy_case x;
    policy_answer swaps, all, only;
    error err = { 0 };
    ck_assert (policy_case_make (seed, &x, &err));
    solve_options o = { .device = &x.device,
                        .budget_bytes = policy_case_budget (&x, 70),
                        .host_bytes = x.device.host_bytes };
    ck_assert (published_fastest (x.trace, &o, x.arena, &swaps, &err));
    o.recompute = RECOMPUTE_AUTO;
    ck_assert (published_fastest (x.trace, &o, x.arena, &all, &err));
    o.recompute = RECOMPUTE_ONLY;
    ck_assert (published_fastest (x.trace, &o, x.arena, &only, &err));
    ck_assert (!swaps.plan || (swaps.drops == 0 && all.plan));
    ck_assert (!swaps.plan || all.cost.step_ns <= swaps.cost.step_ns);
    ck_assert (!only.plan || (only.moves == 0 && all.cost.step_ns <= only.cost.step_ns));
    dropped += all.plan && all.drops > 0;
    arena_free (x.arena);
  }
  ck_assert_int_gt (dropped, 2);
}

CLAIM (a_published_plan_that_drops_keeps_a_proof) {
  int taken = 0;
  for (uint64_t seed = 1; seed < NETWORKS; seed++) {
    policy_case x;
    solution s;
    error err = { 0 };
    proved got;
    ck_assert (policy_case_make (seed, &x, &err));
    solve_options o = { .device = &x.device,
                        .budget_bytes = policy_case_budget (&x, 55 + (int)(seed % 5) * 9),
                        .host_bytes = x.device.host_bytes,
                        .limit_ticks = 1,
                        .keep_proof = true,
                        .recompute = seed % 2 ? RECOMPUTE_AUTO : RECOMPUTE_ONLY };
    if (!solve (x.trace, &o, x.arena, &s, &err))
      ck_assert_msg (err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
    else {
      const char *by = s.plan->certificate.found_by;
      taken += s.plan->n_recomputes > 0 &&
               (strncmp (by, "capuchin", 8) == 0 || strncmp (by, "superneurons", 12) == 0 ||
                strncmp (by, "checkpoint", 10) == 0);
      ck_assert_msg (prove_plan (x.trace, s.plan, s.plan->predicted.step_ns, x.arena, &got, &err),
                     "seed %d, by %s: %s", (int)seed, by, err.text);
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (taken, 0);
}

/* Alone, as where the search finds nothing: whatever the means, solve with the same is as fast. */
CLAIM_EACH (no_published_plan_alone_is_faster_than_ours_by_the_same_means, 0, 3) {
  static const recompute_mode means[] = { RECOMPUTE_OFF, RECOMPUTE_AUTO, RECOMPUTE_ONLY };
  int plans = 0, dropped = 0;
  for (uint64_t seed = 0; seed < ALONE; seed++) {
    policy_case x;
    solution alone, ours;
    error err = { 0 };
    proved got;
    ck_assert (policy_case_make (seed, &x, &err));
    solve_options o = { .device = &x.device,
                        .budget_bytes = policy_case_budget (&x, 40 + (int)(seed / 3 % 5) * 10),
                        .host_bytes = x.device.host_bytes,
                        .limit_ticks = 1,
                        .keep_proof = true,
                        .recompute = means[_i] };
    ck_assert_msg (published_alone (x.trace, &o, x.arena, &alone, &err), "%s", err.text);
    if (alone.plan) {
      int64_t ns = alone.plan->predicted.step_ns;
      ck_assert (check_plan (x.trace, alone.plan, x.arena, NULL, &err));
      ck_assert_msg (prove_plan (x.trace, alone.plan, ns, x.arena, &got, &err), "%s", err.text);
      ck_assert_int_le (alone.bound.lower_bound_ns, ns);
      ck_assert (means[_i] != RECOMPUTE_OFF || alone.plan->n_recomputes == 0);
      ck_assert (means[_i] != RECOMPUTE_ONLY || alone.plan->n_moves == 0);
      ck_assert_msg (solve (x.trace, &o, x.arena, &ours, &err), "seed %d: %s", (int)seed, err.text);
      ck_assert_msg (ours.plan->predicted.step_ns <= ns, "seed %d: %s takes %lld ns, ours %lld",
                     (int)seed, alone.plan->certificate.found_by, (long long)ns,
                     (long long)ours.plan->predicted.step_ns);
      o.sections = SECTIONS_AUTO; /* then the bound is of these too, whoever found the plan */
      ck_assert_msg (solve (x.trace, &o, x.arena, &ours, &err), "seed %d: %s", (int)seed, err.text);
      ck_assert_msg (ours.plan->certificate.cover.sections != COVER_SECTIONS_NONE, "seed %d: %s",
                     (int)seed, ours.plan->certificate.found_by);
      plans++;
      dropped += alone.plan->n_recomputes > 0;
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (plans, ALONE / 10);
  ck_assert (means[_i] == RECOMPUTE_OFF || dropped > 0);
}

CLAIM (every_failed_allocation_is_told) {
  bool made = false;
  for (int64_t n = 1; !made; n += 1 + n / 4) {
    policy_case x;
    policy_answer a;
    error err = { 0 };
    ck_assert_int_lt (n, 100000);
    ck_assert (policy_case_make (12, &x, &err));
    solve_options o = { .device = &x.device,
                        .budget_bytes = policy_case_budget (&x, 70),
                        .host_bytes = x.device.host_bytes };
    arena_fuse (x.arena, n);
    made = published_fastest (x.trace, &o, x.arena, &a, &err);
    ck_assert (made || err.code == ERR_memory);
    arena_free (x.arena);
  }
}

int main (void) {
  return suite_run ("search_policies", 60);
}
