/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All ops but updates keep their order, so an update's earliest place is behind the last of them
   that it depends on, through other updates or not: its anchor.  Updates of one anchor keep their
   order among themselves. */
#include "solver/order/updates.h"

#include "trace/rewrite/order.h"

typedef struct anchoring {
  const trace *t;
  int32_t *write, *any; /* per tensor: the last anchor of its writers, and of its users, so far */
  int32_t *anchor;      /* per op; -1: it depends on none */
} anchoring;

static void later (int32_t *at, int32_t anchor) {
  if (anchor > *at)
    *at = anchor;
}

/* The ends of a tensor's life are uses by the ops that they name. */
static void find_lives (anchoring *n, int32_t k, int32_t *anchor, bool mark) {
  for (int32_t x = 0; x < n->t->n_tensors; x++) {
    const tensor *y = &n->t->tensors[x];
    if (y->born_before != k && y->dies_after != k)
      continue;
    if (mark)
      later (&n->any[x], *anchor);
    else
      later (anchor, n->any[x]);
    if (mark && y->born_before == k)
      later (&n->write[x], *anchor);
  }
}

static int32_t anchor_of (const anchoring *n, int32_t k) {
  const op *o = &n->t->ops[k];
  int32_t at = -1;
  for (int32_t i = 0; i < o->reads.count; i++)
    later (&at, n->write[o->reads.at[i]]);
  for (int32_t i = 0; i < o->writes.count; i++)
    later (&at, n->any[o->writes.at[i]]);
  return at;
}

static void mark (anchoring *n, int32_t k) {
  const op *o = &n->t->ops[k];
  for (int32_t i = 0; i < o->reads.count; i++)
    later (&n->any[o->reads.at[i]], n->anchor[k]);
  for (int32_t i = 0; i < o->writes.count; i++) {
    later (&n->any[o->writes.at[i]], n->anchor[k]);
    later (&n->write[o->writes.at[i]], n->anchor[k]);
  }
}

static bool start_anchors (anchoring *n, bool **lives, arena *a, error *err) {
  const trace *t = n->t;
  if (!ALLOC (a, n->write, t->n_tensors, err) || !ALLOC (a, n->any, t->n_tensors, err) ||
      !ALLOC (a, n->anchor, t->n_ops, err) || !ALLOC (a, *lives, t->n_ops, err))
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    n->write[x] = n->any[x] = -1;
    if (t->tensors[x].born_before != NO_OP)
      (*lives)[t->tensors[x].born_before] = true;
    if (t->tensors[x].dies_after != NO_OP)
      (*lives)[t->tensors[x].dies_after] = true;
  }
  return true;
}

/* Updates behind their anchors, in the order that they had: one pass that counts, one that fills.
 */
static bool place (const anchoring *n, arena *a, int32_t *order, error *err) {
  const trace *t = n->t;
  int32_t *first = NEW (a, (int64_t)t->n_ops + 2, int32_t, err); /* by anchor + 1 */
  if (!first)
    return false;
  for (int32_t k = 0; k < t->n_ops; k++)
    first[n->anchor[k] + 1]++;
  for (int32_t i = 0, sum = 0; i <= t->n_ops; i++) {
    int32_t count = first[i];
    first[i] = sum;
    sum += count;
  }
  /* An op that stays is its own anchor, and comes before all that hang on it: smaller indices first
     would put it there only by chance. */
  for (int32_t k = 0; k < t->n_ops; k++)
    if (n->anchor[k] == k)
      order[first[k + 1]++] = k;
  for (int32_t k = 0; k < t->n_ops; k++)
    if (n->anchor[k] != k)
      order[first[n->anchor[k] + 1]++] = k;
  return true;
}

bool order_updates (const trace *t, arena *a, op_run **runs, int32_t *n_runs, error *err) {
  anchoring n = { .t = t };
  bool *lives;
  int32_t *order = NEW (a, t->n_ops, int32_t, err);
  if (!order || !start_anchors (&n, &lives, a, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    n.anchor[k] = k;
    if (t->ops[k].phase == OP_UPDATE) {
      n.anchor[k] = anchor_of (&n, k);
      if (lives[k])
        find_lives (&n, k, &n.anchor[k], false);
    }
    if (lives[k])
      find_lives (&n, k, &n.anchor[k], true);
    mark (&n, k);
  }
  return place (&n, a, order, err) && order_runs (order, t->n_ops, a, runs, n_runs, err);
}
