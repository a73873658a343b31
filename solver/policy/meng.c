/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Feature maps nearest the loss have short lives and stay; the others cross the link, back as late
   as estimated completion times allow.  How much may stay is lowered until the estimate fits. */
#include "base/units.h"
#include "solver/policy/policy.h"

typedef struct maps {
  int32_t *at; /* tensors, nearest the loss first */
  int32_t count;
} maps;

static int later_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return (v->producer[a] < v->producer[b]) - (v->producer[a] > v->producer[b]);
}

static bool feature_maps (policy_view *v, maps *out, error *err) {
  if (!ALLOC (v->arena, out->at, v->n_tensors, err))
    return false;
  out->count = 0;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->fb[x] >= 0)
      out->at[out->count++] = x;
  view_sort (v, out->at, out->count, later_first, NULL);
  return true;
}

static int64_t fixed_bytes (const policy_view *v) {
  int64_t most = 0;
  for (int32_t k = 0; k < v->n_ops; k++) {
    int64_t set = view_working_set (v, k, false);
    for (int i = 0; i < 2; i++) { /* without its feature maps */
      const index_list *list = i ? &v->trace->ops[k].writes : &v->trace->ops[k].reads;
      for (int32_t j = 0; j < list->count; j++)
        if (v->fb[list->at[j]] >= 0 && !(i && list_has (&v->trace->ops[k].reads, list->at[j])))
          set -= v->held[list->at[j]];
    }
    most = set > most ? set : most;
  }
  return most + view_persistent_bytes (v) + v->pool_bytes;
}

static bool try_threshold (policy_view *v, const maps *m, int64_t room, int64_t *res,
                           policy_choice *out, error *err) {
  int64_t kept = 0;
  out->n_moves = 0;
  for (int32_t k = 0; k < v->n_ops; k++)
    res[k] = v->res[k];
  for (int32_t n = 0; n < m->count; n++) {
    int32_t x = m->at[n];
    if (kept + v->held[x] <= room) {
      kept += v->held[x];
      continue;
    }
    const view_gap *g = &v->gaps[v->fb[x]];
    int32_t i = view_late (v, g, view_in_ns (v, x));
    view_relieve (v, res, g, i);
    if (!policy_move_gap (v, out, g, i, err))
      return false;
  }
  return true;
}

bool policy_meng (policy_view *v, policy_choice *out, error *err) {
  maps m;
  int64_t *res = view_residents (v, err);
  if (!res || !feature_maps (v, &m, err))
    return false;
  int64_t fixed = fixed_bytes (v), step = v->option[POLICY_OPTION_meng_step];
  for (int64_t ppm = 1000000;; ppm -= step) {
    int64_t keep = units_scale (v->budget_bytes, ppm > 0 ? ppm : 0, 1000000);
    if (!try_threshold (v, &m, keep - fixed, res, out, err))
      return false;
    if (res[view_peak (v, res)] <= v->budget_bytes)
      return true;
    if (ppm <= 0) {
      out->note = "every feature map leaves, and it does not suffice";
      return true;
    }
  }
}
