/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The three fillings of the knapsack against all subsets: none takes more than its share, the
   program finds the best, the table what is best in rounded sizes.  And the share that the policy
   settles on is the largest that fits, which a bisection would have missed on some of the traces.
 */
#include "base/units.h"
#include "solver/policy/drops.h"
#include "tests/policy_case.h"
#include "tests/suite.h"
#include "trace/rewrite/rewrite.h"

enum { CASES = 120, MOST_ITEMS = 12, STEP_PPM = 25000 };
typedef enum solver { GREEDY, DP, ILP, SOLVERS } solver;

typedef struct item {
  int32_t tensor;
  int64_t bytes, ns;
} item;

static void choose (policy_case *x, int64_t budget_bytes, solver how, int64_t c_ppm,
                    policy_view *view, policy_choice *out) {
  error err = { 0 };
  policy_values values = policy_standard ();
  policy_request r = { .trace = x->trace,
                       .device = &x->device,
                       .budget_bytes = budget_bytes,
                       .host_bytes = x->device.host_bytes,
                       .values = &values };
  values.at[POLICY_OPTION_knapsack_solver] = how;
  values.at[POLICY_OPTION_knapsack_c] = c_ppm;
  values.at[POLICY_OPTION_knapsack_step] = STEP_PPM;
  ck_assert_msg (policy_choose (POLICY_knapsack, &r, x->arena, view, out, &err), "%s", err.text);
}

/* What is dropped where next to nothing may be kept. */
static int items_of (policy_case *x, int64_t budget_bytes, item *items) {
  policy_view v;
  policy_choice c;
  choose (x, budget_bytes, GREEDY, 1, &v, &c);
  for (int i = 0; i < (int)c.n_drops && i < MOST_ITEMS; i++) {
    int32_t t = c.drops[i].tensor;
    items[i] = (item){ t, x->trace->tensors[t].bytes, x->trace->ops[v.producer[t]].ns };
  }
  return (int)c.n_drops;
}

static bool is_dropped (const policy_choice *c, int32_t tensor) {
  for (int64_t i = 0; i < c->n_drops; i++)
    if (c->drops[i].tensor == tensor)
      return true;
  return false;
}

static void add_kept (const policy_choice *c, const item *items, int n, int64_t *bytes,
                      int64_t *ns) {
  *bytes = *ns = 0;
  for (int i = 0; i < n; i++)
    if (!is_dropped (c, items[i].tensor)) {
      *bytes += items[i].bytes;
      *ns += items[i].ns;
    }
}

/* The most time that a subset saves; sizes in bytes, or in 1e-4 of all, rounded up. */
static int64_t best_of_all (const item *items, int n, int64_t room, int64_t whole) {
  int64_t best = 0;
  for (int set = 0; set < 1 << n; set++) {
    int64_t size = 0, ns = 0;
    for (int i = 0; i < n; i++)
      if (set >> i & 1) {
        size += whole ? units_div_up (items[i].bytes * 10000, whole) : items[i].bytes;
        ns += items[i].ns;
      }
    best = size <= room && ns > best ? ns : best;
  }
  return best;
}

CLAIM (each_filling_keeps_its_share_and_the_program_the_best_of_all) {
  static const int64_t shares[] = { 123457, 333333, 500000, 777777 };
  int cases = 0, above_greedy = 0;
  for (uint64_t seed = 1; seed < CASES; seed += 2) {
    policy_case x;
    error err = { 0 };
    item items[MOST_ITEMS];
    ck_assert_msg (policy_case_make (seed, &x, &err), "%s", err.text);
    int64_t budget = policy_case_budget (&x, 40), whole = 0;
    int n = items_of (&x, budget, items);
    for (int i = 0; i < n && n <= MOST_ITEMS; i++)
      whole += items[i].bytes;
    for (int k = 0; k < 4 && n > 1 && n <= MOST_ITEMS; k++) {
      int64_t bytes[SOLVERS], ns[SOLVERS], room = units_scale (whole, shares[k], 1000000);
      for (int how = 0; how < SOLVERS; how++) {
        policy_view v;
        policy_choice c;
        choose (&x, budget, (solver)how, shares[k], &v, &c);
        add_kept (&c, items, n, &bytes[how], &ns[how]);
        ck_assert_msg (bytes[how] <= room, "seed %d, solver %d: %lld of %lld bytes", (int)seed, how,
                       (long long)bytes[how], (long long)room);
      }
      ck_assert_int_eq (ns[ILP], best_of_all (items, n, room, 0));
      ck_assert_int_eq (ns[DP], best_of_all (items, n, shares[k] / 100, whole));
      ck_assert_int_ge (ns[ILP], ns[GREEDY]);
      above_greedy += ns[ILP] > ns[GREEDY];
      cases++;
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (cases, CASES / 2);
  ck_assert_int_gt (above_greedy, 0);
}

static bool fits (policy_case *x, int64_t budget_bytes, int64_t c_ppm) {
  error err = { 0 };
  policy_view v, after;
  policy_choice c;
  recompute *entries;
  int32_t n;
  int64_t kept;
  rewritten rw;
  choose (x, budget_bytes, DP, c_ppm, &v, &c);
  ck_assert (policy_recomputes (&v, &c, &entries, &n, &kept, &err));
  ck_assert (trace_rewrite (
      x->trace,
      &(rewriting){ .recomputes = entries, .n_recomputes = n, .section_ns = x->device.section_ns },
      x->arena, &rw, &err));
  ck_assert (policy_view_build (rw.trace, &x->device, budget_bytes, 0, x->arena, &after, &err));
  return after.res[view_peak (&after, after.res)] <= budget_bytes;
}

CLAIM (the_largest_share_that_fits_is_found_though_fitting_is_not_monotone) {
  int found = 0, bumpy = 0;
  for (uint64_t seed = 1; seed < CASES; seed += 2) {
    policy_case x;
    error err = { 0 };
    policy_view v;
    policy_choice searched, given;
    ck_assert_msg (policy_case_make (seed, &x, &err), "%s", err.text);
    int64_t budget = policy_case_budget (&x, 75), best = -1;
    bool gap = false;
    for (int64_t c = 1000000; c > 0; c -= STEP_PPM) {
      bool ok = fits (&x, budget, c);
      best = ok && best < 0 ? c : best;
      gap |= best > 0 && !ok;
    }
    choose (&x, budget, DP, 0, &v, &searched);
    if (best > 0) {
      choose (&x, budget, DP, best, &v, &given);
      ck_assert (!searched.note);
      ck_assert_int_eq (searched.n_drops, given.n_drops);
      for (int64_t i = 0; i < given.n_drops; i++)
        ck_assert_int_eq (searched.drops[i].tensor, given.drops[i].tensor);
      found++;
      bumpy += gap;
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (found, 10);
  ck_assert_int_gt (bumpy, 0);
}

int main (void) {
  return suite_run ("policy knapsack", 60);
}
