/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/remake.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

typedef struct former {
  int32_t tensor, up_to;
} former;

static int32_t version_at (const remake *w, int32_t x, int32_t k) {
  return uses_version (w->rule.uses, x, k);
}

/* A copy of an op that updates something in place would need that first. */
static bool updates (const op *o) {
  for (int32_t i = 0; i < o->writes.count; i++)
    if (list_has (&o->reads, o->writes.at[i]) && !list_has (&o->side, o->writes.at[i]))
      return true;
  return false;
}

bool remake_is_simple (const trace *t, const uses *u, int32_t x, int32_t before) {
  const tensor *at = &t->tensors[x];
  int32_t writers = 0, by = NO_OP;
  if (at->persistent || at->pinned || at->born_before != NO_OP)
    return false;
  for (int32_t i = u->offset[x]; i < u->offset[x + 1] && u->at[i].op < before; i++)
    if (u->at[i].writes && list_has (&t->ops[u->at[i].op].writes, x)) {
      writers++;
      by = u->at[i].op;
    }
  return writers == 1 && !updates (&t->ops[by]) && !list_has (&t->ops[by].side, x);
}

bool remake_is_dead (const remake *w, int32_t x) {
  return !w->rule.trace->tensors[x].persistent && uses_last (w->rule.uses, x) < w->before;
}

static bool gone (const remake *w, int32_t x) {
  return w->away[x] || remake_is_dead (w, x);
}

typedef struct undo {
  int32_t n_ops, n_tensors, n_formers;
} undo;

static undo here_now (const remake *w) {
  return (undo){ w->n_ops, w->n_tensors, w->n_formers };
}

/* A tensor that was there already is asked to go further. */
static void go_further (remake *w, int32_t x, int32_t up_to) {
  former *moved = arena_grow (w->arena, w->formers, &w->formers_room, (int64_t)w->n_formers + 1,
                              sizeof *w->formers, w->err);
  w->full |= !moved;
  if (!moved)
    return;
  w->formers = moved;
  w->formers[w->n_formers++] = (former){ x, w->up_to[x] };
  w->up_to[x] = up_to;
}

static void go_back (remake *w, undo to) {
  for (; w->n_ops > to.n_ops; w->n_ops--)
    w->taken[w->ops[w->n_ops - 1]] = 0;
  for (; w->n_tensors > to.n_tensors; w->n_tensors--)
    w->made[w->tensors[w->n_tensors - 1]] = 0;
  for (; w->n_formers > to.n_formers; w->n_formers--)
    w->up_to[w->formers[w->n_formers - 1].tensor] = w->formers[w->n_formers - 1].up_to;
}

static bool make (remake *w, int32_t x, int32_t up_to);

/* Steps cut into many parts have so many branches that meet that a request which fails would be
   walked for minutes: one that is granted takes a few steps an op. */
enum { STEPS_AN_OP = 64 };

/* A tensor that was refused once is not walked again: else branches that meet double the work each
   time. */
static bool remade (remake *w, int32_t x, int32_t k) {
  if (w->refused[x] == w->request && w->limit[x] <= k)
    return false;
  if (make (w, x, k))
    return true;
  w->refused[x] = w->request;
  w->limit[x] = k;
  return false;
}

static bool have (remake *w, int32_t x, int32_t k) {
  if (w->made[x] == w->mark)
    return remade (w, x, k);
  if (w->rule.keeps_first && remake_is_dead (w, x) && !w->away[x] &&
      version_at (w, x, k) == version_at (w, x, w->before))
    return true;
  undo here = here_now (w);
  if (gone (w, x)) {
    if (remade (w, x, k)) {
      w->revived |= remake_is_dead (w, x);
      return true;
    }
    go_back (w, here);
    if (!w->rule.keeps && remake_is_dead (w, x)) {
      w->barred = true;
      return false;
    }
  }
  return version_at (w, x, k) == version_at (w, x, w->before);
}

static bool take (remake *w, int32_t k) {
  const op *o = &w->rule.trace->ops[k];
  if (w->taken[k] == w->mark)
    return true;
  if (w->n_ops >= w->rule.most_ops)
    return false;
  w->taken[k] = w->mark;
  w->ops[w->n_ops++] = k;
  for (int32_t j = 0; j < o->reads.count; j++) {
    int32_t x = o->reads.at[j];
    if (list_has (&o->side, x))
      continue;
    if (list_has (&o->writes, x) ? !make (w, x, k) : !have (w, x, k))
      return false;
  }
  return true;
}

/* The first use from which x is made: the last before `end` that writes it afresh, since what was
   written earlier is not in it any more. */
static int32_t fresh_use (const remake *w, int32_t x, int32_t end) {
  const uses *u = w->rule.uses;
  for (int32_t i = end - 1; i >= u->offset[x]; i--)
    if (!u->at[i].reads && uses_writes (u, x, i))
      return i;
  return u->offset[x];
}

/* Runs again what wrote x before op up_to. */
static bool make (remake *w, int32_t x, int32_t up_to) {
  const tensor *t = &w->rule.trace->tensors[x];
  if (t->persistent || t->pinned || t->again == AGAIN_NEVER ||
      (w->rule.once && !remake_is_simple (w->rule.trace, w->rule.uses, x, w->before)))
    return false;
  if (w->steps-- <= 0 || (w->rule.most_walked && w->walked++ >= w->rule.most_walked))
    return false;
  bool known = w->made[x] == w->mark;
  int32_t from = known ? w->up_to[x] : 0, writers = known;
  if (known && from >= up_to)
    return true;
  if (known) {
    go_further (w, x, up_to);
  } else {
    w->up_to[x] = up_to;
    w->made[x] = w->mark;
    w->tensors[w->n_tensors++] = x;
  }
  int32_t end = uses_end_before (w->rule.uses, x, up_to);
  for (int32_t i = fresh_use (w, x, end); i < end; i++) {
    int32_t k = w->rule.uses->at[i].op;
    if (k < from || !uses_writes (w->rule.uses, x, i))
      continue;
    if (list_has (&w->rule.trace->ops[k].side, x) || !take (w, k))
      return false;
    writers++;
  }
  return writers > 0;
}

/* The entry's ops in ascending order. What was in order at the last look still is, unless a request
   was taken back since. */
static void sort_ops (remake *w) {
  assert (w->n_sorted <= w->n_ops);
  int32_t old = w->n_sorted, fresh = w->n_ops - old;
  int32_t *end = w->sorted + w->n_ops;
  memcpy (w->spare, w->ops + old, (size_t)fresh * sizeof *w->ops);
  qsort (w->spare, (size_t)fresh, sizeof *w->spare, order_int32);
  while (fresh > 0)
    *--end =
        old > 0 && w->sorted[old - 1] > w->spare[fresh - 1] ? w->sorted[--old] : w->spare[--fresh];
  w->n_sorted = w->n_ops;
}

/* The rule of versions, as the rewriting will apply it to the ops in ascending order. */
static bool sound (remake *w) {
  w->check_mark++;
  sort_ops (w);
  for (int32_t i = 0; i < w->n_ops; i++) {
    int32_t k = w->sorted[i];
    const op *o = &w->rule.trace->ops[k];
    const int32_t *finds = versions_read (&w->finds, k);
    for (int32_t j = 0; j < o->reads.count; j++, finds++) {
      int32_t x = o->reads.at[j];
      bool own = w->seen[x] == w->check_mark;
      if (list_has (&o->side, x))
        continue;
      if ((!own && list_has (&o->writes, x)) ||
          (own ? w->version[x] : version_at (w, x, w->before)) != *finds)
        return false;
    }
    for (int32_t j = 0; j < o->writes.count; j++, finds++) {
      int32_t x = o->writes.at[j];
      if (list_has (&o->side, x))
        continue;
      w->seen[x] = w->check_mark;
      w->version[x] = *finds + 1;
    }
  }
  return true;
}

bool remake_begin (remake *w, const remake_rule *rule, arena *a, error *err) {
  assert (rule->trace && rule->uses && rule->most_ops > 0);
  const trace *t = rule->trace;
  int32_t **per_tensor[] = { &w->made, &w->up_to,   &w->refused, &w->limit,
                             &w->seen, &w->version, &w->tensors };
  int32_t **per_op[] = { &w->taken, &w->ops, &w->sorted, &w->spare };
  *w = (remake){
    .rule = *rule, .arena = a, .err = err, .away = NEW (a, t->n_tensors, uint8_t, err)
  };
  if (!w->away)
    return false;
  for (size_t i = 0; i < sizeof per_tensor / sizeof *per_tensor; i++)
    if (!(*per_tensor[i] = NEW (a, t->n_tensors, int32_t, err)))
      return false;
  for (size_t i = 0; i < sizeof per_op / sizeof *per_op; i++)
    if (!(*per_op[i] = NEW (a, t->n_ops, int32_t, err)))
      return false;
  return versions_of (t, a, &w->finds, err);
}

void remake_next (remake *w, int32_t before) {
  assert (before >= 0 && before < w->rule.trace->n_ops);
  w->before = before;
  w->mark++;
  w->n_ops = w->n_tensors = w->n_formers = w->n_sorted = 0;
}

bool remake_request (remake *w, int32_t x) {
  undo here = here_now (w);
  w->request++;
  w->steps = (int64_t)STEPS_AN_OP * w->rule.most_ops;
  if (make (w, x, w->before) && sound (w))
    return true;
  go_back (w, here);
  w->n_sorted = 0;
  return false;
}

bool remake_has (const remake *w, int32_t x) {
  return w->made[x] == w->mark && w->up_to[x] >= w->before;
}

bool remake_put (remake *w, bool (*is_wanted) (const void *context, const remake *w, int32_t x),
                 const void *context, recompute *out, error *err) {
  const trace *t = w->rule.trace;
  int64_t written = 0;
  for (int32_t i = 0; i < w->n_ops; i++)
    written += t->ops[w->ops[i]].writes.count;
  *out = (recompute){ .before = w->before };
  if (!ALLOC (w->arena, out->ops.at, w->n_ops, err) ||
      !ALLOC (w->arena, out->replaces.at, written, err))
    return false;
  if (!sound (w)) /* sorts, and knows the versions made */
    return error_set (err, ERR_internal, "an entry before op %d is not sound", w->before);
  memcpy (out->ops.at, w->sorted, (size_t)w->n_ops * sizeof *w->sorted);
  out->ops.count = w->n_ops;
  for (int32_t i = 0; i < w->n_ops; i++) {
    const index_list *made = &t->ops[w->ops[i]].writes;
    for (int32_t j = 0; j < made->count; j++) {
      int32_t x = made->at[j];
      if (w->seen[x] != w->check_mark || w->version[x] != version_at (w, x, w->before) ||
          !is_wanted (context, w, x))
        continue;
      out->replaces.at[out->replaces.count++] = x;
      w->away[x] = 0;
    }
  }
  qsort (out->replaces.at, (size_t)out->replaces.count, sizeof (int32_t), order_int32);
  return true;
}
