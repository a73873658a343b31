/* SPDX-License-Identifier: GPL-3.0-or-later */
/* More is never worse, on some pairs of each kind; bench_more tries hundreds. */
#include "tests/more_pair.h"
#include "tests/suite.h"

enum { SEED = 1, PAIRS = 10, PART = 2000, LIMITS_SEED = 2, CELLS = 8, LIMITS_PART = 200 };

START_TEST (more_is_never_worse) {
  for (int i = 0; i < suite_cases (PAIRS); i++) {
    error err = { 0 };
    more_pair p;
    ck_assert_msg (more_pair_of ((more_kind)_i, SEED, i, PART, true, &p, &err), "%s", err.text);
    ck_assert_msg (p.worse_ppm <= MORE_GAP_PPM, "%s %d, %s: %lld ns, and %lld with more",
                   more_kinds[_i], i, p.what, (long long)p.less_ns, (long long)p.more_ns);
  }
}
END_TEST

START_TEST (a_limit_cuts_off_the_end) {
  for (int i = 0; i < suite_cases (CELLS); i++) {
    error err = { 0 };
    more_limits m;
    ck_assert_msg (more_limits_of (LIMITS_SEED, i, LIMITS_PART, true, &m, &err), "%s", err.text);
    for (int k = 1; k < MORE_LIMITS; k++)
      ck_assert_msg (m.step_ns[k] <= m.step_ns[k - 1], "%d, %s: %lld ns, and %lld with %lld ticks",
                     i, m.what, (long long)m.step_ns[k - 1], (long long)m.step_ns[k],
                     (long long)m.ticks[k]);
  }
}
END_TEST

int main (void) {
  const suite_row rows[] = { { more_is_never_worse, 0, MORE_KINDS },
                             { a_limit_cuts_off_the_end, 0, 1 },
                             { NULL, 0, 0 } };
  return suite_run_rows ("more", rows, NULL, NULL, 240);
}
