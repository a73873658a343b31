/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nothing above the best plan passes the prover. FERRY_CASES: how many forged proofs; `make soak`
   has ten million. */
#include "tests/forger.h"
#include "tests/suite.h"

CLAIM (no_forged_proof_beats_a_plan_of_its_class) {
  forger_tally n = { 0 };
  error err = { 0 };
  ck_assert_msg (forger_run (1, suite_cases (20000), &n, &err), "%s", err.text);
  printf ("%lld forged proofs of %lld traces, %lld evaluated, %lld above compute, %lld exactly the "
          "best plan's; %lld classes of plans\n",
          (long long)n.tries, (long long)n.traces, (long long)n.read, (long long)n.above,
          (long long)n.best, (long long)n.classes);
  ck_assert_int_gt (n.read * 2, n.tries);
  ck_assert_int_gt (n.above * 10, n.tries);
}

int main (void) {
  return suite_run ("forger", 120);
}
