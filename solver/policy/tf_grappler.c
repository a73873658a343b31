/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Passes over the graph: at the peak, tensors that were made long before it and are used long after
   it leave first.  The copy in is triggered by an op that had completed well before the reader's
   other inputs; the copy out delays the first other reader. */
#include "base/units.h"
#include "solver/policy/policy.h"

typedef struct grappler {
  policy_view *v;
  const int64_t *at; /* values */
  policy_choice *out;
  int64_t *res;
  bool *handled; /* per tensor */
  bool *skipped; /* per op: no trigger was found once */
  bool *chosen;  /* per tensor, in this pass */
  __int128 *key;
  int32_t *cand;
} grappler;

#define VALUE(s, key) ((s)->at[POLICY_OPTION_tf_grappler_##key])

static int64_t born_ns (const policy_view *v, int32_t x) {
  int32_t first = v->units.at[x].first;
  return v->start_ns[first];
}

/* Uses behind time T, and the earliest of them. */
static int32_t uses_after (const policy_view *v, int32_t x, int64_t t_ns, int64_t *earliest_ns) {
  int32_t n = 0;
  for (int32_t i = v->units.use_offset[x]; i < v->units.use_offset[x + 1]; i++)
    if (v->units.uses[i].reads && v->start_ns[v->units.uses[i].op] > t_ns && n++ == 0)
      *earliest_ns = v->start_ns[v->units.uses[i].op];
  return n;
}

static bool live_at (const policy_view *v, int32_t x, int32_t k) {
  return v->units.at[x].bytes > 0 && v->units.at[x].first != NO_OP && v->units.at[x].first <= k &&
         k <= v->units.at[x].last;
}

static int largest_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  const __int128 *key = context;
  (void)v;
  return (key[a] < key[b]) - (key[a] > key[b]);
}

/* Squares of at most 2^53 ns fit 128 bits. */
static __int128 square (int64_t x) {
  return (__int128)x * x;
}

static int32_t find_candidates (grappler *s, int32_t peak, int64_t t_ns) {
  const policy_view *v = s->v;
  int32_t n = 0;
  for (int32_t x = 0; x < v->n_tensors; x++) {
    int64_t earliest = 0;
    s->chosen[x] = false;
    if (!v->movable[x] || v->trace->tensors[x].persistent || s->handled[x] ||
        !live_at (v, x, peak) || v->trace->tensors[x].bytes <= VALUE (s, floor) ||
        v->end_ns[v->units.at[x].last] - born_ns (v, x) <= VALUE (s, life))
      continue;
    int32_t uses = uses_after (v, x, t_ns, &earliest);
    if (uses == 0)
      continue;
    s->key[x] = square (earliest - t_ns) / square (uses) + square (t_ns - born_ns (v, x));
    s->cand[n++] = x;
  }
  view_sort (v, s->cand, n, largest_first, s->key);
  return n;
}

/* The latest completed of what d's other inputs depend on and that completed before the limit. */
static int32_t find_trigger (grappler *s, int32_t d, uint8_t *seen) {
  const policy_view *v = s->v;
  const index_list *reads = &v->trace->ops[d].reads;
  int64_t bytes = 0, latest = 0;
  int32_t best = NO_OP;
  for (int32_t k = 0; k < v->n_ops; k++)
    seen[k] = 0;
  for (int32_t j = 0; j < reads->count; j++) {
    int32_t x = reads->at[j];
    bytes += s->chosen[x] ? v->trace->tensors[x].bytes : 0;
    for (int32_t i = v->uses.offset[x]; i < v->uses.offset[x + 1]; i++) {
      const use *u = &v->uses.at[i];
      if (u->op >= d || !u->writes)
        continue;
      latest = v->end_ns[u->op] > latest ? v->end_ns[u->op] : latest;
      seen[u->op] |= !s->chosen[x];
    }
  }
  int64_t limit = latest - units_scale (bytes, 1000000000, VALUE (s, rate));
  for (int32_t k = d - 1; k >= 0; k--) {
    if (!seen[k])
      continue;
    if (v->end_ns[k] < limit) { /* a candidate: no further from here */
      if (best == NO_OP || v->end_ns[k] > v->end_ns[best])
        best = k;
      continue;
    }
    for (int32_t j = v->before.offset[k]; j < v->before.offset[k + 1]; j++)
      seen[v->before.at[j]] = 1;
  }
  return best;
}

/* All that was chosen and that d reads: one trigger for all of it. */
static bool rewire (grappler *s, int32_t d, uint8_t *seen, bool *any, error *err) {
  policy_view *v = s->v;
  const index_list *reads = &v->trace->ops[d].reads;
  int32_t at = find_trigger (s, d, seen);
  if (at == NO_OP) {
    s->skipped[d] = true;
    return true;
  }
  for (int32_t j = 0; j < reads->count; j++) {
    int32_t x = reads->at[j];
    const view_gap *g = NULL;
    for (int32_t i = v->gap_offset[x]; s->chosen[x] && i < v->gap_offset[x + 1]; i++)
      if (v->gaps[i].b == d)
        g = &v->gaps[i];
    /* Without another reader nothing could trigger the copy out. */
    if (!g || (g->a == v->producer[x] && uses_count (&v->uses, x) < 3))
      continue;
    policy_move m = { .tensor = x,
                      .out_after = g->a,
                      .in_before = d,
                      .in_not_before = at < g->a ? g->a + 1 : at + 1,
                      .wait_out = true,
                      .wait_at = NO_OP };
    s->handled[x] = *any = true;
    view_relieve (v, s->res, g, m.in_not_before);
    if (!policy_add_move (v, s->out, m, err))
      return false;
  }
  return true;
}

/* False in *any: nothing could be done. */
static bool pass (grappler *s, uint8_t *seen, bool *any, error *err) {
  const policy_view *v = s->v;
  int32_t peak = view_peak (v, s->res);
  int64_t need = s->res[peak] - v->budget_bytes, t_ns = 0;
  *any = false;
  if (need <= 0)
    return true;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (live_at (v, x, peak) && !v->trace->tensors[x].persistent && born_ns (v, x) > t_ns)
      t_ns = born_ns (v, x);
  int32_t n = find_candidates (s, peak, t_ns);
  for (int32_t i = 0; i < n && need >= 0; i++) {
    s->chosen[s->cand[i]] = true;
    need -= v->held[s->cand[i]];
  }
  for (int32_t d = 0; d < v->n_ops; d++) {
    bool reads = false;
    for (int32_t j = 0; j < v->trace->ops[d].reads.count; j++)
      reads |= s->chosen[v->trace->ops[d].reads.at[j]];
    if (reads && v->start_ns[d] > t_ns && !s->skipped[d] && !rewire (s, d, seen, any, err))
      return false;
  }
  return true;
}

bool policy_tf_grappler (policy_view *v, policy_choice *out, error *err) {
  grappler s = { .v = v, .at = v->option, .out = out, .res = view_residents (v, err) };
  uint8_t *seen = NEW (v->arena, v->n_ops, uint8_t, err);
  if (!ALLOC (v->arena, s.handled, v->n_tensors, err) ||
      !ALLOC (v->arena, s.skipped, v->n_ops, err) ||
      !ALLOC (v->arena, s.chosen, v->n_tensors, err) ||
      !ALLOC (v->arena, s.key, v->n_tensors, err) || !ALLOC (v->arena, s.cand, v->n_tensors, err) ||
      !s.res || !seen)
    return false;
  bool any = true;
  for (int64_t i = 0; i < VALUE (&s, passes) && any; i++)
    if (!pass (&s, seen, &any, err))
      return false;
  if (s.res[view_peak (v, s.res)] > v->budget_bytes)
    out->note = any ? "its passes are used up" : "nothing is left that it could swap";
  return true;
}
