/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/rewrite/chain.h"

#include <assert.h>
#include <string.h>

#include "trace/streams.h"

typedef struct chaining {
  const trace *t;
  trace *made;
  int32_t *to; /* per op: its place on the path; or NO_OP */
  bool *left;  /* per tensor: it is left out */
} chaining;

static void see (chaining *c, bool *seen, int32_t x, int32_t k) {
  if (!seen[x])
    c->left[x] = c->to[k] == NO_OP && !c->t->tensors[x].persistent;
  seen[x] = true;
}

/* A tensor that an op beside the path uses first may have gone out, and be clean, before the path
   knows of it. */
static void leave_out (chaining *c, bool *seen) {
  const trace *t = c->t;
  for (int32_t x = 0; x < t->n_tensors; x++)
    if (t->tensors[x].born_before != NO_OP)
      see (c, seen, x, t->tensors[x].born_before);
  for (int32_t k = 0; k < t->n_ops; k++) {
    for (int32_t j = 0; j < t->ops[k].reads.count; j++)
      see (c, seen, t->ops[k].reads.at[j], k);
    for (int32_t j = 0; j < t->ops[k].writes.count; j++)
      see (c, seen, t->ops[k].writes.at[j], k);
  }
}

static bool keep_list (const chaining *c, index_list *list, arena *a, error *err) {
  index_list all = *list;
  *list = (index_list){ 0 };
  if (all.count && !(list->at = NEW (a, all.count, int32_t, err)))
    return false;
  for (int32_t j = 0; j < all.count; j++)
    if (!c->left[all.at[j]])
      list->at[list->count++] = all.at[j];
  return true;
}

static bool put_op (const chaining *c, int32_t k, arena *a, error *err) {
  op *o = &c->made->ops[c->to[k]];
  *o = c->t->ops[k];
  o->stream = 0;
  o->after = o->digested = o->unknown = (index_list){ 0 };
  return keep_list (c, &o->reads, a, err) && keep_list (c, &o->writes, a, err) &&
         keep_list (c, &o->side, a, err);
}

bool trace_chain (const trace *t, arena *a, const trace **out, error *err) {
  assert (t && out);
  index_list path;
  *out = t;
  if (!trace_has_streams (t))
    return true;
  chaining c = { .t = t, .made = NEW (a, 1, trace, err) };
  c.to = NEW (a, t->n_ops, int32_t, err);
  c.left = NEW (a, t->n_tensors, bool, err);
  bool *seen = NEW (a, t->n_tensors, bool, err);
  if (!c.made || !c.to || !c.left || !seen || !streams_path (t, a, &path, err))
    return false;
  *c.made = *t;
  c.made->n_ops = path.count;
  c.made->n_samples = 0;
  c.made->ns_samples = NULL;
  c.made->n_streams = 1;
  if (!ALLOC (a, c.made->ops, path.count, err) || !ALLOC (a, c.made->tensors, t->n_tensors, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++)
    c.to[k] = NO_OP;
  for (int32_t i = 0; i < path.count; i++)
    c.to[path.at[i]] = i;
  leave_out (&c, seen);
  for (int32_t i = 0; i < path.count; i++)
    if (!put_op (&c, path.at[i], a, err))
      return false;
  if (t->n_tensors)
    memcpy (c.made->tensors, t->tensors, (size_t)t->n_tensors * sizeof *t->tensors);
  for (int32_t x = 0; x < t->n_tensors; x++) {
    tensor *y = &c.made->tensors[x];
    bool is_left = c.left[x] || y->born_before == NO_OP;
    y->born_before = is_left ? NO_OP : c.to[y->born_before];
    y->dies_after = c.left[x] || y->dies_after == NO_OP ? NO_OP : c.to[y->dies_after];
  }
  *out = c.made;
  return true;
}
