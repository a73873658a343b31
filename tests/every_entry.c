/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "tests/every_way.h"
#include "tests/ref_rewrite.h"

typedef struct listing {
  const trace *t;
  arena *arena;
  error *err;
  recompute *at;
  int64_t count, room;
} listing;

static bool made_of (unsigned set, int32_t n, int32_t *at, int32_t *count) {
  *count = 0;
  for (int32_t i = 0; i < n; i++)
    if (set >> i & 1)
      at[(*count)++] = i;
  return *count > 0;
}

/* Whether what op k of the entry makes is replaced, or read by a later op of the entry. */
static bool serves (const trace *t, unsigned ops, unsigned replaced, int32_t k) {
  const op *o = &t->ops[k];
  for (int32_t i = 0; i < o->writes.count; i++) {
    int32_t x = o->writes.at[i];
    if (replaced >> x & 1)
      return true;
    for (int32_t later = k + 1; ops >> later; later++)
      if (ops >> later & 1 && list_has (&t->ops[later].reads, x))
        return true;
  }
  return false;
}

static bool add (listing *l, int32_t before, unsigned ops, unsigned replaced) {
  recompute r = { .before = before };
  rewritten made;
  error refused = { 0 };
  int32_t n = l->t->n_ops, m = l->t->n_tensors;
  for (int32_t k = 0; k < before; k++)
    if (ops >> k & 1 && !serves (l->t, ops, replaced, k))
      return true;
  arena_mark here = arena_here (l->arena);
  r.ops.at = NEW (l->arena, n, int32_t, l->err);
  r.replaces.at = NEW (l->arena, m, int32_t, l->err);
  if (!r.ops.at || !r.replaces.at || !made_of (ops, n, r.ops.at, &r.ops.count) ||
      !made_of (replaced, m, r.replaces.at, &r.replaces.count))
    return false;
  if (!ref_rewrite (l->t, NULL, 0, &r, 1, 0, l->arena, &made, &refused)) {
    arena_back (l->arena, here);
    return refused.code == ERR_infeasible || error_set (l->err, refused.code, "%s", refused.text);
  }
  recompute *grown = arena_grow (l->arena, l->at, &l->room, l->count + 1, sizeof r, l->err);
  if (!grown)
    return false;
  l->at = grown;
  l->at[l->count++] = r;
  return true;
}

/* The tensors that these ops write and that an op from `before` on uses; none where the ops take
   more than most_ns. */
static unsigned worth_replacing (const trace *t, unsigned ops, int32_t before, int64_t most_ns) {
  unsigned found = 0;
  int64_t ns = 0;
  for (int32_t k = 0; k < before; k++) {
    const op *o = &t->ops[k];
    if (!(ops >> k & 1))
      continue;
    ns += o->ns + o->gap_ns;
    for (int32_t i = 0; i < o->writes.count; i++)
      for (int32_t later = before; later < t->n_ops; later++)
        if (!t->tensors[o->writes.at[i]].persistent && op_touches (&t->ops[later], o->writes.at[i]))
          found |= 1u << o->writes.at[i];
  }
  return ns <= most_ns ? found : 0;
}

static bool made_by (const trace *t, const recompute *r, int32_t up_to, int32_t x) {
  for (int32_t i = 0; i < up_to; i++)
    if (list_has (&t->ops[r->ops.at[i]].writes, x))
      return true;
  return false;
}

/* Whether an op from `from` on uses x. */
static bool is_used_from (const trace *t, int32_t x, int32_t from) {
  for (int32_t k = from; k < t->n_ops; k++)
    if (op_touches (&t->ops[k], x))
      return true;
  return t->tensors[x].persistent;
}

bool every_allows (const every_allowed *allowed, const rewritten *cut, const recompute *r) {
  const trace *t = cut->trace;
  for (int32_t i = 0; allowed->has_list && i < r->replaces.count; i++) {
    int32_t w = r->before - 1;
    while (w >= 0 && !list_has (&t->ops[w].writes, r->replaces.at[i]))
      w--;
    if (w < 0 || !(allowed->listed >> cut->ops[w].index & 1))
      return false;
  }
  for (int32_t i = 0; allowed->fresh && i < r->ops.count; i++) {
    const op *o = &t->ops[r->ops.at[i]];
    for (int32_t j = 0; j < o->reads.count; j++)
      if (!made_by (t, r, i, o->reads.at[j]) && !is_used_from (t, o->reads.at[j], r->before))
        return false;
  }
  return true;
}

bool every_entry (const trace *t, int64_t most_ns, arena *a, recompute **out, int32_t *count,
                  error *err) {
  listing l = { .t = t, .arena = a, .err = err };
  if (t->n_ops > 16 || t->n_tensors > 16)
    return error_set (err, ERR_internal, "the trace is not tiny");
  for (int32_t before = 1; before < t->n_ops; before++)
    for (unsigned ops = 1; ops < 1u << before; ops++) {
      unsigned all = worth_replacing (t, ops, before, most_ns);
      for (unsigned some = all; some; some = (some - 1) & all)
        if (!add (&l, before, ops, some))
          return false;
    }
  *out = l.at;
  *count = (int32_t)l.count;
  return true;
}
