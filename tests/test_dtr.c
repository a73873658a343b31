/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ours against the online rule, where neither swaps. */
#include <string.h>

#include "base/random.h"
#include "solver/policy/dtr_costs.h"
#include "solver/policy/policy.h"
#include "solver/solve.h"
#include "tests/policy_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"

enum { SEEDS = 40 };

/* INT64_MAX: no plan. */
static int64_t theirs (const policy_case *x, int64_t budget_bytes, int cost, error *err) {
  policy_values values = policy_standard ();
  policy_answer answer;
  values.at[POLICY_OPTION_dtr_cost] = cost;
  policy_request r = { .trace = x->trace,
                       .device = &x->device,
                       .budget_bytes = budget_bytes,
                       .host_bytes = x->device.host_bytes,
                       .values = &values,
                       .only_fits = true };
  ck_assert_msg (policy_run (POLICY_dtr, &r, x->arena, &answer, err), "%s", err->text);
  ck_assert (!answer.fits || answer.moves == 0);
  return answer.fits ? answer.cost.step_ns : INT64_MAX;
}

static int64_t ours (const policy_case *x, int64_t budget_bytes, const tuning *by, error *err) {
  error why = { 0 };
  solution s;
  solve_options o = { .device = &x->device,
                      .budget_bytes = budget_bytes,
                      .host_bytes = x->device.host_bytes,
                      .limit_ticks = 2000,
                      .seed = 1,
                      .tuning = by,
                      .recompute = RECOMPUTE_ONLY };
  if (!solve (x->trace, &o, x->arena, &s, &why))
    return INT64_MAX;
  ck_assert_msg (check_plan (x->trace, s.plan, x->arena, NULL, err), "%s", err->text);
  ck_assert_int_ge (s.plan->predicted.step_ns, s.bound.lower_bound_ns);
  return s.plan->predicted.step_ns;
}

CLAIM (ours_is_never_slower_than_the_online_rule) {
  static const int percent[] = { 70, 40, 10 };
  int fits = 0;
  for (uint64_t seed = 1; seed < 2 * SEEDS; seed += 2) { /* networks */
    policy_case x;
    error err = { 0 };
    ck_assert_msg (policy_case_make (seed, &x, &err), "%s", err.text);
    for (int n = 0; n < 3; n++) {
      int64_t budget = policy_case_budget (&x, percent[n]);
      int64_t mine = ours (&x, budget, NULL, &err);
      for (int cost = 0; cost < 3; cost++) {
        int64_t rule = theirs (&x, budget, cost, &err);
        fits += rule < INT64_MAX;
        ck_assert_msg (cost == 0 || mine <= rule, "seed %d, %d %%: %lld, the rule %lld", (int)seed,
                       percent[n], (long long)mine, (long long)rule);
      }
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (fits, SEEDS); /* the cases have teeth */
}

/* No proposal of sets but this one, and no policy at the end. */
CLAIM (as_a_start_it_makes_plans_where_nothing_else_does) {
  int better = 0;
  tuning with = tuning_shipped, without;
  for (int i = 0; i < STRATEGIES; i++)
    with.off[i] = strcmp (strategy_rows[i].stage, "DROPS") == 0 || i == STRATEGY_TOP_published ||
                  i == STRATEGY_SEARCH_small || i == STRATEGY_SEARCH_program_sets ||
                  i == STRATEGY_SEARCH_ranked;
  without = with;
  with.off[STRATEGY_DROPS_online] = false;
  for (uint64_t seed = 1; seed < 2 * SEEDS; seed += 2) {
    policy_case x;
    error err = { 0 };
    ck_assert_msg (policy_case_make (seed, &x, &err), "%s", err.text);
    int64_t budget = policy_case_budget (&x, 40);
    int64_t a = ours (&x, budget, &with, &err), b = ours (&x, budget, &without, &err);
    ck_assert_int_le (a, b);
    better += a < b;
    arena_free (x.arena);
  }
  ck_assert_int_gt (better, 0);
}

/* Found at once, with nothing known from before. */
static int64_t anew (const trace *t, const uses *u, const dtr_costs *like, int32_t x, arena *a,
                     error *err) {
  dtr_costs c;
  ck_assert_msg (dtr_costs_of (t, u, DTR_ALL, a, &c, err), "%s", err->text);
  for (int32_t i = 0; i < t->n_tensors; i++)
    ck_assert (!like->gone[i] || dtr_costs_goes (&c, i, err));
  return dtr_costs_ns (&c, x, INT64_MAX);
}

CLAIM (what_is_known_of_costs_is_as_if_found_anew) {
  int partly = 0, whole = 0;
  for (uint64_t seed = 1; seed < SEEDS; seed++) {
    policy_case x;
    error err = { 0 };
    uses u;
    dtr_costs c;
    random_state r = random_seed (seed);
    ck_assert_msg (policy_case_make (seed, &x, &err), "%s", err.text);
    const trace *t = x.trace;
    ck_assert (uses_of (t, x.arena, &u, &err) && dtr_costs_of (t, &u, DTR_ALL, x.arena, &c, &err));
    for (int i = 0; i < 200; i++) {
      int32_t at = (int32_t)random_between (&r, 0, t->n_tensors - 1);
      if (i % 2 == 0 && c.gone[at])
        dtr_costs_comes (&c, at);
      else if (i % 2 == 0)
        ck_assert (dtr_costs_goes (&c, at, &err));
      else if (!c.gone[at]) {
        int64_t all = anew (t, &u, &c, at, x.arena, &err), most = random_between (&r, 0, 2 * all);
        int64_t got = dtr_costs_ns (&c, at, most);
        ck_assert_msg (got == all || (got > most && got < all),
                       "seed %d: %lld, at most %lld of %lld", (int)seed, (long long)got,
                       (long long)most, (long long)all);
        partly += got < all;
        whole += got == all && all > c.own_ns[at];
      }
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (partly, 100); /* the cases have teeth */
  ck_assert_int_gt (whole, 100);
}

int main (void) {
  return suite_run ("dtr", 60);
}
