/* SPDX-License-Identifier: GPL-3.0-or-later */
/* More is never worse, on some pairs of each kind; bench_more tries hundreds. */
#include "tests/more_pair.h"
#include "tests/suite.h"

enum { SEED = 1, PAIRS = 10, PART = 2000 };

CLAIM_EACH (more_is_never_worse, 0, MORE_KINDS) {
  for (int i = 0; i < suite_cases (PAIRS); i++) {
    error err = { 0 };
    more_pair p;
    ck_assert_msg (more_pair_of ((more_kind)_i, SEED, i, PART, true, &p, &err), "%s", err.text);
    ck_assert_msg (p.worse_ppm <= MORE_GAP_PPM, "%s %d, %s: %lld ns, and %lld with more",
                   more_kinds[_i], i, p.what, (long long)p.less_ns, (long long)p.more_ns);
  }
}

int main (void) {
  return suite_run ("more", 120);
}
