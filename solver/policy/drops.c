/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/drops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One walk over the ops.  Where a dropped tensor is needed, the ops that make it, and whatever of
   their inputs is not there, run again directly before. */
typedef struct walk {
  const policy_view *v;
  const policy_choice *c;
  int32_t *active; /* per tensor: the drop that it is away by, or -1 */
  int32_t *made;   /* per tensor: the op whose entry made it last, or -1 */
  int32_t *fresh;  /* per tensor: the op whose entry was seen to write it last, or -1, */
  int32_t *writes; /* and the writes that it then has behind it */
  int32_t *ops;    /* of this entry, in order of finding */
  int32_t *taken;  /* per op: the op whose entry has it, or -1 */
  int32_t *failed; /* per tensor: the request in which it could not be made */
  int32_t n_ops, before, request;
} walk;

static int32_t writes_before (const policy_view *v, int32_t tensor, int32_t op) {
  int32_t n = 0;
  for (int32_t i = v->uses.offset[tensor]; i < v->uses.offset[tensor + 1]; i++)
    n += v->uses.at[i].op < op && v->uses.at[i].writes;
  return n;
}

/* A copy of an op that updates something in place would need that first. */
static bool updates (const op *o) {
  for (int32_t i = 0; i < o->writes.count; i++)
    if (list_has (&o->reads, o->writes.at[i]) && !list_has (&o->side, o->writes.at[i]))
      return true;
  return false;
}

/* Op `before` finds in the tensor only what its producer has made. */
static bool can_make (const policy_view *v, int32_t tensor, int32_t before) {
  const struct tensor *t = &v->trace->tensors[tensor];
  int32_t p = v->producer[tensor];
  if (t->persistent || t->pinned || t->born_before != NO_OP || p == NO_OP || p >= before)
    return false;
  const op *o = &v->trace->ops[p];
  return !updates (o) && !list_has (&o->side, tensor) && writes_before (v, tensor, before) == 1;
}

static bool dead (const policy_view *v, int32_t tensor, int32_t op) {
  return !v->trace->tensors[tensor].persistent && uses_last (&v->uses, tensor) < op;
}

static bool make_once (walk *w, int32_t tensor);

/* A tensor that failed is not walked again for the same drop: branches that meet would double the
   work each time. */
static bool make (walk *w, int32_t tensor) {
  if (w->failed[tensor] == w->request)
    return false;
  if (make_once (w, tensor))
    return true;
  w->failed[tensor] = w->request;
  return false;
}

/* Op p finds its input as it was: on the device, made again, or with a longer life. */
static bool have (walk *w, int32_t x, int32_t p) {
  const policy_view *v = w->v;
  if (w->made[x] == w->before)
    return true;
  /* bytes of a tensor read before its first write were not its producer's */
  bool gone = w->active[x] >= 0 || dead (v, x, w->before);
  if (gone && v->producer[x] < p && make (w, x))
    return true;
  return writes_before (v, x, w->before) == writes_before (v, x, p);
}

static bool make_once (walk *w, int32_t tensor) {
  const policy_view *v = w->v;
  if (!can_make (v, tensor, w->before))
    return false;
  int32_t p = v->producer[tensor], n_ops = w->n_ops;
  const op *o = &v->trace->ops[p];
  if (w->taken[p] == w->before)
    return true;
  bool ok = true;
  for (int32_t j = 0; ok && j < o->reads.count; j++)
    ok = list_has (&o->side, o->reads.at[j]) || have (w, o->reads.at[j], p);
  if (!ok) { /* tensors that were taken on the way go */
    for (; w->n_ops > n_ops; w->n_ops--) {
      const op *back = &v->trace->ops[w->ops[w->n_ops - 1]];
      w->taken[w->ops[w->n_ops - 1]] = -1;
      for (int32_t j = 0; j < back->writes.count; j++)
        w->made[back->writes.at[j]] = -1;
    }
    return false;
  }
  w->taken[p] = w->before;
  w->ops[w->n_ops++] = p;
  for (int32_t j = 0; j < o->writes.count; j++)
    if (!list_has (&o->side, o->writes.at[j]))
      w->made[o->writes.at[j]] = w->before;
  return true;
}

static bool begin (walk *w, const policy_view *v, const policy_choice *c, error *err) {
  *w = (walk){ .v = v, .c = c };
  w->active = NEW (v->arena, v->n_tensors, int32_t, err);
  w->made = NEW (v->arena, v->n_tensors, int32_t, err);
  w->taken = NEW (v->arena, v->n_ops, int32_t, err);
  w->failed = NEW (v->arena, v->n_tensors, int32_t, err);
  w->ops = NEW (v->arena, v->n_ops, int32_t, err);
  w->fresh = NEW (v->arena, v->n_tensors, int32_t, err);
  w->writes = NEW (v->arena, v->n_tensors, int32_t, err);
  if (!w->active || !w->made || !w->fresh || !w->writes || !w->taken || !w->failed || !w->ops)
    return false;
  memset (w->active, 0xff, (size_t)v->n_tensors * sizeof *w->active);
  memset (w->made, 0xff, (size_t)v->n_tensors * sizeof *w->made);
  memset (w->fresh, 0xff, (size_t)v->n_tensors * sizeof *w->fresh);
  memset (w->taken, 0xff, (size_t)v->n_ops * sizeof *w->taken);
  return true;
}

bool policy_can_drop (const policy_view *v, int32_t tensor, int32_t before) {
  assert (tensor >= 0 && tensor < v->n_tensors);
  if (!v->movable[tensor] || !can_make (v, tensor, before))
    return false;
  int32_t p = v->producer[tensor];
  const op *o = &v->trace->ops[p];
  for (int32_t j = 0; j < o->reads.count; j++) {
    int32_t x = o->reads.at[j];
    if (!list_has (&o->side, x) && writes_before (v, x, before) != writes_before (v, x, p))
      return false;
  }
  return true;
}

static int ascending (const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return x < y ? -1 : x > y;
}

/* Members of a segment, or the tensor alone. Returns how many drops were made good. */
static bool make_due (walk *w, int32_t drop) {
  const policy_drop *d = &w->c->drops[drop];
  w->request++;
  if (!make (w, d->tensor))
    return false;
  for (int64_t i = 0; d->segment >= 0 && i < w->c->n_drops; i++) {
    const policy_drop *other = &w->c->drops[i];
    if (other->segment != d->segment || w->active[other->tensor] != i)
      continue;
    w->request++;
    (void)!make (w, other->tensor);
  }
  return true;
}

/* If an entry makes a tensor that is written more than once, its ops may find it half made: each
   was taken for another reason. */
static bool is_sound (walk *w) {
  const policy_view *v = w->v;
  qsort (w->ops, (size_t)w->n_ops, sizeof *w->ops, ascending);
  for (int32_t i = 0; i < w->n_ops; i++) {
    const op *o = &v->trace->ops[w->ops[i]];
    for (int32_t j = 0; j < o->reads.count; j++) {
      int32_t x = o->reads.at[j];
      if (!list_has (&o->side, x) && w->fresh[x] == w->before &&
          w->writes[x] != writes_before (v, x, w->ops[i]))
        return false;
    }
    for (int32_t j = 0; j < o->writes.count; j++) {
      int32_t x = o->writes.at[j];
      if (list_has (&o->side, x))
        continue;
      w->fresh[x] = w->before;
      w->writes[x] = writes_before (v, x, w->ops[i]) + 1;
    }
  }
  return true;
}

/* The tensor that was to be made for this op stays instead. */
static void give_up (walk *w) {
  const op *o = &w->v->trace->ops[w->before];
  w->n_ops = 0;
  for (int32_t j = 0; j < o->reads.count; j++)
    w->active[o->reads.at[j]] = -1;
  for (int32_t j = 0; j < o->writes.count; j++)
    w->active[o->writes.at[j]] = -1;
}

/* Writes one entry from what was made for op `before`. */
static bool put_entry (walk *w, recompute *r, int64_t *kept, error *err) {
  const policy_view *v = w->v;
  int32_t n_written = 0;
  for (int32_t i = 0; i < w->n_ops; i++)
    n_written += v->trace->ops[w->ops[i]].writes.count;
  *r = (recompute){ .before = w->before, .ops = { NEW (v->arena, w->n_ops, int32_t, err), 0 } };
  r->replaces.at = NEW (v->arena, n_written, int32_t, err);
  if (!r->ops.at || !r->replaces.at)
    return false;
  memcpy (r->ops.at, w->ops, (size_t)w->n_ops * sizeof *w->ops);
  r->ops.count = w->n_ops;
  for (int32_t i = 0; i < w->n_ops; i++) {
    const op *o = &v->trace->ops[w->ops[i]];
    for (int32_t j = 0; j < o->writes.count; j++) {
      int32_t x = o->writes.at[j], drop = w->active[x];
      if (drop < 0 || w->made[x] != w->before)
        continue;
      const policy_drop *d = &w->c->drops[drop];
      bool stays = d->before == w->before || d->stays || d->segment >= 0;
      if (!stays || !can_make (v, x, w->before))
        continue;
      r->replaces.at[r->replaces.count++] = x;
      w->active[x] = -1;
      ++*kept;
    }
  }
  qsort (r->replaces.at, (size_t)r->replaces.count, sizeof (int32_t), ascending);
  return true;
}

static int by_after (const void *a, const void *b, void *context) {
  const policy_drop *d = context;
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  if (d[x].after != d[y].after)
    return d[x].after < d[y].after ? -1 : 1;
  return x < y ? -1 : x > y;
}

bool policy_recomputes (policy_view *v, const policy_choice *c, recompute **out, int32_t *count,
                        int64_t *kept, error *err) {
  assert (out && count && kept);
  walk w;
  *out = NEW (v->arena, v->n_ops, recompute, err);
  int32_t *order = NEW (v->arena, c->n_drops, int32_t, err);
  *count = 0;
  *kept = 0;
  if (!*out || !order || !begin (&w, v, c, err))
    return false;
  for (int32_t i = 0; i < c->n_drops; i++)
    order[i] = i;
  qsort_r (order, (size_t)c->n_drops, sizeof *order, by_after, c->drops);
  int64_t next = 0;
  for (int32_t k = 0; k < v->n_ops; k++) {
    for (; next < c->n_drops && c->drops[order[next]].after < k; next++)
      w.active[c->drops[order[next]].tensor] = order[next];
    w.before = k;
    w.n_ops = 0;
    for (int i = 0; i < 2; i++) {
      const index_list *list = i ? &v->trace->ops[k].writes : &v->trace->ops[k].reads;
      for (int32_t j = 0; j < list->count; j++) {
        int32_t drop = w.active[list->at[j]];
        if (drop >= 0 && !make_due (&w, drop))
          w.active[list->at[j]] = -1;
      }
    }
    if (w.n_ops > 0 && !is_sound (&w))
      give_up (&w);
    if (w.n_ops > 0 && !put_entry (&w, &(*out)[(*count)++], kept, err))
      return false;
  }
  return true;
}
