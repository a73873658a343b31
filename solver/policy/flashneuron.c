/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Forward tensors leave in the order in which they appear until the sum of the others fits beside
   weights and the largest working set, as G10's artifact models it: the sum of all, not the peak.
 */
#include "solver/policy/policy.h"

static int64_t find_room (const policy_view *v) {
  int64_t largest = 0;
  for (int32_t k = 0; k < v->n_ops; k++) {
    int64_t set = view_working_set (v, k, true);
    largest = set > largest ? set : largest;
  }
  return v->budget_bytes - view_persistent_bytes (v) - v->pool_bytes - largest;
}

/* Touched before the loss and last used behind it: what the loss itself writes is none. */
static bool is_candidate (const policy_view *v, int32_t x) {
  return v->held[x] > 0 && !v->trace->tensors[x].persistent &&
         v->units.at[x].first < v->first_backward - 1 && v->units.at[x].last >= v->first_backward;
}

static bool offload (policy_view *v, int32_t x, policy_choice *out, int64_t *sum, error *err) {
  const view_gap *g = NULL;
  for (int32_t i = v->gap_offset[x]; i < v->gap_offset[x + 1]; i++)
    if (v->gaps[i].a < v->first_backward)
      g = &v->gaps[i]; /* the last that starts before the loss has passed */
  if (!g)
    return true;
  *sum -= v->held[x];
  return policy_move_gap (v, out, g, view_late (v, g, view_in_ns (v, x)), err);
}

bool policy_flashneuron (policy_view *v, policy_choice *out, error *err) {
  int64_t room = find_room (v), sum = 0;
  bool *seen = NEW (v->arena, v->n_tensors, bool, err);
  if (!seen)
    return false;
  if (room <= 0) {
    out->note = "weights and the largest working set alone do not fit";
    return true;
  }
  for (int32_t x = 0; x < v->n_tensors; x++)
    sum += is_candidate (v, x) ? v->held[x] : 0;
  for (int32_t k = 0; k < v->first_backward && k < v->n_ops; k++)
    for (int i = 0; i < 2; i++) {
      const index_list *list = i ? &v->trace->ops[k].writes : &v->trace->ops[k].reads;
      for (int32_t j = 0; j < list->count; j++) {
        int32_t x = list->at[j];
        if (seen[x] || !is_candidate (v, x) || sum < room)
          continue;
        seen[x] = true;
        if (!offload (v, x, out, &sum, err))
          return false;
      }
    }
  if (sum > room)
    out->note = "what cannot leave does not fit";
  return true;
}
