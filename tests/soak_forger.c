/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Forged proofs by the million.  soak_forger [TRIES [SEED]]: so many tries, on traces from SEED on.
   A proof that passes and shows more than some plan of its class takes ends it with status 1. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/forger.h"

int main (int argc, char **argv) {
  int64_t tries = argc > 1 ? strtoll (argv[1], NULL, 10) : 10000000;
  uint64_t seed = argc > 2 ? strtoull (argv[2], NULL, 10) : 1000;
  forger_tally n = { 0 };
  error err = { 0 };
  bool ok = forger_run (seed, tries, &n, &err);
  printf ("%lld forged proofs of %lld traces: %lld evaluated, %lld above compute, %lld exactly the "
          "best plan's; %lld classes of plans searched\n",
          (long long)n.tries, (long long)n.traces, (long long)n.read, (long long)n.above,
          (long long)n.best, (long long)n.classes);
  if (!ok)
    fprintf (stderr, "soak_forger: %s\n", err.text);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
