/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sweep over the ops: what does not fit makes room by evicting the tensor that is needed furthest
   in the future (Belady); copies in start as early as the bytes fit. */
#include "base/order.h"
#include "solver/policy/policy.h"

typedef struct planner {
  policy_view *v;
  int64_t *res;
  int32_t *taken, n_taken;
} planner;

/* The gap of the tensor that is open at op k and ends furthest away, if it is not taken. */
static int32_t furthest (const planner *s, const bool *is_taken, int32_t k) {
  const policy_view *v = s->v;
  int32_t best = -1, best_end = 0;
  for (int32_t i = 0; i < v->n_gaps; i++) {
    const view_gap *g = &v->gaps[i];
    /* A wrapping gap is left alone before it begins: its weight is there from the start. */
    if (is_taken[i] || (gap_wraps (g) ? k <= g->a : !gap_covers (g, k)))
      continue;
    int32_t end = gap_wraps (g) ? g->b + v->n_ops : g->b;
    if (end > best_end) {
      best = i;
      best_end = end;
    }
  }
  return best;
}

static int in_order_of_use (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return ORDER (v->gaps[a].b, v->gaps[b].b);
}

/* When each copy out has ended, one after the other in order of release. */
static int by_release (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return ORDER (v->gaps[a].a, v->gaps[b].a);
}

static bool out_ends (planner *s, int64_t *end_ns) {
  const policy_view *v = s->v;
  int64_t free_ns = 0;
  view_sort (v, s->taken, s->n_taken, by_release, NULL);
  for (int32_t n = 0; n < s->n_taken; n++) {
    const view_gap *g = &v->gaps[s->taken[n]];
    int64_t ready = v->end_ns[g->a];
    free_ns = (free_ns > ready ? free_ns : ready) + view_out_ns (v, g->tensor);
    end_ns[s->taken[n]] = free_ns;
  }
  return true;
}

static bool fetch (planner *s, const int64_t *out_end_ns, policy_choice *out, error *err) {
  policy_view *v = s->v;
  view_sort (v, s->taken, s->n_taken, in_order_of_use, NULL);
  for (int32_t n = 0; n < s->n_taken; n++) {
    const view_gap *g = &v->gaps[s->taken[n]];
    int64_t bytes = v->held[g->tensor], wrap = gap_wraps (g) ? v->step_ns : 0;
    int32_t low = (gap_wraps (g) ? g->a - v->n_ops : g->a) + 1, i = g->b;
    while (i > low && view_start_ns (v, i - 1) + wrap >= out_end_ns[s->taken[n]] &&
           s->res[i - 1 < 0 ? i - 1 + v->n_ops : i - 1] + bytes <= v->budget_bytes)
      i--;
    for (int32_t k = i; k < g->b; k++)
      s->res[k < 0 ? k + v->n_ops : k] += bytes;
    if (!policy_move_gap (v, out, g, i, err))
      return false;
  }
  return true;
}

bool policy_swapadvisor (policy_view *v, policy_choice *out, error *err) {
  planner s = { .v = v, .res = view_residents (v, err) };
  bool *is_taken = NEW (v->arena, v->n_gaps, bool, err);
  int64_t *end_ns = NEW (v->arena, v->n_gaps, int64_t, err);
  if (!ALLOC (v->arena, s.taken, v->n_gaps, err) || !s.res || !is_taken || !end_ns)
    return false;
  for (int32_t k = 0; k < v->n_ops; k++)
    while (s.res[k] > v->budget_bytes) {
      int32_t i = furthest (&s, is_taken, k);
      if (i < 0) {
        out->note = "an op finds nothing to evict";
        break;
      }
      is_taken[i] = true;
      s.taken[s.n_taken++] = i;
      view_relieve (v, s.res, &v->gaps[i], v->gaps[i].b);
    }
  return out_ends (&s, end_ns) && fetch (&s, end_ns, out, err);
}
