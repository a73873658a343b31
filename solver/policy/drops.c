/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/drops.h"

#include <assert.h>

#include "solver/policy/remake.h"
#include "trace/rewrite/rewrite.h"

typedef struct walk {
  remake again; /* one walk over the ops */
  const policy_choice *c;
  int32_t *active; /* per tensor: the drop that it is away by, or -1 */
} walk;

/* An input that arrives right before the op that reads it counts as written then, so a policy keeps
   what is made of it. */
static int32_t writes_before (const policy_view *v, int32_t tensor, int32_t op) {
  int32_t n = 0;
  for (int32_t i = v->uses.offset[tensor]; i < v->uses.offset[tensor + 1]; i++)
    n += v->uses.at[i].op < op && v->uses.at[i].writes;
  return n;
}

bool policy_can_drop (const policy_view *v, int32_t tensor, int32_t before) {
  assert (tensor >= 0 && tensor < v->n_tensors);
  if (!v->movable[tensor] || !remake_is_simple (v->trace, &v->uses, tensor, before))
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

static bool start_walk (walk *w, const policy_view *v, const policy_choice *c, error *err) {
  remake_rule rule = {
    .trace = v->trace, .uses = &v->uses, .keeps = true, .once = true, .most_ops = v->n_ops + 1
  };
  *w = (walk){ .c = c, .active = NEW (v->arena, v->n_tensors, int32_t, err) };
  for (int32_t x = 0; w->active && x < v->n_tensors; x++)
    w->active[x] = -1;
  return w->active && remake_begin (&w->again, &rule, v->arena, err);
}

static void set_active (walk *w, int32_t tensor, int32_t drop) {
  w->active[tensor] = drop;
  w->again.away[tensor] = drop >= 0;
}

/* Makes the tensor, and with it those members of its segment that are away and can be made. */
static bool make_due (walk *w, int32_t drop) {
  const policy_drop *d = &w->c->drops[drop];
  if (!remake_request (&w->again, d->tensor))
    return false;
  for (int64_t i = 0; d->segment >= 0 && i < w->c->n_drops; i++) {
    const policy_drop *other = &w->c->drops[i];
    if (other->segment == d->segment && w->active[other->tensor] == i)
      (void)!remake_request (&w->again, other->tensor);
  }
  return true;
}

static bool is_wanted (const void *context, const remake *again, int32_t x) {
  const walk *w = context;
  if (w->active[x] < 0)
    return false;
  const policy_drop *d = &w->c->drops[w->active[x]];
  return (d->before == again->before || d->stays || d->segment >= 0) &&
         remake_is_simple (again->rule.trace, again->rule.uses, x, again->before);
}

static bool put_entry (walk *w, recompute *out, int64_t *kept, error *err) {
  if (!remake_put (&w->again, is_wanted, w, out, err))
    return false;
  for (int32_t j = 0; j < out->replaces.count; j++)
    set_active (w, out->replaces.at[j], -1);
  *kept += out->replaces.count;
  return true;
}

/* The drops behind each op: first[k] and then next of each; -1 ends. */
static bool list_drops (const policy_view *v, const policy_choice *c, int32_t **first,
                        int32_t **next, error *err) {
  if (!ALLOC (v->arena, *first, v->n_ops, err) || !ALLOC (v->arena, *next, c->n_drops, err))
    return false;
  for (int32_t k = 0; k < v->n_ops; k++)
    (*first)[k] = -1;
  for (int32_t i = (int32_t)c->n_drops - 1; i >= 0; i--) {
    (*next)[i] = (*first)[c->drops[i].after];
    (*first)[c->drops[i].after] = i;
  }
  return true;
}

bool policy_recomputes (policy_view *v, const policy_choice *c, recompute **out, int32_t *count,
                        int64_t *kept, error *err) {
  assert (out && count && kept);
  walk w;
  int32_t *first, *next;
  if (c->entries) {
    *out = c->entries;
    *count = c->n_entries;
    *kept = 0;
    for (int32_t i = 0; i < *count; i++)
      *kept += c->entries[i].replaces.count;
    return true;
  }
  *out = NEW (v->arena, v->n_ops, recompute, err);
  *count = 0;
  *kept = 0;
  if (!*out || !list_drops (v, c, &first, &next, err) || !start_walk (&w, v, c, err))
    return false;
  for (int32_t k = 0; k < v->n_ops; k++) {
    for (int32_t i = k ? first[k - 1] : -1; i >= 0; i = next[i])
      set_active (&w, c->drops[i].tensor, i);
    remake_next (&w.again, k);
    const index_list *lists[] = { &v->trace->ops[k].reads, &v->trace->ops[k].writes };
    for (int which = 0; which < 2; which++)
      for (int32_t j = 0; j < lists[which]->count; j++) {
        int32_t x = lists[which]->at[j];
        if (w.active[x] >= 0 && !make_due (&w, w.active[x]))
          set_active (&w, x, -1);
      }
    if (w.again.n_ops > 0 && !put_entry (&w, &(*out)[(*count)++], kept, err))
      return false;
  }
  return !w.again.full;
}

bool policy_peak (policy_view *v, const policy_choice *c, int64_t *out, error *err) {
  assert (out);
  policy_view after;
  recompute *entries;
  int32_t n;
  int64_t kept;
  rewritten rw;
  arena_mark mark = arena_here (v->arena);
  bool ok = policy_recomputes (v, c, &entries, &n, &kept, err) &&
            trace_rewrite (v->trace,
                           &(rewriting){ .recomputes = entries,
                                         .n_recomputes = n,
                                         .section_ns = v->device->section_ns },
                           v->arena, &rw, err) &&
            policy_view_build (rw.trace, v->device, v->budget_bytes, v->host_bytes, v->arena,
                               &after, err);
  *out = ok ? after.res[view_peak (&after, after.res)] : 0;
  arena_back (v->arena, mark);
  return ok;
}
