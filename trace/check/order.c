/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of the ops: every op once, and no two that touch one tensor, one of them writing it,
   the other way round. */
#include "trace/check/inner.h"

/* The last places, in the plan's order, of the ops so far that read and that write a tensor. */
typedef struct passed {
  int32_t read, written;
  int32_t reader, writer; /* these ops */
} passed;

static bool place_ops (checker *c, int32_t *place) {
  const plan *p = c->p;
  int32_t n = c->original->n_ops, next = 0;
  for (int32_t k = 0; k < n; k++)
    place[k] = -1;
  for (int32_t r = 0; r < p->n_order; r++)
    for (int64_t k = p->order[r].first; k < (int64_t)p->order[r].first + p->order[r].count; k++) {
      if (k < 0 || k >= n)
        return check_breaks (c, RULE_order_each, "order", 2 * r, NULL,
                             "there is no op %lld; the last is %d", (long long)k, n - 1);
      if (place[k] >= 0)
        return check_breaks (c, RULE_order_each, "order", 2 * r, NULL, "op %lld runs twice",
                             (long long)k);
      place[k] = next++;
    }
  return next == n ||
         check_breaks (c, RULE_order_each, "order", -1, NULL, "%d of %d ops run", next, n);
}

static bool reads (checker *c, const int32_t *place, passed *x, int32_t op, int32_t tensor) {
  passed *y = &x[tensor];
  if (place[op] < y->written)
    return check_breaks (c, RULE_order_read, "order", -1, NULL,
                         "op %d reads tensor %d, but op %d, which writes it first, runs behind it",
                         op, tensor, y->writer);
  if (place[op] > y->read) {
    y->read = place[op];
    y->reader = op;
  }
  return true;
}

static bool writes (checker *c, const int32_t *place, passed *x, int32_t op, int32_t tensor) {
  passed *y = &x[tensor];
  if (place[op] < y->read)
    return check_breaks (c, RULE_order_overwrite, "order", -1, NULL,
                         "op %d writes tensor %d, but op %d, which is to read it first, runs "
                         "behind it",
                         op, tensor, y->reader);
  if (place[op] < y->written)
    return check_breaks (c, RULE_order_write, "order", -1, NULL,
                         "op %d writes tensor %d, but op %d, which writes it first, runs behind it",
                         op, tensor, y->writer);
  y->written = place[op];
  y->writer = op;
  return true;
}

/* Births count as writes by the op that they precede, ends as reads by the op that they follow. */
static bool lives (checker *c, const int32_t *place, passed *x, int32_t op, bool births) {
  const trace *t = c->original;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    if (births && t->tensors[i].born_before == op && !writes (c, place, x, op, i))
      return false;
    if (!births && t->tensors[i].dies_after == op && !reads (c, place, x, op, i))
      return false;
  }
  return true;
}

/* Few ops have a tensor that is born before them or dies after them; the others need not look. */
static void mark_lives (const checker *c, bool *marked) {
  for (int32_t i = 0; i < c->original->n_tensors; i++) {
    const tensor *y = &c->original->tensors[i];
    if (y->born_before != NO_OP)
      marked[y->born_before] = true;
    if (y->dies_after != NO_OP)
      marked[y->dies_after] = true;
  }
}

bool check_order (checker *c) {
  const trace *t = c->original;
  if (!c->p->n_order)
    return true;
  int32_t *place = NEW (c->a, t->n_ops, int32_t, c->err);
  bool *marked = NEW (c->a, t->n_ops, bool, c->err);
  passed *x = NEW (c->a, t->n_tensors, passed, c->err);
  if (!place || !marked || !x || !place_ops (c, place))
    return false;
  mark_lives (c, marked);
  for (int32_t i = 0; i < t->n_tensors; i++)
    x[i] = (passed){ -1, -1, NO_OP, NO_OP };
  for (int32_t k = 0; k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    if (marked[k] && !lives (c, place, x, k, true))
      return false;
    for (int32_t i = 0; i < o->reads.count; i++)
      if (!reads (c, place, x, k, o->reads.at[i]))
        return false;
    for (int32_t i = 0; i < o->writes.count; i++)
      if (!writes (c, place, x, k, o->writes.at[i]))
        return false;
    if (marked[k] && !lives (c, place, x, k, false))
      return false;
  }
  return true;
}
