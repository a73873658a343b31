/* SPDX-License-Identifier: GPL-3.0-or-later */
/* solve beside the best of all plans of tiny traces that may be cut into two or three parts and may
   make again what they dropped: the bound is never above the best, the plan never below it, and
   nearly always it is it.  FERRY_CASES: how many seeds; `make bench` has more. */
#include <stdio.h>

#include "tests/every_case.h"
#include "tests/suite.h"

enum { TICKS = 50000, RUNS = 20000 };

static void beside_all_plans (const every_kind *kind, int seeds) {
  every_tally n = { 0 };
  for (int seed = 0; seed < seeds; seed++) {
    error err = { 0 };
    ck_assert_msg (every_case_try (kind, seed, TICKS, RUNS, &n, &err), "%s: %s", kind->name,
                   err.text);
  }
  printf ("%s: %d traces, all plans of %d tried; %d plans are the best, %d within 1 %%, %d bounds "
          "are the best plan's; %d plans are cut, %d make again, %d move\n",
          kind->name, n.tried, n.whole, n.best, n.near, n.at_bound, n.cut, n.again, n.moved);
  ck_assert_msg (n.tried > seeds / 8 && n.whole * 3 > n.tried, "%d tried, %d whole", n.tried,
                 n.whole);
  ck_assert (n.moved + n.cut > 0 && (kind->parts ? n.cut : n.again) > 0);
  ck_assert_int_eq (n.refused, 0);
  ck_assert_int_ge (n.best * 100, n.whole * 95);
}

CLAIM (bound_best_of_all_cuts_and_plan_are_in_order) {
  beside_all_plans (&every_kinds[0], suite_cases (30));
}

CLAIM (bound_best_of_all_drops_and_plan_are_in_order) {
  beside_all_plans (&every_kinds[1], suite_cases (100));
}

CLAIM (bound_best_of_all_drops_of_more_ops_and_plan_are_in_order) {
  beside_all_plans (&every_kinds[2], suite_cases (30));
}

CLAIM (bound_best_of_all_cuts_and_drops_and_plan_are_in_order) {
  beside_all_plans (&every_kinds[3], suite_cases (27));
}

int main (void) {
  return suite_run ("every plan", 300);
}
