/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/recompute/drops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Longer entries are worth nothing, and in an unrolled network each would go back to its beginning
   where what is dead may be kept. */
enum { MOST_CHAIN = 256 };

/* An entry so far. Marks are op + 1 of the op that it stands before. */
typedef struct walk {
  const trace *t;
  const uses *u;
  arena *arena;
  int32_t before, mark;
  bool keeps, barred; /* as drops_find's */
  bool keeps_first, replaces;
  uint8_t *away;   /* per tensor: dropped and not made again yet, and how it was */
  int32_t *wanted; /* per tensor away: by this op */
  int64_t *starts; /* per op: compute before it */
  int64_t near_ns;
  int32_t *made;    /* per tensor: mark */
  int32_t *up_to;   /* per tensor made: by copies of its writers before this op */
  int32_t *taken;   /* per op: mark */
  int32_t *refused; /* per tensor: the request in which it could not be made */
  int32_t *limit;   /* per tensor refused: for this op, nor for any behind it */
  int32_t *seen;    /* per tensor: mark of check */
  int32_t *version; /* per tensor seen: of the fresh one */
  int32_t *ops, *tensors, *sorted;
  struct former *formers; /* the values of up_to before it went further */
  int64_t formers_room;
  int32_t n_ops, n_tensors, n_formers, check_mark, request;
  bool full; /* no memory for formers, as err says */
  error *err;
} walk;

typedef struct former {
  int32_t tensor, up_to;
} former;

/* Writes by ops before op k; what born_before adds is no op's write. */
static int32_t versions (const walk *w, int32_t x, int32_t k) {
  int32_t n = 0;
  for (int32_t i = w->u->offset[x]; i < w->u->offset[x + 1] && w->u->at[i].op < k; i++)
    n += w->u->at[i].writes && list_has (&w->t->ops[w->u->at[i].op].writes, x);
  return n;
}

static bool dead (const walk *w, int32_t x) {
  return !w->t->tensors[x].persistent && uses_last (w->u, x) < w->before;
}

static bool gone (const walk *w, int32_t x) {
  return w->away[x] || dead (w, x);
}

typedef struct undo {
  int32_t n_ops, n_tensors, n_formers;
} undo;

static undo here_now (const walk *w) {
  return (undo){ w->n_ops, w->n_tensors, w->n_formers };
}

/* A tensor that was there already is asked to go further. */
static void go_further (walk *w, int32_t x, int32_t up_to) {
  former *moved = arena_grow (w->arena, w->formers, &w->formers_room, (int64_t)w->n_formers + 1,
                              sizeof *w->formers, w->err);
  w->full |= !moved;
  if (!moved)
    return;
  w->formers = moved;
  w->formers[w->n_formers++] = (former){ x, w->up_to[x] };
  w->up_to[x] = up_to;
}

static void go_back (walk *w, undo to) {
  for (; w->n_ops > to.n_ops; w->n_ops--)
    w->taken[w->ops[w->n_ops - 1]] = 0;
  for (; w->n_tensors > to.n_tensors; w->n_tensors--)
    w->made[w->tensors[w->n_tensors - 1]] = 0;
  for (; w->n_formers > to.n_formers; w->n_formers--)
    w->up_to[w->formers[w->n_formers - 1].tensor] = w->formers[w->n_formers - 1].up_to;
}

static bool make (walk *w, int32_t x, int32_t up_to);

/* A tensor that was refused once is not walked again: else branches that meet double the work each
   time. */
static bool remade (walk *w, int32_t x, int32_t k) {
  if (w->refused[x] == w->request && w->limit[x] <= k)
    return false;
  if (make (w, x, k))
    return true;
  w->refused[x] = w->request;
  w->limit[x] = k;
  return false;
}

static bool have (walk *w, int32_t x, int32_t k) {
  if (w->made[x] == w->mark)
    return remade (w, x, k);
  if (w->keeps_first && dead (w, x) && !w->away[x] &&
      versions (w, x, k) == versions (w, x, w->before))
    return true;
  undo here = here_now (w);
  if (gone (w, x)) {
    if (remade (w, x, k))
      return true;
    go_back (w, here);
    if (!w->keeps && dead (w, x)) {
      w->barred = true;
      return false;
    }
  }
  return versions (w, x, k) == versions (w, x, w->before);
}

static bool take (walk *w, int32_t k) {
  const op *o = &w->t->ops[k];
  if (w->taken[k] == w->mark)
    return true;
  if (w->n_ops >= MOST_CHAIN)
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

/* The last op before up_to that writes x afresh; what was written earlier is not in it any more. */
static int32_t fresh_writer (const walk *w, int32_t x, int32_t up_to) {
  int32_t last = 0;
  for (int32_t i = w->u->offset[x]; i < w->u->offset[x + 1] && w->u->at[i].op < up_to; i++) {
    const op *o = &w->t->ops[w->u->at[i].op];
    if (w->u->at[i].writes && list_has (&o->writes, x) && !list_has (&o->reads, x))
      last = w->u->at[i].op;
  }
  return last;
}

/* Runs again what wrote x before op up_to. */
static bool make (walk *w, int32_t x, int32_t up_to) {
  const tensor *t = &w->t->tensors[x];
  if (t->persistent || t->pinned || t->again == AGAIN_NEVER)
    return false;
  bool known = w->made[x] == w->mark;
  int32_t from = known ? w->up_to[x] : 0, writers = known, fresh = fresh_writer (w, x, up_to);
  if (known && from >= up_to)
    return true;
  if (known) {
    go_further (w, x, up_to);
  } else {
    w->up_to[x] = up_to;
    w->made[x] = w->mark;
    w->tensors[w->n_tensors++] = x;
  }
  for (int32_t i = w->u->offset[x]; i < w->u->offset[x + 1] && w->u->at[i].op < up_to; i++) {
    int32_t k = w->u->at[i].op;
    if (k < from || k < fresh || !w->u->at[i].writes || !list_has (&w->t->ops[k].writes, x))
      continue;
    if (list_has (&w->t->ops[k].side, x) || !take (w, k))
      return false;
    writers++;
  }
  return writers > 0;
}

static int ascending (const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return x < y ? -1 : x > y;
}

/* The rule of versions, as the rewriting will apply it to the ops in ascending order. */
static bool sound (walk *w) {
  w->check_mark++;
  memcpy (w->sorted, w->ops, (size_t)w->n_ops * sizeof *w->ops);
  qsort (w->sorted, (size_t)w->n_ops, sizeof *w->sorted, ascending);
  for (int32_t i = 0; i < w->n_ops; i++) {
    int32_t k = w->sorted[i];
    const op *o = &w->t->ops[k];
    for (int32_t j = 0; j < o->reads.count; j++) {
      int32_t x = o->reads.at[j];
      bool own = w->seen[x] == w->check_mark;
      if (list_has (&o->side, x))
        continue;
      if ((!own && list_has (&o->writes, x)) ||
          (own ? w->version[x] : versions (w, x, w->before)) != versions (w, x, k))
        return false;
    }
    for (int32_t j = 0; j < o->writes.count; j++) {
      int32_t x = o->writes.at[j];
      if (list_has (&o->side, x))
        continue;
      w->seen[x] = w->check_mark;
      w->version[x] = versions (w, x, k) + 1;
    }
  }
  return true;
}

static bool begin (walk *w, const trace *t, const uses *u, bool keeps, arena *a, error *err) {
  int32_t **per_tensor[] = { &w->made, &w->up_to,   &w->refused, &w->limit,
                             &w->seen, &w->version, &w->tensors, &w->wanted };
  int32_t **per_op[] = { &w->taken, &w->ops, &w->sorted };
  *w = (walk){ .t = t,
               .u = u,
               .arena = a,
               .err = err,
               .keeps = keeps,
               .away = NEW (a, t->n_tensors, uint8_t, err),
               .starts = NEW (a, t->n_ops, int64_t, err) };
  if (!w->away || !w->starts)
    return false;
  for (int32_t k = 1; k < t->n_ops; k++)
    w->starts[k] = w->starts[k - 1] + t->ops[k - 1].ns + t->ops[k - 1].gap_ns;
  for (size_t i = 0; i < sizeof per_tensor / sizeof *per_tensor; i++)
    if (!(*per_tensor[i] = NEW (a, t->n_tensors, int32_t, err)))
      return false;
  for (size_t i = 0; i < sizeof per_op / sizeof *per_op; i++)
    if (!(*per_op[i] = NEW (a, t->n_ops, int32_t, err)))
      return false;
  return true;
}

static void next_entry (walk *w, int32_t before) {
  w->before = before;
  w->mark = before + 1;
  w->n_ops = w->n_tensors = w->n_formers = 0;
}

static bool request (walk *w, int32_t x) {
  undo here = here_now (w);
  w->request++;
  if (make (w, x, w->before) && sound (w))
    return true;
  go_back (w, here);
  return false;
}

bool drops_find (const drops_request *q, arena *a, drop **out, int32_t *count, bool *barred,
                 error *err) {
  assert (q->trace && q->over && out && count);
  const trace *t = q->trace;
  uses u;
  walk w;
  *count = 0;
  int32_t *reach = NEW (a, (int64_t)t->n_ops + 1, int32_t, err); /* ops over before op k */
  if (!reach || !uses_of (t, a, &u, err) || !begin (&w, t, &u, q->keeps, a, err))
    return false;
  *out = NEW (a, u.offset[t->n_tensors], drop, err);
  if (!*out)
    return false;
  for (int32_t k = 0; k < t->n_ops; k++)
    reach[k + 1] = reach[k] + q->over[k];
  for (int32_t x = 0; x < t->n_tensors; x++) {
    if (t->tensors[x].persistent || t->tensors[x].pinned || t->tensors[x].again >= AGAIN_PASSES)
      continue;
    int32_t writer = NO_OP;
    for (int32_t i = u.offset[x]; i + 1 < u.offset[x + 1]; i++) {
      int32_t after = u.at[i].op, before = u.at[i + 1].op;
      if (list_has (&t->ops[after].writes, x))
        writer = after;
      if (writer == NO_OP || before - after < 2 || reach[before] == reach[after + 1] ||
          (q->cheap && !q->cheap[writer]))
        continue;
      drop d = { x, after, before, t->tensors[x].bytes, 0, 0 };
      next_entry (&w, before);
      memset (w.taken, 0, (size_t)t->n_ops * sizeof *w.taken);
      memset (w.made, 0, (size_t)t->n_tensors * sizeof *w.made);
      if (!request (&w, x))
        continue;
      for (int32_t j = 0; j < w.n_ops; j++) {
        int64_t ns = t->ops[w.ops[j]].ns + t->ops[w.ops[j]].gap_ns;
        d.chain_ns += ns;
        d.own_ns += list_has (&t->ops[w.ops[j]].writes, x) ? ns : 0;
      }
      (*out)[(*count)++] = d;
    }
  }
  if (barred)
    *barred = w.barred;
  return !w.full;
}

/* It is given up again, and made once more when it is wanted. */
static bool passes (const walk *w, int32_t x) {
  return w->away[x] == DROP_PASSES && w->starts[w->wanted[x]] - w->starts[w->before] > w->near_ns;
}

static bool is_wanted (const walk *w, int32_t x) {
  const tensor *t = &w->t->tensors[x];
  return w->away[x] ? !passes (w, x)
                    : w->replaces && !t->persistent && !t->pinned && t->again < AGAIN_PASSES &&
                          !dead (w, x);
}

/* Other outputs of the copies take their places too, if they were dropped: else the copies would
   run once more for it. */
static bool put_entry (walk *w, recompute *r, error *err) {
  int64_t written = 0;
  for (int32_t i = 0; i < w->n_ops; i++)
    written += w->t->ops[w->ops[i]].writes.count;
  *r = (recompute){ .before = w->before };
  r->ops.at = NEW (w->arena, w->n_ops, int32_t, err);
  r->replaces.at = NEW (w->arena, written, int32_t, err);
  if (!r->ops.at || !r->replaces.at)
    return false;
  if (!sound (w)) /* sorts, and knows the versions made */
    return error_set (err, ERR_internal, "an entry before op %d is not sound", w->before);
  memcpy (r->ops.at, w->sorted, (size_t)w->n_ops * sizeof *w->sorted);
  r->ops.count = w->n_ops;
  for (int32_t i = 0; i < w->n_ops; i++) {
    const index_list *made = &w->t->ops[w->ops[i]].writes;
    for (int32_t j = 0; j < made->count; j++) {
      int32_t x = made->at[j];
      if (!is_wanted (w, x) || w->seen[x] != w->check_mark ||
          w->version[x] != versions (w, x, w->before))
        continue;
      r->replaces.at[r->replaces.count++] = x;
      w->away[x] = 0;
    }
  }
  qsort (r->replaces.at, (size_t)r->replaces.count, sizeof (int32_t), ascending);
  return true;
}

static int by_after (const void *a, const void *b, void *context) {
  const drop *d = context;
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  if (d[x].after != d[y].after)
    return d[x].after < d[y].after ? -1 : 1;
  return x < y ? -1 : x > y;
}

bool drops_entries (const drop_list *list, const drop_choice *choice, arena *a, recompute **out,
                    int32_t *count, error *err) {
  assert (list->trace && list->uses && choice->chosen);
  assert (list->count == 0 || list->at);
  const trace *t = list->trace;
  const drop *drops = list->at;
  int32_t n_drops = list->count;
  walk w;
  int32_t n = 0, next = 0;
  int32_t *order = NEW (a, n_drops, int32_t, err);
  *count = 0;
  if (!order || !begin (&w, t, list->uses, choice->keeps, a, err))
    return false;
  w.near_ns = choice->near_ns;
  w.keeps_first = choice->keeps && choice->keeps_first;
  w.replaces = choice->replaces;
  for (int32_t i = 0; i < n_drops; i++)
    if (choice->chosen[i])
      order[n++] = i;
  qsort_r (order, (size_t)n, sizeof *order, by_after, (void *)drops);
  *out = NEW (a, n, recompute, err); /* an entry makes at least one of them again */
  if (!*out)
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    for (; next < n && drops[order[next]].after < k; next++) {
      const drop *d = &drops[order[next]];
      w.away[d->tensor] = choice->chosen[order[next]];
      w.wanted[d->tensor] = d->before;
    }
    next_entry (&w, k);
    const index_list *lists[] = { &t->ops[k].reads, &t->ops[k].writes };
    for (int which = 0; which < 2; which++)
      for (int32_t j = 0; j < lists[which]->count; j++) {
        int32_t x = lists[which]->at[j];
        if (w.away[x] && !(w.made[x] == w.mark && w.up_to[x] >= k) && !request (&w, x))
          w.away[x] = 0;
      }
    if (w.n_ops > 0 && *count < n && !put_entry (&w, &(*out)[(*count)++], err))
      return false;
  }
  return !w.full;
}
