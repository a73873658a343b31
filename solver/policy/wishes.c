/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choices are made on the original trace; drops rewrite it, and the moves follow. */
#include <assert.h>

#include "solver/policy/attempt.h"
#include "solver/policy/drops.h"

/* The tensor that stands for x at op k. */
static int32_t operand_at (const policy_attempt *r, int32_t k, int32_t x) {
  const op *from = &r->request->trace->ops[k], *to = &r->rw.trace->ops[r->place[k]];
  for (int32_t j = 0; j < from->reads.count; j++)
    if (from->reads.at[j] == x)
      return to->reads.at[j];
  for (int32_t j = 0; j < from->writes.count; j++)
    if (from->writes.at[j] == x)
      return to->writes.at[j];
  return x;
}

/* Behind op i - 1 of the original: before copies that stand for op i. */
static int32_t place_behind (const policy_attempt *r, int32_t i) {
  int32_t n = r->view.n_ops, shift = 0;
  if (i == NO_WAIT)
    return NO_WAIT;
  for (; i <= 0; i += n)
    shift -= r->rw.trace->n_ops;
  return shift + r->place[i - 1] + 1;
}

/* False where nothing is left of the move: copies use the tensor all along. */
static bool move_to_wish (const policy_attempt *r, const policy_move *m, wish *w) {
  int32_t last_use = m->out_after;
  while (last_use >= 0 && !view_uses (&r->view, last_use, m->tensor))
    last_use--;
  int32_t x = last_use < 0 ? m->tensor : operand_at (r, last_use, m->tensor);
  const use *first = r->uses.at + r->uses.offset[x], *end = r->uses.at + r->uses.offset[x + 1];
  int32_t a = r->place[m->out_after], b = r->place[m->in_before];
  bool persistent = r->rw.trace->tensors[x].persistent;
  int32_t next = NO_OP, since = NO_OP;
  for (const use *u = first; u < end; u++) {
    if (u->op <= a)
      since = u->op;
    if (u->op > a && next == NO_OP)
      next = u->op;
  }
  bool wraps = m->in_before <= m->out_after;
  if (next != NO_OP && (wraps || next < b)) /* a copy comes first */
    b = next;
  else if (wraps && first < end && first->op < b)
    b = first->op;
  else if (next == NO_OP && !persistent)
    return false;
  if (since == NO_OP && !persistent)
    return false;
  *w = (wish){ .unit = x,
               .of = 1,
               .out_after = a,
               .in_before = b,
               .in_not_before = place_behind (r, m->in_not_before),
               .wait_out = m->wait_out };
  if (w->in_not_before != NO_WAIT && w->in_not_before > b)
    w->in_not_before = b;
  return true;
}

static bool map_places (policy_attempt *r, arena *a, error *err) {
  int32_t n = r->view.n_ops;
  if (!ALLOC (a, r->place, (int64_t)n + 1, err))
    return false;
  for (int32_t k = 0; k < n; k++)
    r->place[k] = k;
  if (r->rw.trace != r->request->trace)
    for (int32_t k = 0; k < r->rw.trace->n_ops; k++)
      if (!r->rw.ops[k].copy)
        r->place[r->rw.ops[k].index] = k;
  r->place[n] = r->rw.trace->n_ops;
  return true;
}

bool policy_attempt_wishes (policy_attempt *r, arena *a, error *err) {
  assert (r->request && r->view.trace);
  policy_choice *c = &r->choice;
  if (!policy_recomputes (&r->view, c, &r->recomputes, &r->n_recomputes, &r->kept_drops, err) ||
      !trace_rewrite (r->request->trace,
                      &(rewriting){ .recomputes = r->recomputes,
                                    .n_recomputes = r->n_recomputes,
                                    .section_ns = r->request->device->section_ns },
                      a, &r->rw, err) ||
      !uses_of (r->rw.trace, a, &r->uses, err) || !map_places (r, a, err))
    return false;
  if (c->n_moves > INT32_MAX)
    return error_set (err, ERR_input, "more than 2^31 moves");
  if (!ALLOC (a, r->wishes, c->n_moves, err) || !ALLOC (a, r->wait_at, c->n_moves, err))
    return false;
  for (int64_t i = 0; i < c->n_moves; i++) {
    if (!move_to_wish (r, &c->moves[i], &r->wishes[r->n_wishes]))
      continue;
    int32_t at = c->moves[i].wait_at;
    r->wait_at[r->n_wishes++] = at == NO_OP ? NO_OP : r->place[at];
  }
  return true;
}
