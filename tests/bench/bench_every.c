/* SPDX-License-Identifier: GPL-3.0-or-later */
/* solve beside the best of all plans of hundreds of tiny traces: all cuts into two and three parts,
   all sequences of recompute entries, all swaps.  bench_every [CASES [TICKS [RUNS [KIND]]]]: seeds
   of each kind, ticks of solve, and how many runs of the oracle a case may take. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/every_case.h"

int main (int argc, char **argv) {
  int cases = argc > 1 ? (int)strtol (argv[1], NULL, 10) : 300;
  int64_t ticks = argc > 2 ? strtoll (argv[2], NULL, 10) : 100000;
  int64_t runs = argc > 3 ? strtoll (argv[3], NULL, 10) : 20000;
  int only = argc > 4 ? (int)strtol (argv[4], NULL, 10) : -1;
  printf ("%-18s %6s %6s %6s %9s %8s %7s %6s %6s %6s %10s %10s %8s %8s\n", "", "traces", "whole",
          "best", "in 1 %", "at bound", "refused", "cut", "again", "moved", "ways", "runs",
          "solve s", "all s");
  for (int k = 0; k < EVERY_KINDS; k++) {
    every_tally n = { 0 };
    for (int seed = 0; seed < cases && (only < 0 || only == k); seed++) {
      error err = { 0 };
      if (!every_case_try (&every_kinds[k], seed, ticks, runs, &n, &err)) {
        fprintf (stderr, "bench_every: %s: %s\n", every_kinds[k].name, err.text);
        return EXIT_FAILURE;
      }
    }
    double whole = n.whole ? n.whole : 1;
    printf ("%-18s %6d %6d %5.1f%% %8.1f%% %7.1f%% %7d %6d %6d %6d %10lld %10lld %8.2f %8.1f\n",
            every_kinds[k].name, n.tried, n.whole, 100 * n.best / whole, 100 * n.near / whole,
            100 * n.at_bound / whole, n.refused, n.cut, n.again, n.moved, (long long)n.ways,
            (long long)n.runs, n.solve_s, n.all_s);
    if (n.worst_percent > 0)
      printf ("%-18s worst: seed %d, %.1f %% above the best; %d sections and %d entries, the best "
              "has %d and %d\n",
              "", n.worst_seed, n.worst_percent, n.worst[0][0], n.worst[0][1], n.worst[1][0],
              n.worst[1][1]);
    fflush (stdout);
  }
  return EXIT_SUCCESS;
}
