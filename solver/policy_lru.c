/* No plan at all: an op's operands are fetched when they are missed, and the tensor that was
   touched longest ago makes room.  Steps are swept until one begins as the one before it did. */
#include <string.h>

#include "solver/policy.h"

enum { STEPS = 8 };

typedef struct lru {
  policy_view *v;
  bool *here;          /* per tensor */
  int64_t *touched;    /* per tensor: when, over all steps */
  int32_t *left_after; /* per tensor that is away: the op behind which it left */
  int64_t *fetched;    /* per tensor: the move that brought it last, or -1 */
  int64_t used, now;
  int32_t ahead;
  policy_choice *out;
} lru;

static bool alive (const policy_view *v, int32_t x, int32_t k) {
  return v->trace->tensors[x].persistent || (v->units.at[x].first <= k && k <= v->units.at[x].last);
}

static bool is_used_at (const lru *s, int32_t x, int32_t k) {
  return k < s->v->n_ops && view_uses (s->v, k, x);
}

/* It was brought for an op that is still to come. */
static bool is_early (const lru *s, int32_t x, int32_t k) {
  return s->fetched[x] >= 0 && s->out->moves[s->fetched[x]].in_before > k;
}

/* The tensor that leaves; -1: there is none. */
static int32_t find_victim (const lru *s, int32_t k) {
  const policy_view *v = s->v;
  int32_t best = -1;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (s->here[x] && v->movable[x] && alive (v, x, k) && !is_used_at (s, x, k) &&
        !(s->ahead && is_used_at (s, x, k + s->ahead)) &&
        (best < 0 || s->touched[x] < s->touched[best]))
      best = x;
  return best;
}

static void make_room (lru *s, int32_t k) {
  const policy_view *v = s->v;
  while (s->used > v->budget_bytes) {
    int32_t x = find_victim (s, k);
    if (x < 0)
      return;
    /* At the first op of the step it leaves behind the last op of the one before. */
    s->here[x] = false;
    s->used -= v->held[x];
    if (is_early (s, x, k)) { /* brought in vain: no plan can say that, so it never was */
      s->left_after[x] = s->out->moves[s->fetched[x]].out_after;
      s->out->moves[s->fetched[x]].tensor = -1;
    } else {
      s->left_after[x] = k > 0 ? k - 1 : v->n_ops - 1;
    }
  }
}

static bool fetch (lru *s, int32_t x, int32_t k, int32_t need, error *err) {
  policy_view *v = s->v;
  s->here[x] = true;
  s->used += v->held[x];
  policy_move m = { .tensor = x,
                    .out_after = s->left_after[x],
                    .in_before = need,
                    .in_not_before = k,
                    .wait_at = NO_OP };
  s->fetched[x] = s->out->n_moves;
  return policy_add_move (v, s->out, m, err);
}

static bool touch_op (lru *s, int32_t k, int32_t need, error *err) {
  const policy_view *v = s->v;
  const op *o = &v->trace->ops[need];
  for (int i = 0; i < 2; i++) {
    const index_list *list = i ? &o->writes : &o->reads;
    for (int32_t j = 0; j < list->count; j++) {
      int32_t x = list->at[j];
      if (!v->movable[x] || !alive (v, x, k))
        continue;
      if (!s->here[x] && !fetch (s, x, k, need, err))
        return false;
      if (k == need)
        s->touched[x] = ++s->now;
    }
  }
  return true;
}

static bool sweep (lru *s, error *err) {
  const policy_view *v = s->v;
  for (int32_t k = 0; k < v->n_ops; k++) {
    int64_t workspace = view_workspace_bytes (v, k);
    for (int32_t x = 0; x < v->n_tensors; x++) /* births */
      if (v->held[x] && !v->trace->tensors[x].persistent && v->units.at[x].first == k) {
        s->here[x] = true;
        s->used += v->held[x];
      }
    s->used += workspace;
    if (!touch_op (s, k, k, err))
      return false;
    if (s->ahead && k + s->ahead < v->n_ops && !touch_op (s, k, k + s->ahead, err))
      return false;
    make_room (s, k);
    s->used -= workspace;
    for (int32_t x = 0; x < v->n_tensors; x++)
      if (v->held[x] && !v->trace->tensors[x].persistent && v->units.at[x].last == k &&
          s->here[x]) {
        s->here[x] = false;
        s->used -= v->held[x];
      }
  }
  return true;
}

/* What was brought in vain goes; a weight's last move of the step must not lie over its first. */
static void untangle (policy_choice *out) {
  int64_t kept = 0;
  for (int64_t i = 0; i < out->n_moves; i++) {
    const policy_move *m = &out->moves[i];
    bool over = m->tensor < 0;
    for (int64_t j = 0; m->in_before <= m->out_after && j < out->n_moves; j++)
      over |= j != i && out->moves[j].tensor == m->tensor && out->moves[j].in_before > m->out_after;
    if (!over)
      out->moves[kept++] = *m;
  }
  out->n_moves = kept;
}

bool policy_lru (policy_view *v, policy_id id, const policy_values *values, policy_choice *out,
                 error *err) {
  (void)id;
  lru s = {
    .v = v, .out = out, .ahead = (int32_t)values->at[POLICY_OPTION_lru_ahead], .used = v->pool_bytes
  };
  s.here = NEW (v->arena, v->n_tensors, bool, err);
  s.touched = NEW (v->arena, v->n_tensors, int64_t, err);
  s.left_after = NEW (v->arena, v->n_tensors, int32_t, err);
  s.fetched = NEW (v->arena, v->n_tensors, int64_t, err);
  bool *first = NEW (v->arena, v->n_tensors, bool, err);
  if (!s.here || !s.touched || !s.left_after || !s.fetched || !first)
    return false;
  out->auto_clean = true; /* a page that was not written is not copied again */
  out->fault_ns = values->at[POLICY_OPTION_lru_fault];
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->trace->tensors[x].persistent && v->held[x]) {
      s.here[x] = true;
      s.used += v->held[x];
    }
  bool same = false;
  for (int step = 0; step < STEPS && !same; step++) {
    out->n_moves = 0;
    memset (s.fetched, 0xff, (size_t)v->n_tensors * sizeof *s.fetched);
    memcpy (first, s.here, (size_t)v->n_tensors);
    if (!sweep (&s, err))
      return false;
    same = step > 0 && memcmp (first, s.here, (size_t)v->n_tensors) == 0;
  }
  untangle (out);
  return true;
}
