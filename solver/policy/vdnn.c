/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers' inputs leave while the layer runs forward; at the start of each layer's backward pass one
   of the layers before it is searched whose input is away, and fetched. */
#include <string.h>

#include "solver/policy/policy.h"

typedef struct vdnn {
  policy_view *v;
  policy_choice *out;
  bool sync;
  bool *away;       /* per gap: offloaded */
  int32_t *fetched; /* per gap: place of the trigger, or NO_OP */
  int32_t *waited;  /* per gap: the op before which the fetch has to end */
} vdnn;

/* The gaps of what a forward op reads: feature maps, not weights. */
static int32_t input_gap (const vdnn *s, int32_t op, int32_t from) {
  const index_list *reads = &s->v->trace->ops[op].reads;
  for (int32_t j = from; j < reads->count; j++)
    if (s->v->fb[reads->at[j]] >= 0)
      return j;
  return -1;
}

static void offload (vdnn *s, bool conv_only) {
  for (int32_t k = 0; k < s->v->first_backward; k++) {
    if (conv_only && s->v->class[k] != CLASS_CONV)
      continue;
    for (int32_t j = input_gap (s, k, 0); j >= 0; j = input_gap (s, k, j + 1))
      s->away[s->v->fb[s->v->trace->ops[k].reads.at[j]]] = true;
  }
}

/* From layer n - 1 down: the first input that is away is fetched; a convolution ends the search. */
static void search (vdnn *s, int32_t n, int32_t k, int32_t next) {
  for (int32_t layer = n - 1; layer >= 0; layer--) {
    bool any = false;
    for (int32_t j = input_gap (s, layer, 0); j >= 0; j = input_gap (s, layer, j + 1)) {
      int32_t g = s->v->fb[s->v->trace->ops[layer].reads.at[j]];
      if (!s->away[g] || s->fetched[g] != NO_OP || s->v->gaps[g].b <= k)
        continue;
      s->fetched[g] = k;
      s->waited[g] = next;
      any = true;
    }
    if (any || s->v->class[layer] == CLASS_CONV)
      return;
  }
}

static void prefetch (vdnn *s) {
  const policy_view *v = s->v;
  for (int32_t k = v->first_backward; k < v->n_ops; k++) {
    int32_t n = v->layer[k], next = k + 1;
    if (n == NO_OP || (k > v->first_backward && v->layer[k - 1] == n))
      continue;
    while (next < v->n_ops && v->layer[next] == n)
      next++;
    search (s, n, k, next);
  }
}

static bool run (policy_view *v, bool conv_only, bool sync, int64_t *res, policy_choice *out,
                 error *err) {
  vdnn s = { .v = v, .out = out, .sync = sync };
  if (!ALLOC (v->arena, s.away, v->n_gaps, err) || !ALLOC (v->arena, s.fetched, v->n_gaps, err) ||
      !ALLOC (v->arena, s.waited, v->n_gaps, err))
    return false;
  memset (s.fetched, 0xff, (size_t)v->n_gaps * sizeof *s.fetched);
  out->n_moves = 0;
  offload (&s, conv_only);
  prefetch (&s);
  for (int32_t i = 0; i < v->n_gaps; i++) {
    const view_gap *g = &v->gaps[i];
    if (!s.away[i])
      continue;
    bool fetched = s.fetched[i] != NO_OP;
    policy_move m = { .tensor = g->tensor,
                      .out_after = g->a,
                      .in_before = sync && fetched && s.waited[i] < g->b ? s.waited[i] : g->b,
                      .in_not_before = fetched ? s.fetched[i] : g->b,
                      .wait_out = sync,
                      .wait_at = NO_OP };
    view_relieve (v, res, g, m.in_not_before);
    if (m.in_before > m.out_after && !policy_add_move (v, out, m, err))
      return false;
  }
  return true;
}

static bool dynamic (policy_view *v, bool sync, policy_choice *out, error *err) {
  static const char *const notes[] = { "vdnn-conv was taken", "vdnn-all was taken" };
  int64_t *res = view_residents (v, err);
  for (int conv = 1; res && conv >= 0; conv--) {
    memcpy (res, v->res, (size_t)v->n_ops * sizeof *res);
    if (!run (v, conv, sync, res, out, err))
      return false;
    out->note = notes[!conv];
    if (res[view_peak (v, res)] <= v->budget_bytes)
      return true;
  }
  out->note = "not even vdnn-all fits";
  return res;
}

bool policy_vdnn (policy_view *v, policy_choice *out, error *err) {
  if (v->policy == POLICY_vdnn_dyn)
    return dynamic (v, v->option[POLICY_OPTION_vdnn_dyn_sync], out, err);
  bool conv = v->policy == POLICY_vdnn_conv;
  int64_t *res = view_residents (v, err);
  bool sync = v->option[conv ? POLICY_OPTION_vdnn_conv_sync : POLICY_OPTION_vdnn_all_sync];
  return res && run (v, conv, sync, res, out, err);
}
