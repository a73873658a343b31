/* The straw man: while it does not fit, the largest tensor that is idle at the peak leaves, and
   comes back as late as does not block. */
#include "solver/policy.h"

bool policy_greedy_largest (policy_view *v, policy_id id, const policy_values *values,
                            policy_choice *out, error *err) {
  (void)id, (void)values;
  int64_t *res = view_residents (v, err);
  bool *taken = NEW (v->arena, v->n_gaps, bool, err);
  if (!res || !taken)
    return false;
  for (int32_t peak; peak = view_peak (v, res), res[peak] > v->budget_bytes;) {
    int32_t best = -1;
    for (int32_t i = 0; i < v->n_gaps; i++) {
      const view_gap *g = &v->gaps[i], *b = best < 0 ? NULL : &v->gaps[best];
      if (taken[i] || !gap_covers (g, peak))
        continue;
      int64_t more =
          b ? v->trace->tensors[g->tensor].bytes - v->trace->tensors[b->tensor].bytes : 1;
      if (more > 0 || (more == 0 && g->idle_ns > b->idle_ns))
        best = i;
    }
    if (best < 0) {
      out->note = "nothing is left that is idle at the peak";
      return true;
    }
    const view_gap *g = &v->gaps[best];
    int32_t i = view_late (v, g, view_in_ns (v, g->tensor));
    taken[best] = true;
    view_relieve (v, res, g, i);
    if (!policy_move_gap (v, out, g, i, err))
      return false;
  }
  return true;
}
