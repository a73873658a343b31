/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A breadth-first walk that swaps every tensor it meets with users in the backward pass.  Order
   means the level of an op in the graph; the copy out may start when the tensor has no earlier user
   left, and the trigger of a copy in is an op found by distance. */
#include <string.h>

#include "solver/policy/policy.h"

typedef struct lms {
  policy_view *v;
  const int64_t *at; /* values */
  policy_choice *out;
  int32_t *queue, *users; /* room for every op */
  uint8_t *seen, *front, *next;
  int32_t backward_level; /* the least of a backward op */
  int64_t swapped;
} lms;

enum { NONE = -1 };

#define VALUE(s, key) ((s)->at[POLICY_OPTION_tflms_v1_##key])

/* Backward users that have users themselves, and with branches the forward users far away. */
static int32_t find_users (lms *s, int32_t tensor, int32_t producer) {
  const policy_view *v = s->v;
  int32_t n = 0;
  for (int32_t i = v->units.use_offset[tensor]; i < v->units.use_offset[tensor + 1]; i++) {
    const use *u = &v->units.uses[i];
    int32_t k = u->op;
    if (!u->reads || k <= producer)
      continue;
    bool backward = k >= v->first_backward && v->after.offset[k + 1] > v->after.offset[k];
    bool branch = k < v->first_backward && VALUE (s, swap_branches) == 1 &&
                  v->level[k] - v->level[producer] > VALUE (s, branch_threshold);
    if (backward || branch)
      s->users[n++] = k;
  }
  return n;
}

/* The latest op of an order strictly between two that d depends on; of one order the lowest. */
static int32_t direct_order (lms *s, int32_t producer, int32_t d, int64_t lb) {
  const policy_view *v = s->v;
  int64_t low = v->level[d] - VALUE (s, ub), high = v->level[d] - lb;
  int32_t best = NONE;
  low = low > v->level[producer] ? low : v->level[producer];
  (void)view_reaches (v, 0, d, s->seen);
  for (int32_t k = 0; k < d; k++)
    if (s->seen[k] && v->level[k] > low && v->level[k] < high &&
        (best == NONE || v->level[k] > v->level[best]))
      best = k;
  return best;
}

/* The backward users of what lies `d` steps forward of the producer. */
static int32_t chain_rule (lms *s, int32_t producer, int32_t d, int64_t lb) {
  const policy_view *v = s->v;
  size_t n = (size_t)v->n_ops;
  memset (s->front, 0, n);
  s->front[producer] = 1;
  for (int64_t depth = 0, any = 1; any && depth <= VALUE (s, ub); depth++) {
    int32_t best = NONE;
    any = 0;
    memset (s->next, 0, n);
    for (int32_t k = producer; k < v->first_backward; k++)
      for (int32_t j = v->after.offset[k]; s->front[k] && j < v->after.offset[k + 1]; j++) {
        int32_t c = v->after.at[j];
        if (c < v->first_backward)
          any = s->next[c] = 1;
        else if (depth >= lb && v->level[c] > v->level[producer] && v->level[c] < v->level[d] &&
                 (best == NONE || c < best))
          best = c;
      }
    if (best != NONE)
      return best;
    memcpy (s->front, s->next, n);
  }
  return NONE;
}

static int32_t trigger (lms *s, int32_t producer, int32_t d) {
  const policy_view *v = s->v;
  int64_t lb = VALUE (s, lb);
  if (v->level[d] - lb <= v->level[producer])
    lb = 1;
  bool direct = VALUE (s, ctrld_strategy) == 1 || v->level[d] - lb < s->backward_level;
  return direct ? direct_order (s, producer, d, lb) : chain_rule (s, producer, d, lb);
}

/* One copy in for users[0]; those behind it find the tensor there until it leaves again. */
static bool fetch (lms *s, int32_t tensor, int32_t producer, int32_t d, error *err) {
  const policy_view *v = s->v;
  int32_t a = NO_OP;
  for (int32_t i = v->units.use_offset[tensor]; i < v->units.use_offset[tensor + 1]; i++)
    if (v->units.uses[i].op < d)
      a = v->units.uses[i].op;
  int32_t at = trigger (s, producer, d);
  /* There a second copy would lie beside the one in use; here it follows, unless it is needed at
     once. */
  if (a == NO_OP || (a >= v->first_backward && d - a < 2))
    return true;
  policy_move m = { .tensor = tensor,
                    .out_after = a,
                    .in_before = d,
                    .in_not_before = at == NONE || at < a ? a + 1 : at + 1,
                    .wait_at = NO_OP };
  return policy_add_move (s->v, s->out, m, err);
}

/* False: the number of tensors is reached, or an error. */
static bool visit (lms *s, int32_t k, error *err) {
  const index_list *writes = &s->v->trace->ops[k].writes;
  for (int32_t j = 0; j < writes->count; j++) {
    int32_t x = writes->at[j];
    if (!s->v->movable[x] || s->v->trace->tensors[x].persistent || s->v->producer[x] != k)
      continue;
    int32_t n = find_users (s, x, k);
    if (n == 0)
      continue;
    if (s->swapped == VALUE (s, n_tensors))
      return false;
    s->swapped++;
    int32_t copies = VALUE (s, fuse_swapins) == 1 ? 1 : n;
    for (int32_t i = 0; i < copies; i++)
      if (!fetch (s, x, k, s->users[i], err))
        return false;
  }
  return true;
}

bool policy_tflms_v1 (policy_view *v, policy_choice *out, error *err) {
  lms s = { .v = v, .at = v->option, .out = out, .backward_level = INT32_MAX };
  uint8_t *met = NEW (v->arena, v->n_ops, uint8_t, err);
  if (!ALLOC (v->arena, s.queue, v->n_ops, err) || !ALLOC (v->arena, s.users, v->n_ops, err) ||
      !ALLOC (v->arena, s.seen, v->n_ops, err) || !ALLOC (v->arena, s.front, v->n_ops, err) ||
      !ALLOC (v->arena, s.next, v->n_ops, err) || !met)
    return false;
  out->auto_clean = true; /* one copy out serves all copies in */
  for (int32_t k = v->first_backward; k < v->n_ops; k++)
    if (v->level[k] < s.backward_level)
      s.backward_level = v->level[k];
  int32_t head = 0, tail = 0;
  /* Along edges of the forward pass; other roots than the first op in their order. */
  for (int32_t root = 0; root < v->first_backward && root < v->n_ops; root++) {
    if (!met[root])
      s.queue[tail++] = root;
    met[root] = 1;
    for (; head < tail; head++) {
      int32_t k = s.queue[head];
      if (!visit (&s, k, err))
        return err->code == ERR_none;
      for (int32_t j = v->after.offset[k]; j < v->after.offset[k + 1]; j++)
        if (!met[v->after.at[j]] && v->after.at[j] < v->first_backward) {
          met[v->after.at[j]] = 1;
          s.queue[tail++] = v->after.at[j];
        }
    }
  }
  return true;
}
