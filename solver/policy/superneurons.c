/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Outputs of layers that are dear to compute are checkpoints: cached on the device, the least
   recently used evicted when memory is short.  What lies between two checkpoints is dropped: run
   again once and kept, or, where the segment is larger than any op's need, run again for each op.
 */
#include <string.h>

#include "solver/policy/drops.h"

typedef struct neurons {
  policy_view *v;
  policy_choice *out;
  int64_t *res;     /* bytes that live, drops taken off */
  bool *checkpoint; /* per op */
  int32_t *next;    /* per op: the first backward op of the next checkpoint, or NO_OP */
  int32_t *segment; /* per op */
  bool *dropped;    /* per tensor */
} neurons;

/* FORK: what two or more forward ops read. */
static bool forks (const policy_view *v, int32_t k) {
  const index_list *writes = &v->trace->ops[k].writes;
  for (int32_t j = 0; j < writes->count; j++) {
    int32_t x = writes->at[j], readers = 0;
    for (int32_t i = v->uses.offset[x]; i < v->uses.offset[x + 1]; i++)
      readers +=
          v->uses.at[i].op > k && v->uses.at[i].op < v->first_backward && v->uses.at[i].reads;
    if (readers > 1 && !v->trace->tensors[x].persistent)
      return true;
  }
  return false;
}

static bool mark_checkpoints (neurons *s, policy_view *v, policy_choice *out, error *err) {
  *s = (neurons){ .v = v, .out = out, .res = view_residents (v, err) };
  if (!ALLOC (v->arena, s->checkpoint, v->n_ops, err) ||
      !ALLOC (v->arena, s->next, v->n_ops, err) || !ALLOC (v->arena, s->segment, v->n_ops, err) ||
      !ALLOC (v->arena, s->dropped, v->n_tensors, err) || !s->res)
    return false;
  int32_t segment = 0, next = NO_OP;
  for (int32_t k = 0; k < v->first_backward; k++) {
    s->checkpoint[k] = v->class[k] != CLASS_OTHER || forks (v, k);
    segment += s->checkpoint[k];
    s->segment[k] = segment;
  }
  for (int32_t k = v->first_backward - 1; k >= 0; k--) {
    s->next[k] = next;
    if (!s->checkpoint[k])
      continue;
    next = NO_OP;
    for (int32_t b = v->first_backward; b < v->n_ops && next == NO_OP; b++)
      if (v->layer[b] == k)
        next = b;
  }
  return true;
}

static bool drop_segments (neurons *s, error *err) {
  policy_view *v = s->v;
  int64_t lpeak = 0, seg = 0;
  bool centric = false;
  for (int32_t k = v->first_backward; k < v->n_ops; k++) {
    int64_t need = view_working_set (v, k, true);
    lpeak = need > lpeak ? need : lpeak;
  }
  for (int32_t first = 0, end; first < v->first_backward; first = end) {
    seg = 0;
    for (end = first; end < v->first_backward && s->segment[end] == s->segment[first]; end++)
      for (int32_t j = 0; j < v->trace->ops[end].writes.count; j++)
        seg += v->held[v->trace->ops[end].writes.at[j]];
    centric = seg > lpeak; /* then the whole segment is */
    for (int32_t k = first; k < end; k++)
      for (int32_t j = 0; !s->checkpoint[k] && j < v->trace->ops[k].writes.count; j++) {
        int32_t x = v->trace->ops[k].writes.at[j];
        if (v->fb[x] < 0 || v->producer[x] != k)
          continue;
        const view_gap *g = &v->gaps[v->fb[x]];
        if (!policy_can_drop (v, x, g->b))
          continue;
        policy_drop d = { x, g->a, g->b, centric ? -1 : s->segment[first], false };
        s->dropped[x] = true;
        view_relieve (v, s->res, g, g->b);
        if (!policy_add_drop (v, s->out, d, err))
          return false;
      }
  }
  return true;
}

static bool evict (neurons *s, int32_t tensor, int32_t op, error *err) {
  policy_view *v = s->v;
  const view_gap *g = &v->gaps[v->fb[tensor]];
  int32_t back = s->next[v->producer[tensor]];
  policy_move m = { .tensor = tensor,
                    .out_after = op > g->a ? op : g->a,
                    .in_before = g->b,
                    .in_not_before = back == NO_OP || back > g->b ? g->b : back,
                    .wait_at = NO_OP };
  view_gap away = { tensor, m.out_after, g->b, 0 };
  if (m.in_not_before <= m.out_after)
    m.in_not_before = m.out_after + 1;
  if (m.out_after >= m.in_before)
    return true;
  view_relieve (v, s->res, &away, m.in_not_before);
  return policy_add_move (v, s->out, m, err);
}

/* The checkpoint that is idle, on the device, and was touched longest ago. */
static int32_t oldest (const neurons *s, const int32_t *touched, int32_t k) {
  const policy_view *v = s->v;
  int32_t best = -1;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->fb[x] >= 0 && touched[x] != NO_OP && v->gaps[v->fb[x]].a < k &&
        k < v->gaps[v->fb[x]].b && (best < 0 || touched[x] < touched[best]))
      best = x;
  return best;
}

static bool sweep (neurons *s, bool cache, error *err) {
  policy_view *v = s->v;
  int32_t *touched = NEW (v->arena, v->n_tensors, int32_t, err); /* NO_OP: not in the cache */
  if (!touched)
    return false;
  memset (touched, 0xff, (size_t)v->n_tensors * sizeof *touched);
  for (int32_t k = 0; k < v->n_ops; k++) {
    for (int32_t x; cache && s->res[k] > v->budget_bytes && (x = oldest (s, touched, k)) >= 0;) {
      touched[x] = NO_OP;
      if (!evict (s, x, k - 1, err))
        return false;
    }
    const op *o = &v->trace->ops[k];
    for (int i = 0; i < 2; i++) {
      const index_list *list = i ? &o->writes : &o->reads;
      for (int32_t j = 0; j < list->count; j++) {
        int32_t x = list->at[j], p = v->producer[x];
        if (v->fb[x] < 0 || s->dropped[x] || p == NO_OP || k >= v->first_backward ||
            !s->checkpoint[p])
          continue;
        touched[x] = k;
        if (!cache && v->gaps[v->fb[x]].a == k && !evict (s, x, k, err))
          return false;
      }
    }
  }
  return true;
}

bool policy_superneurons (policy_view *v, policy_choice *out, error *err) {
  neurons s;
  if (!mark_checkpoints (&s, v, out, err))
    return false;
  if (v->option[POLICY_OPTION_superneurons_recompute] && !drop_segments (&s, err))
    return false;
  if (!sweep (&s, v->option[POLICY_OPTION_superneurons_cache], err))
    return false;
  if (s.res[view_peak (v, s.res)] > v->budget_bytes)
    out->note = "no checkpoint is left to evict";
  return true;
}
