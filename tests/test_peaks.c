/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of sums and greatest values against a plain array. */
#include "base/random.h"
#include "solver/flow/peaks.h"
#include "tests/suite.h"

enum { ROWS = 70, CHANGES = 60, SEEDS = 2000 };

CLAIM (a_tree_says_what_an_array_says) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    random_state r = random_seed (seed);
    arena *a = arena_new (0);
    error err = { 0 };
    int32_t n = (int32_t)random_between (&r, 1, ROWS);
    int64_t plain[ROWS];
    for (int32_t i = 0; i < n; i++)
      plain[i] = random_between (&r, -50, 50);
    peaks p;
    ck_assert (peaks_build (&p, plain, n, a, &err));
    for (int k = 0; k < CHANGES; k++) {
      int32_t first = (int32_t)random_between (&r, 0, n), end = (int32_t)random_between (&r, 0, n);
      int64_t more = random_between (&r, -20, 20), most = INT64_MIN / 2;
      int32_t at = -1;
      peaks_add (&p, first, end, more);
      for (int32_t i = first; i < end; i++)
        plain[i] += more;
      first = (int32_t)random_between (&r, 0, n);
      end = (int32_t)random_between (&r, 0, n);
      for (int32_t i = first; i < end; i++)
        if (plain[i] > most) {
          most = plain[i];
          at = i;
        }
      ck_assert_msg (peaks_most (&p, first, end) == most, "seed %llu, change %d: [%d, %d)",
                     (unsigned long long)seed, k, first, end);
      if (first < end)
        ck_assert_int_eq (peaks_at (&p, first, end), at);
    }
    arena_free (a);
  }
}

int main (void) {
  return suite_run ("peaks", 20);
}
