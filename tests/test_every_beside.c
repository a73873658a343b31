/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bounds and plans beside all plans of tiny traces with two streams, on one card, and on two ranks
   that share a link.  FERRY_CASES: how many seeds. */
#include <stdio.h>

#include "solver/ask/ranks.h"
#include "solver/solve.h"
#include "tests/every_beside.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"
#include "trace/simulate/simulate.h"

enum { CASES = 700, TICKS = 20000, MOST_PAIRED = 60 };

typedef struct tally {
  int tried, best, at_bound, none;
  double worst_percent;
} tally;

static bool solved (const tiny_case *c, arena *a, solution *s) {
  error err = { 0 };
  solve_options o = { .device = &c->device,
                      .budget_bytes = c->budget_bytes,
                      .host_bytes = c->device.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = TICKS,
                      .keep_proof = true,
                      .seed = 1 };
  bool ok = solve (c->trace, &o, a, s, &err);
  ck_assert_msg (ok || err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
  return ok;
}

static void count (tally *n, int64_t best_ns, int64_t step_ns, int64_t bound_ns) {
  double percent = 100 * (double)step_ns / (double)best_ns - 100;
  n->tried++;
  n->best += step_ns <= best_ns;
  n->at_bound += bound_ns == best_ns;
  n->worst_percent = percent > n->worst_percent ? percent : n->worst_percent;
}

static void print (const char *name, const tally *n) {
  printf ("%s: %d, %d plans are the best of all, the worst is %.2f %% longer; %d bounds are the "
          "best plan's; %d times none was found\n",
          name, n->tried, n->best, n->worst_percent, n->at_bound, n->none);
  fflush (stdout);
}

CLAIM (bound_best_of_all_plans_of_two_streams_and_plan_are_in_order) {
  tally n = { 0 };
  for (int seed = 0; seed < suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    tiny_case c;
    every_beside all;
    solution s;
    proved is;
    bool made = beside_make ((uint64_t)seed, a, &c, &err);
    ck_assert_msg (made || err.code == ERR_none, "%s", err.text);
    if (made) {
      ck_assert_msg (every_beside_search (&c, a, &all, &err), "seed %d: %s", seed, err.text);
      bool ok = all.complete && solved (&c, a, &s);
      if (ok) {
        int64_t step_ns = s.plan->predicted.step_ns;
        ck_assert_msg (prove_plan (c.trace, s.plan, step_ns, a, &is, &err), "%s", err.text);
        ck_assert_msg (is.lower_bound_ns <= all.step_ns, "seed %d: bound %lld, possible are %lld",
                       seed, (long long)is.lower_bound_ns, (long long)all.step_ns);
        ck_assert_msg (all.step_ns <= step_ns, "seed %d: %lld ns, all plans give no less than %lld",
                       seed, (long long)step_ns, (long long)all.step_ns);
        count (&n, all.step_ns, step_ns, is.lower_bound_ns);
      }
      n.none += all.complete && !ok && all.n_plans > 0;
    }
    arena_free (a);
  }
  print ("two streams", &n);
  ck_assert_int_gt (n.tried * 60, suite_cases (CASES));
  ck_assert_int_ge (n.best * 10, n.tried * 8);
  ck_assert_int_lt (n.at_bound, n.tried); /* else there was nothing to find */
}

static gpu_host narrow_host (const device *d, host_group *group) {
  gpu_host h = { .name = "made", .device = d->name, .n_cards = 2, .n_groups = 1, .link = d->link };
  h.host_bytes = h.pinned_bytes = (int64_t)1 << 40;
  *group = (host_group){ .name = "cpu", .cards = 3 };
  for (int way = 0; way < COPY_WAYS; way++) {
    group->one_way[way] = d->link.d2h_bytes_per_s;
    group->both[way] = d->link.d2h_bytes_per_s / 2;
  }
  h.groups = group;
  return h;
}

/* The fastest that two ranks are, each with any of the plans. */
static int64_t best_pair_ns (const tiny_case *c, const every_beside *all, const gpu_host *h,
                             arena *a) {
  int64_t best_ns = INT64_MAX;
  rewritten rw[MOST_PAIRED];
  for (int32_t i = 0; i < all->n_plans; i++) {
    error err = { 0 };
    ck_assert (plan_rewrite (c->trace, all->plans[i], a, &rw[i], &err));
  }
  for (int32_t i = 0; i < all->n_plans; i++)
    for (int32_t k = 0; k <= i; k++) {
      error err = { 0 };
      predicted cost[2];
      sim_job jobs[2] = { { c->trace, &rw[i], all->plans[i] },
                          { c->trace, &rw[k], all->plans[k] } };
      sim_options o = { .host = h };
      ck_assert_msg (simulate (jobs, 2, &o, a, cost, NULL, &err), "%s", err.text);
      best_ns = cost->step_ns < best_ns ? cost->step_ns : best_ns;
    }
  return best_ns;
}

static void pair (tally *n, int seed, const tiny_case *c, const every_beside *all,
                  const gpu_host *h, const ranks_answer *out, arena *a) {
  int64_t best_ns = best_pair_ns (c, all, h, a);
  ck_assert_msg (out->lower_bound_ns <= best_ns, "seed %d: bound %lld, possible are %lld", seed,
                 (long long)out->lower_bound_ns, (long long)best_ns);
  count (n, best_ns, out->ways[out->best].step_ns, out->lower_bound_ns);
}

CLAIM (bound_best_of_all_pairs_of_two_ranks_and_plans_are_in_order) {
  tally n = { 0 };
  for (int seed = 0; seed < suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    tiny_case c;
    every_beside all;
    host_group group;
    ranks_answer out;
    if (beside_make ((uint64_t)seed, a, &c, &err) && every_beside_search (&c, a, &all, &err) &&
        all.complete && all.n_plans > 0 && all.n_plans <= MOST_PAIRED) {
      gpu_host h = narrow_host (&c.device, &group);
      ranks_question asked = { &h, 2 };
      ask q = ask_default (c.trace, &c.device);
      allowed_into (&(allowed)SWAPS_ALONE, &q.options);
      q.options.order = ORDER_AS_IS;
      q.options.host_bytes = h.pinned_bytes;
      q.reserve_ppm = 0;
      bool ok = ask_budget (&q, c.budget_bytes, &err) &&
                ranks_solve_equal (c.trace, &asked, &q, a, &out, &err);
      ck_assert_msg (ok || err.code == ERR_limit, "seed %d: %s", seed, err.text);
      n.none += !ok;
      if (ok)
        pair (&n, seed, &c, &all, &h, &out, a);
    }
    arena_free (a);
  }
  print ("two ranks", &n);
  ck_assert_int_gt (n.tried * 100, suite_cases (CASES));
  ck_assert_int_ge (n.best * 2, n.tried);
}

int main (void) {
  return suite_run ("every plan of two streams", 300);
}
