/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops of different streams that touch one tensor, one of them writing it, are ordered by waits.  A
   tensor's first op counts as one that writes it: its memory is taken there. */
#include "trace/check/inner.h"

typedef struct touches {
  checker *c;
  int32_t *writer;           /* per tensor: the last that wrote it */
  int32_t *reader;           /* per tensor and stream: the last since then that touches it */
  int32_t *born, *born_next; /* per op: the first tensor born before it; per tensor: the next */
} touches;

static bool is_before (touches *x, int32_t tensor, int32_t first, int32_t second) {
  checker *c = x->c;
  if (first == NO_OP || first == second || streams_ordered (c->t, &c->s, first, second))
    return true;
  return check_breaks (c, RULE_race, "trace", -1, NULL,
                       "ops %d and %d, on streams %d and %d, use tensor %d without a wait between "
                       "them",
                       first, second, c->t->ops[first].stream, c->t->ops[second].stream, tensor);
}

static bool touch (touches *x, int32_t op, int32_t tensor, bool writes) {
  const checker *c = x->c;
  int32_t *readers = &x->reader[(int64_t)tensor * c->s.count];
  bool first = x->writer[tensor] == NO_OP && !c->t->tensors[tensor].persistent;
  if (!is_before (x, tensor, x->writer[tensor], op))
    return false;
  if (writes || first) {
    for (int32_t s = 0; s < c->s.count; s++) {
      if (!is_before (x, tensor, readers[s], op))
        return false;
      readers[s] = NO_OP;
    }
    x->writer[tensor] = op;
  }
  readers[c->t->ops[op].stream] = op;
  return true;
}

static bool touch_all (touches *x, int32_t op, const index_list *list, bool writes) {
  for (int32_t i = 0; i < list->count; i++)
    if (!touch (x, op, list->at[i], writes))
      return false;
  return true;
}

static bool births (touches *x, int32_t op) {
  for (int32_t i = x->born[op]; i != NO_OP; i = x->born_next[i])
    if (!touch (x, op, i, true))
      return false;
  return true;
}

static bool chain_births (touches *x) {
  const checker *c = x->c;
  if (!ALLOC (c->a, x->born, c->n_ops, c->err) ||
      !ALLOC (c->a, x->born_next, c->t->n_tensors, c->err))
    return false;
  for (int32_t k = 0; k < c->n_ops; k++)
    x->born[k] = NO_OP;
  for (int32_t i = c->t->n_tensors - 1; i >= 0; i--) {
    int32_t op = c->t->tensors[i].born_before;
    if (op == NO_OP)
      continue;
    x->born_next[i] = x->born[op];
    x->born[op] = i;
  }
  return true;
}

bool check_race (checker *c) {
  int64_t n = c->t->n_tensors;
  touches x = { .c = c };
  if (!trace_has_streams (c->t))
    return true;
  if (!streams_of (c->t, c->a, &c->s, c->err))
    return false;
  if (!ALLOC (c->a, x.writer, n, c->err) || !ALLOC (c->a, x.reader, n * c->s.count, c->err) ||
      !chain_births (&x))
    return false;
  for (int64_t i = 0; i < n; i++)
    x.writer[i] = NO_OP;
  for (int64_t i = 0; i < n * c->s.count; i++)
    x.reader[i] = NO_OP;
  for (int32_t k = 0; k < c->n_ops; k++)
    if (!births (&x, k) || !touch_all (&x, k, &c->t->ops[k].reads, false) ||
        !touch_all (&x, k, &c->t->ops[k].writes, true))
      return false;
  return true;
}
