/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/uses.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "trace/streams.h"

/* Adds a use by `op`, or widens the one that is there already. */
static void add (uses *u, int32_t *next, int32_t *last, int32_t tensor, int32_t op, bool reads,
                 bool writes, bool fill) {
  if (last[tensor] != op) {
    last[tensor] = op;
    if (fill)
      u->at[next[tensor]] = (use){
        .op = op, .version = next[tensor] > u->offset[tensor] ? u->at[next[tensor] - 1].version : 0
      };
    next[tensor]++;
  }
  if (fill) {
    use *at = &u->at[next[tensor] - 1];
    at->reads |= reads;
    at->writes |= writes;
  }
}

/* Tensors in order of the op that they name in born_before or dies_after, as chains. */
static void chain (const trace *t, int32_t *head, int32_t *link, size_t field) {
  memset (head, 0xff, (size_t)t->n_ops * sizeof *head);
  for (int32_t x = t->n_tensors - 1; x >= 0; x--) {
    int32_t op = *(const int32_t *)((const char *)&t->tensors[x] + field);
    if (op == NO_OP)
      continue;
    link[x] = head[op];
    head[op] = x;
  }
}

typedef struct lives {
  int32_t *born, *born_link, *dies, *dies_link; /* per op its first tensor, per tensor the next */
  bool *touched;                                /* by any op: else the tensor is nothing */
  int32_t *last;
  held_ops held; /* NULL: all ops run one after the other */
} lives;

/* `by` uses what op `of` does: that op itself, or the last one that may begin before it has ended,
   for which its tensors are still there. */
static void touch (const trace *t, const lives *l, uses *u, int32_t *next, int32_t of, int32_t by,
                   bool fill) {
  const op *o = &t->ops[of];
  bool own = of == by;
  for (int32_t x = l->born[of]; x >= 0; x = l->born_link[x])
    if (l->touched[x])
      add (u, next, l->last, x, by, false, own, fill);
  for (int32_t j = 0; j < o->reads.count; j++)
    add (u, next, l->last, o->reads.at[j], by, own, false, fill);
  for (int32_t j = 0; j < o->writes.count; j++)
    add (u, next, l->last, o->writes.at[j], by, false, own, fill);
  for (int32_t x = l->dies[of]; x >= 0; x = l->dies_link[x])
    if (l->touched[x])
      add (u, next, l->last, x, by, false, false, fill);
}

static void visit (const trace *t, const lives *l, uses *u, int32_t *next, bool fill) {
  memset (l->last, 0xff, (size_t)t->n_tensors * sizeof *l->last);
  for (int32_t i = 0; i < t->n_ops; i++) {
    const index_list *writes = &t->ops[i].writes;
    touch (t, l, u, next, i, i, fill);
    for (int32_t j = 0; fill && j < writes->count; j++)
      u->at[next[writes->at[j]] - 1].version++;
    for (int32_t k = l->held.first ? l->held.first[i] : NO_OP; k != NO_OP; k = l->held.next[k])
      touch (t, l, u, next, k, i, fill);
  }
}

static bool chain_held (const trace *t, lives *l, arena *a, error *err) {
  streams s;
  return !trace_has_streams (t) ||
         (streams_of (t, a, &s, err) && streams_held (&s, t->n_ops, a, &l->held, err));
}

static void mark_touched (const trace *t, bool *touched) {
  for (int32_t i = 0; i < t->n_ops; i++) {
    const op *o = &t->ops[i];
    for (int32_t j = 0; j < o->reads.count; j++)
      touched[o->reads.at[j]] = true;
    for (int32_t j = 0; j < o->writes.count; j++)
      touched[o->writes.at[j]] = true;
  }
}

bool uses_of (const trace *t, arena *a, uses *out, error *err) {
  assert (t && a && out);
  if (!ALLOC (a, out->offset, (int64_t)t->n_tensors + 1, err))
    return false;
  /* The rows outlive this function and their number is not known yet: scratch of its own. */
  arena *scratch = arena_new (0);
  if (!scratch)
    return error_memory (err);
  lives l = { .born = NEW (scratch, t->n_ops, int32_t, err),
              .born_link = NEW (scratch, t->n_tensors, int32_t, err),
              .dies = NEW (scratch, t->n_ops, int32_t, err),
              .dies_link = NEW (scratch, t->n_tensors, int32_t, err),
              .touched = NEW (scratch, t->n_tensors, bool, err),
              .last = NEW (scratch, t->n_tensors, int32_t, err) };
  int32_t *next = NEW (scratch, t->n_tensors, int32_t, err);
  bool ok = l.born && l.born_link && l.dies && l.dies_link && l.touched && l.last && next &&
            chain_held (t, &l, scratch, err);
  if (ok) {
    chain (t, l.born, l.born_link, offsetof (tensor, born_before));
    chain (t, l.dies, l.dies_link, offsetof (tensor, dies_after));
    mark_touched (t, l.touched);
    visit (t, &l, out, next, false);
    for (int32_t x = 0; x < t->n_tensors; x++) {
      out->offset[x + 1] = out->offset[x] + next[x];
      next[x] = out->offset[x];
    }
    out->at = NEW (a, out->offset[t->n_tensors], use, err);
    ok = out->at;
  }
  if (ok)
    visit (t, &l, out, next, true);
  arena_free (scratch);
  return ok;
}

int32_t uses_first (const uses *u, int32_t tensor) {
  return uses_count (u, tensor) ? u->at[u->offset[tensor]].op : NO_OP;
}

int32_t uses_last (const uses *u, int32_t tensor) {
  return uses_count (u, tensor) ? u->at[u->offset[tensor + 1] - 1].op : NO_OP;
}

int32_t uses_end_before (const uses *u, int32_t tensor, int32_t op) {
  assert (u && tensor >= 0);
  return FIRST_WHERE (i, u->offset[tensor], u->offset[tensor + 1], u->at[i].op >= op);
}

int32_t uses_version (const uses *u, int32_t tensor, int32_t op) {
  int32_t end = uses_end_before (u, tensor, op);
  return end > u->offset[tensor] ? u->at[end - 1].version : 0;
}
