/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything saved for backward leaves when it is saved; its memory is held until some later save,
   which waits for the copy.  Compute waits for each copy in that it asks for. */
#include "solver/policy/policy.h"

bool policy_torchtune (policy_view *v, policy_choice *out, error *err) {
  int64_t floor = v->option[POLICY_OPTION_torchtune_floor];
  int64_t stash = v->option[POLICY_OPTION_torchtune_stash];
  int64_t lead = v->option[POLICY_OPTION_torchtune_lead];
  int32_t *saves = NEW (v->arena, v->n_tensors, int32_t, err), n = 0;
  view_events events;
  if (!saves || !view_fb_events (v, &events, err))
    return false;
  for (int32_t i = 0; i < events.begins.offset[v->n_ops]; i++)
    if (v->trace->tensors[v->gaps[events.begins.at[i]].tensor].bytes >= floor)
      saves[n++] = events.begins.at[i];
  for (int64_t i = 0; i < n; i++) {
    const view_gap *g = &v->gaps[saves[i]];
    /* In the stash still, when the forward pass ends: it is used from there. */
    if (i + stash >= n)
      break;
    int32_t waits = v->gaps[saves[i + stash]].a;
    int64_t at = g->b - lead;
    policy_move m = { .tensor = g->tensor,
                      .out_after = g->a,
                      .in_before = g->b,
                      .in_not_before = at > g->a ? (int32_t)at : g->a + 1,
                      .wait_at = waits > g->a && waits < g->b ? waits : NO_OP };
    if (!policy_add_move (v, out, m, err))
      return false;
  }
  return true;
}
