/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The straw man: while it does not fit, the largest tensor that is idle at the peak leaves, and
   comes back as late as does not block. */
#include "solver/policy/policy.h"

static int largest_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  const view_gap *x = &v->gaps[a], *y = &v->gaps[b];
  int64_t p = v->trace->tensors[x->tensor].bytes, q = v->trace->tensors[y->tensor].bytes;
  (void)context;
  if (p != q)
    return p < q ? 1 : -1;
  return (x->idle_ns < y->idle_ns) - (x->idle_ns > y->idle_ns);
}

bool policy_greedy_largest (policy_view *v, policy_choice *out, error *err) {
  int64_t *res = view_residents (v, err);
  int32_t *order = NEW (v->arena, v->n_gaps, int32_t, err);
  bool *taken = NEW (v->arena, v->n_gaps, bool, err);
  if (!res || !order || !taken)
    return false;
  for (int32_t i = 0; i < v->n_gaps; i++)
    order[i] = i;
  view_sort (v, order, v->n_gaps, largest_first, NULL);
  for (int32_t peak; peak = view_peak (v, res), res[peak] > v->budget_bytes;) {
    int32_t n = 0;
    while (n < v->n_gaps && (taken[order[n]] || !gap_covers (&v->gaps[order[n]], peak)))
      n++;
    if (n == v->n_gaps) {
      out->note = "nothing is left that is idle at the peak";
      return true;
    }
    const view_gap *g = &v->gaps[order[n]];
    int32_t i = view_late (v, g, view_in_ns (v, g->tensor));
    taken[order[n]] = true;
    view_relieve (v, res, g, i);
    if (!policy_move_gap (v, out, g, i, err))
      return false;
  }
  return true;
}
