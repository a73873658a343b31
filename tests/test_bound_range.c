/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bounds of many budgets from few programs, against plans and against each budget's own program. */
#include "solver/flow/bound_range.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "tests/synthetic.h"

enum { BUDGETS = 12, APART_PPM = 2500, EPS_PPM = 200 };

/* The plan's own budget is one of many, and mostly none whose program is solved. */
CLAIM (no_plan_is_faster_than_the_bound_that_other_budgets_prove) {
  int proved = 0, spared = 0;
  for (int seed = 0; seed < 300; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    planned_case p;
    if (planned_make ((uint64_t)seed, CASE_EVERYTHING & ~CASE_ZERO_NS, a, &p, &err)) {
      bound b;
      bound_range *r;
      bound_options o = { .dev = &p.c.plan->device,
                          .host_bytes = seed % 3 ? p.c.plan->host_bytes : p.seen.host_peak_bytes,
                          .any_units = true,
                          .classes = 1 + seed % 3 };
      int64_t budgets[BUDGETS], step = p.most_bytes / BUDGETS + 1;
      for (int i = 0; i < BUDGETS; i++)
        budgets[i] = p.most_bytes / 2 + i * step / 2 + seed % 7;
      ck_assert_msg (
          bound_range_new (p.c.rewritten.trace, &o, budgets, BUDGETS, 20000, a, &r, &err) &&
              bound_range_at (r, p.most_bytes, a, &b, &err),
          "seed %d: %s", seed, err.text);
      ck_assert_msg (b.lower_bound_ns <= p.seen.step_ns, "seed %d: %s says %lld, it took %lld",
                     seed, b.by, (long long)b.lower_bound_ns, (long long)p.seen.step_ns);
      ck_assert_int_ge (b.lower_bound_ns, b.compute_ns);
      proved += b.lower_bound_ns > b.compute_ns;
      spared += bound_range_seen (r).programs < BUDGETS;
    }
    ck_assert_msg (err.code == ERR_none, "seed %d: %s", seed, err.text);
    arena_free (a);
  }
  ck_assert_int_gt (proved, 0);
  ck_assert_int_gt (spared, 100);
}

/* Shares move at each op at least what the budget lacks there. */
static void shares_suffice (const gaps *g, const double *share) {
  for (int32_t k = 0; k < g->n_ops; k++) {
    double away = 0, need = (double)(g->base_bytes[k] - g->unused_bytes - g->room_bytes);
    for (int32_t i = 0; i < g->count; i++) {
      ck_assert (share[i] >= 0 && share[i] <= 1);
      if (gap_spans (&g->at[i], k) && !g->at[i].unused)
        away += share[i] * (double)gaps_room (g, g->at[i].unit);
    }
    ck_assert_msg (away >= need * 0.9999 - 4096, "op %d: %.0f of %.0f", k, away, need);
  }
}

CLAIM (few_programs_say_nearly_what_each_budgets_own_says) {
  device dev = { .granule_bytes = 2 << 20,
                 .link = { 25000000000, 20000000000, 45000000000, 10000 },
                 .host_bytes = MOST_BYTES,
                 .share_ppm = 1000000 };
  for (int kind = SYNTHETIC_GPT; kind <= SYNTHETIC_SHUFFLED; kind++) {
    error err = { 0 };
    arena *a = arena_new (0);
    units u;
    gaps g;
    bound_range *r;
    int64_t budgets[BUDGETS];
    bound_options o = { .dev = &dev, .host_bytes = dev.host_bytes, .any_units = true };
    trace *t = synthetic ((synthetic_kind)kind, 80, 5, a, &err);
    ck_assert (t && units_of (t, NULL, 0, 1, 0, a, &u, &err) && gaps_of (&u, 1, 0, a, &g, &err));
    for (int i = 0; i < BUDGETS; i++)
      budgets[i] = g.floor_bytes + (g.peak_bytes - g.floor_bytes) / BUDGETS * i;
    ck_assert_msg (bound_range_new (t, &o, budgets, BUDGETS, APART_PPM, a, &r, &err), "%s",
                   err.text);
    ck_assert_int_lt (bound_range_seen (r).programs, BUDGETS);
    for (int i = 0; i < BUDGETS; i++) {
      bound own, shared;
      ck_assert (gaps_of (&u, 1, budgets[i], a, &g, &err) && bound_of (&g, &o, a, &own, &err) &&
                 bound_range_at (r, budgets[i], a, &shared, &err));
      double most = (double)own.lower_bound_ns, seen = (double)shared.lower_bound_ns;
      if (own.stats.value_ns > most)
        most = own.stats.value_ns;
      ck_assert_msg (seen <= most * (1 + 1e-6) + 2, "kind %d, %d: %.0f above the optimum %.0f",
                     kind, i, seen, most);
      ck_assert_msg (seen >= most * (1 - 1e-6 * (APART_PPM + EPS_PPM)) - 2,
                     "kind %d, %d: %.0f far below the optimum %.0f", kind, i, seen, most);
      shares_suffice (&g, shared.share);
    }
    ck_assert (!bound_range_at (r, g.floor_bytes / 2, a, &(bound){ 0 }, &err));
    ck_assert_int_eq (err.code, ERR_infeasible);
    arena_free (a);
  }
}

int main (void) {
  return suite_run ("bound_range", 60);
}
