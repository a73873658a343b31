/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No plan at all: an op's operands are fetched when they are missed, and the tensor that was
   touched longest ago makes room.  Steps are swept until one begins as the one before it did. */
#include <string.h>

#include "base/order.h"
#include "solver/policy/policy.h"

enum { STEPS = 8 };

typedef struct lru {
  policy_view *v;
  bool *here;             /* per tensor */
  int32_t *older, *newer; /* per tensor, and one more: a ring of those here, by their last touch */
  int32_t *left_after;    /* per tensor that is away: the op behind which it left */
  int64_t *fetched;       /* per tensor: the move that brought it last, or -1 */
  int32_t *births, *deaths,
      n_mortal; /* tensors that do not live across steps, by first and last op */
  int64_t used;
  int32_t ahead;
  policy_choice *out;
} lru;

static bool alive (const policy_view *v, int32_t x, int32_t k) {
  return v->trace->tensors[x].persistent || (v->units.at[x].first <= k && k <= v->units.at[x].last);
}

static bool is_used_at (const lru *s, int32_t x, int32_t k) {
  return k < s->v->n_ops && view_uses (s->v, k, x);
}

static void leave (lru *s, int32_t x) {
  s->here[x] = false;
  s->used -= s->v->held[x];
  s->newer[s->older[x]] = s->newer[x];
  s->older[s->newer[x]] = s->older[x];
}

/* Comes in, or is touched again: the newest of all. */
static void touch (lru *s, int32_t x) {
  int32_t end = s->v->n_tensors;
  if (s->here[x])
    leave (s, x);
  s->here[x] = true;
  s->used += s->v->held[x];
  s->older[x] = s->older[end];
  s->newer[x] = end;
  s->newer[s->older[end]] = x;
  s->older[end] = x;
}

/* It was brought for an op that is still to come. */
static bool is_early (const lru *s, int32_t x, int32_t k) {
  return s->fetched[x] >= 0 && s->out->moves[s->fetched[x]].in_before > k;
}

/* The tensor that leaves; -1: there is none. */
static int32_t find_victim (const lru *s, int32_t k) {
  const policy_view *v = s->v;
  for (int32_t x = s->newer[v->n_tensors]; x < v->n_tensors; x = s->newer[x])
    if (v->movable[x] && !is_used_at (s, x, k) && !(s->ahead && is_used_at (s, x, k + s->ahead)))
      return x;
  return -1;
}

static void make_room (lru *s, int32_t k) {
  const policy_view *v = s->v;
  while (s->used > v->budget_bytes) {
    int32_t x = find_victim (s, k);
    if (x < 0)
      return;
    /* At the first op of the step it leaves behind the last op of the one before. */
    leave (s, x);
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
  touch (s, x);
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
        touch (s, x);
    }
  }
  return true;
}

static int by_birth (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return ORDER (v->units.at[a].first, v->units.at[b].first);
}

static int by_death (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return ORDER (v->units.at[a].last, v->units.at[b].last);
}

static bool sweep (lru *s, error *err) {
  const policy_view *v = s->v;
  int32_t born = 0, dead = 0;
  for (int32_t k = 0; k < v->n_ops; k++) {
    int64_t workspace = view_workspace_bytes (v, k);
    for (; born < s->n_mortal && v->units.at[s->births[born]].first == k; born++)
      touch (s, s->births[born]);
    s->used += workspace;
    if (!touch_op (s, k, k, err))
      return false;
    if (s->ahead && k + s->ahead < v->n_ops && !touch_op (s, k, k + s->ahead, err))
      return false;
    make_room (s, k);
    s->used -= workspace;
    for (; dead < s->n_mortal && v->units.at[s->deaths[dead]].last == k; dead++)
      if (s->here[s->deaths[dead]])
        leave (s, s->deaths[dead]);
  }
  return true;
}

/* A tensor brought in vain goes; a weight's last move of the step must not lie over its first. */
static bool untangle (const policy_view *v, policy_choice *out, error *err) {
  int32_t *last = NEW (v->arena, v->n_tensors, int32_t, err); /* per tensor: its last return */
  int64_t kept = 0;
  if (!last)
    return false;
  for (int64_t i = 0; i < out->n_moves; i++) {
    const policy_move *m = &out->moves[i];
    if (m->tensor >= 0 && m->in_before > last[m->tensor])
      last[m->tensor] = m->in_before;
  }
  for (int64_t i = 0; i < out->n_moves; i++) {
    const policy_move *m = &out->moves[i];
    if (m->tensor >= 0 && (m->in_before > m->out_after || last[m->tensor] <= m->out_after))
      out->moves[kept++] = *m;
  }
  out->n_moves = kept;
  return true;
}

/* Persistent tensors are there; the others are sorted by when they come and go. */
static bool start_lru (lru *s, error *err) {
  policy_view *v = s->v;
  int32_t n = v->n_tensors;
  if (!ALLOC (v->arena, s->here, n, err) || !ALLOC (v->arena, s->older, (int64_t)n + 1, err) ||
      !ALLOC (v->arena, s->newer, (int64_t)n + 1, err) ||
      !ALLOC (v->arena, s->left_after, n, err) || !ALLOC (v->arena, s->fetched, n, err) ||
      !ALLOC (v->arena, s->births, n, err) || !ALLOC (v->arena, s->deaths, n, err))
    return false;
  s->older[n] = s->newer[n] = n;
  for (int32_t x = 0; x < n; x++)
    if (v->held[x] && v->trace->tensors[x].persistent)
      touch (s, x);
    else if (v->held[x] && v->units.at[x].first != NO_OP)
      s->births[s->n_mortal] = x, s->deaths[s->n_mortal++] = x;
  view_sort (v, s->births, s->n_mortal, by_birth, NULL);
  view_sort (v, s->deaths, s->n_mortal, by_death, NULL);
  return true;
}

bool policy_lru (policy_view *v, policy_choice *out, error *err) {
  lru s = {
    .v = v, .out = out, .ahead = (int32_t)v->option[POLICY_OPTION_lru_ahead], .used = v->pool_bytes
  };
  bool *first = NEW (v->arena, v->n_tensors, bool, err);
  if (!first || !start_lru (&s, err))
    return false;
  out->auto_clean = true; /* a page that was not written is not copied again */
  out->fault_ns = v->option[POLICY_OPTION_lru_fault];
  bool same = false;
  for (int step = 0; step < STEPS && !same; step++) {
    out->n_moves = 0;
    memset (s.fetched, 0xff, (size_t)v->n_tensors * sizeof *s.fetched);
    memcpy (first, s.here, (size_t)v->n_tensors);
    if (!sweep (&s, err))
      return false;
    same = step > 0 && memcmp (first, s.here, (size_t)v->n_tensors) == 0;
  }
  return untangle (v, out, err);
}
