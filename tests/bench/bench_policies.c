/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ours and every policy on random traces: all answers legal, none below the bound, no policy faster
   than ours, the same bytes the second time.
   bench_policies [COUNT [FIRST]]: so many traces, from this seed on. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/policy_case.h"

int main (int argc, char **argv) {
  static const int percent[] = { 90, 60, 30 };
  long count = argc > 1 ? strtol (argv[1], NULL, 10) : 500;
  long first = argc > 2 ? strtol (argv[2], NULL, 10) : 0;
  policy_tally tally = { 0 };
  int failed = 0;
  for (long seed = first; seed < first + count; seed++)
    for (int n = 0; n < 3; n++) {
      policy_case x;
      error err = { 0 };
      const char *why;
      if (!policy_case_make ((uint64_t)seed, &x, &err) ||
          !policy_case_judge (&x, percent[n], 10000, &tally, &why, &err)) {
        fprintf (stderr, "seed %ld: %s\n", seed, err.text);
        return 1;
      }
      if (why) {
        printf ("seed %ld at %d %%: %s\n", seed, percent[n], why);
        fflush (stdout);
        failed++;
      }
      arena_free (x.arena);
    }
  printf ("%ld traces from seed %ld, three budgets: %lld answers of policies, %lld plans of theirs "
          "(%lld that recompute), %lld of ours, %d that do not hold\n",
          count, first, (long long)tally.answers, (long long)tally.fits, (long long)tally.dropped,
          (long long)tally.ours, failed);
  printf ("{\"bench\":\"policies\",\"traces\":%ld,\"answers\":%lld,\"fits\":%lld,\"failed\":%d}\n",
          count, (long long)tally.answers, (long long)tally.fits, failed);
  return failed > 0;
}
