/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every k-th forward op's outputs stay; the rest is run again, a segment at a time, before the
   first backward op that needs any of it. */
#include "solver/policy/drops.h"

bool policy_checkpoint (policy_view *v, policy_choice *out, error *err) {
  int64_t k = v->option[POLICY_OPTION_checkpoint_k];
  if (k == 0)
    while (k * k < v->first_backward)
      k++;
  k = k ? k : 1;
  for (int32_t x = 0; x < v->n_tensors; x++) {
    int32_t p = v->producer[x];
    if (v->fb[x] < 0 || p == NO_OP || p >= v->first_backward || p % k == 0)
      continue;
    const view_gap *g = &v->gaps[v->fb[x]];
    policy_drop d = { x, g->a, g->b, (int32_t)(p / k), true };
    if (policy_can_drop (v, x, g->b) && !policy_add_drop (v, out, d, err))
      return false;
  }
  return true;
}
