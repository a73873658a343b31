/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops run again.  What a tensor holds is known by its version, the number of writes to it so far in
   the step: a copy must read what its original read, and what takes a tensor's place must hold what
   the next reader expects. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "trace/rewrite/emit.h"
#include "trace/versions.h"

typedef struct again {
  const trace *t; /* sectioned */
  const origin *op_origins, *tensor_origins;
  const recompute *entries;
  int32_t n_entries;
  emit e;
  int32_t *stands_for;                       /* per tensor: the one that stands for it now */
  int32_t *version;                          /* per tensor: writes by the ops that are behind us */
  versions found;                            /* by the ops of t */
  int32_t *fresh, *fresh_version, *fresh_of; /* per tensor: made by entry fresh_of */
  int32_t *place;                            /* per op of t: its place in the new order */
  int32_t *copied, *copied_by; /* per op of t: the place of its last copy, and that one's entry */
  int32_t *life;               /* per old tensor: the op behind which it was to die, or NO_OP */
} again;

static bool refuse_entry (const again *g, int32_t entry, const char *list, int32_t at,
                          const char *format, long long a, long long b) {
  char where[64];
  if (at >= 0)
    snprintf (where, sizeof where, "/recompute/%d/%s/%d", entry, list, at);
  else
    snprintf (where, sizeof where, "/recompute/%d/%s", entry, list);
  return error_at (g->e.err, ERR_input, where, format, a, b);
}

/* ---- one copy ---- */

static bool copy_reads (again *g, int32_t entry, int32_t at, int32_t k) {
  const op *o = &g->t->ops[k];
  const int32_t *wants = versions_read (&g->found, k);
  for (int32_t j = 0; j < o->reads.count; j++) {
    int32_t x = o->reads.at[j], want = wants[j];
    if (list_has (&o->side, x))
      continue;
    bool own = g->fresh_of[x] == entry;
    if (!own && list_has (&o->writes, x))
      return refuse_entry (
          g, entry, "ops", at,
          "a copy of op %lld would update tensor %lld in place; make it again first", k, x);
    if ((own ? g->fresh_version[x] : g->version[x]) != want)
      return refuse_entry (
          g, entry, "ops", at,
          "op %lld read tensor %lld before it was written again; a copy here cannot", k, x);
    if (!emit_index (&g->e, EMIT_READS, own ? g->fresh[x] : g->stands_for[x]))
      return false;
  }
  return true;
}

/* The original and all copies move as one, since they share a place. */
static void share_place (again *g, int32_t x, tensor *like) {
  tensor *first = &g->e.made->tensors[x];
  like->twin = first->twin = x + 1;
  like->whole = first->whole = true;
}

static bool copy_writes (again *g, int32_t entry, int32_t at, int32_t k) {
  const op *o = &g->t->ops[k];
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t x = o->writes.at[j];
    if (list_has (&o->side, x))
      continue;
    if (g->t->tensors[x].again == AGAIN_NEVER)
      return refuse_entry (
          g, entry, "ops", at,
          "op %lld writes tensor %lld, which the trace says can never be made again", k, x);
    if (g->fresh_of[x] != entry) {
      tensor like = g->t->tensors[x];
      origin from = g->tensor_origins[x];
      from.copy = true;
      like.persistent = false;
      like.pinned = like.again != AGAIN_FREELY;
      like.born_before = like.dies_after = NO_OP;
      if (like.placed)
        share_place (g, x, &like);
      g->fresh[x] = emit_tensor (&g->e, &like, from);
      if (g->fresh[x] < 0)
        return false;
      g->fresh_of[x] = entry;
    }
    g->fresh_version[x] = versions_written (&g->found, g->t, k)[j] + 1;
    if (!emit_index (&g->e, EMIT_WRITES, g->fresh[x]))
      return false;
  }
  return true;
}

/* A copy waits for what its original waits for, or for a copy of it that the entry has made. */
static bool copy_waits (again *g, int32_t entry, int32_t k) {
  const index_list *after = &g->t->ops[k].after;
  for (int32_t j = 0; j < after->count; j++) {
    int32_t i = after->at[j];
    if (!emit_index (&g->e, EMIT_AFTER, g->copied_by[i] == entry ? g->copied[i] : g->place[i]))
      return false;
  }
  return true;
}

/* It runs on the stream of the op that it stands before. */
static bool copy_op (again *g, int32_t entry, int32_t at, int32_t k) {
  op like = g->t->ops[k];
  origin from = g->op_origins[k];
  from.copy = true;
  like.stream = g->t->ops[g->entries[entry].before].stream;
  if (!emit_op (&g->e, &like, from, k, 0, 1, 1, 0) || !copy_reads (g, entry, at, k) ||
      !copy_writes (g, entry, at, k) || !copy_waits (g, entry, k))
    return false;
  g->copied[k] = g->e.made->n_ops - 1;
  g->copied_by[k] = entry;
  return true;
}

/* ---- one entry ---- */

static bool replace (again *g, int32_t entry, int32_t at) {
  int32_t x = g->entries[entry].replaces.at[at];
  if (x < 0 || x >= g->t->n_tensors)
    return refuse_entry (g, entry, "replaces", at, "there is no tensor %lld; the last is %lld", x,
                         g->t->n_tensors - 1);
  const tensor *old = &g->t->tensors[x];
  if (g->fresh_of[x] != entry)
    return refuse_entry (g, entry, "replaces", at, "tensor %lld is not written by this entry", x,
                         0);
  if (old->persistent || old->pinned)
    return refuse_entry (g, entry, "replaces", at, "tensor %lld is persistent or pinned", x, 0);
  if (g->fresh_version[x] != g->version[x])
    return refuse_entry (g, entry, "replaces", at,
                         "tensor %lld would have version %lld, not the one that is read next", x,
                         g->fresh_version[x]);
  for (int32_t i = 0; i < at; i++)
    if (g->entries[entry].replaces.at[i] == x)
      return refuse_entry (g, entry, "replaces", at, "tensor %lld is named twice", x, 0);
  g->e.made->tensors[g->stands_for[x]].dies_after = NO_OP;
  g->stands_for[x] = g->fresh[x];
  g->e.made->tensors[g->fresh[x]].dies_after = g->life[x]; /* mapped to its new place at the end */
  return true;
}

static bool put_entry (again *g, int32_t entry) {
  const recompute *r = &g->entries[entry];
  if (r->ops.count < 1)
    return refuse_entry (g, entry, "ops", -1, "an entry needs at least one op", 0, 0);
  for (int32_t i = 0; i < r->ops.count; i++) {
    int32_t k = r->ops.at[i];
    if (k < 0 || k >= r->before)
      return refuse_entry (g, entry, "ops", i, "op %lld does not stand before op %lld", k,
                           r->before);
    if (!copy_op (g, entry, i, k))
      return false;
  }
  for (int32_t i = 0; i < r->replaces.count; i++)
    if (!replace (g, entry, i))
      return false;
  return true;
}

static bool put_op (again *g, int32_t i) {
  const op *o = &g->t->ops[i];
  const index_list *lists[] = { &o->reads, &o->writes, &o->side };
  g->place[i] = g->e.made->n_ops;
  if (!emit_op (&g->e, o, g->op_origins[i], i, 0, 1, 1, 0))
    return false;
  for (int which = EMIT_READS; which <= EMIT_SIDE; which++)
    for (int32_t j = 0; j < lists[which]->count; j++)
      if (!emit_index (&g->e, which, g->stands_for[lists[which]->at[j]]))
        return false;
  for (int32_t j = 0; j < o->after.count; j++)
    if (!emit_index (&g->e, EMIT_AFTER, g->place[o->after.at[j]]))
      return false;
  for (int32_t j = 0; j < o->writes.count; j++)
    g->version[o->writes.at[j]]++;
  return true;
}

static bool put_all (again *g) {
  int32_t next = 0;
  for (int32_t i = 0; i < g->t->n_ops; i++) {
    for (; next < g->n_entries && g->entries[next].before == i; next++)
      if (!put_entry (g, next))
        return false;
    if (next < g->n_entries && g->entries[next].before < i)
      return refuse_entry (g, next, "before", -1,
                           "entries are not sorted: op %lld is behind op %lld",
                           g->entries[next].before, i);
    if (!put_op (g, i))
      return false;
  }
  return next == g->n_entries ||
         refuse_entry (g, next, "before", -1, "there is no op %lld; the last is %lld",
                       g->entries[next].before, g->t->n_ops - 1);
}

/* Lives in the new order. A copy that reads a tensor late lengthens its life. */
static void map_lives (again *g, const int32_t *last) {
  for (int32_t x = 0; x < g->e.made->n_tensors; x++) {
    tensor *y = &g->e.made->tensors[x];
    if (y->born_before != NO_OP)
      y->born_before = g->place[y->born_before];
    if (y->dies_after != NO_OP)
      y->dies_after = g->place[y->dies_after];
    if (y->dies_after != NO_OP && y->dies_after < last[x])
      y->dies_after = NO_OP;
  }
}

static bool finish (again *g, rewritten *out) {
  int32_t *last = NEW (g->e.arena, g->e.made->n_tensors, int32_t, g->e.err);
  if (!last || !emit_end (&g->e, out))
    return false;
  memset (last, 0xff, (size_t)g->e.made->n_tensors * sizeof *last);
  for (int32_t i = 0; i < g->e.made->n_ops; i++) {
    const op *o = &g->e.made->ops[i];
    for (int32_t j = 0; j < o->reads.count; j++)
      last[o->reads.at[j]] = i;
    for (int32_t j = 0; j < o->writes.count; j++)
      last[o->writes.at[j]] = i;
  }
  map_lives (g, last);
  return rewrite_wait_for_copies (out, g->e.arena, g->e.err);
}

bool rewrite_recompute (const rewritten *from, const recompute *entries, int32_t n_entries,
                        arena *a, rewritten *out, error *err) {
  assert (from && (entries || n_entries == 0));
  const trace *t = from->trace;
  again g = { .t = t,
              .op_origins = from->ops,
              .tensor_origins = from->tensors,
              .entries = entries,
              .n_entries = n_entries };
  if (!emit_begin (&g.e, t, from->tensors, a, err))
    return false;
  int32_t **tables[] = {
    &g.stands_for, &g.version, &g.fresh, &g.fresh_version, &g.fresh_of, &g.life
  };
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    if (!ALLOC (a, *tables[i], t->n_tensors, err))
      return false;
  }
  if (!ALLOC (a, g.place, t->n_ops, err) || !ALLOC (a, g.copied, t->n_ops, err) ||
      !ALLOC (a, g.copied_by, t->n_ops, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++)
    g.copied_by[k] = -1;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    g.stands_for[x] = x;
    g.fresh_of[x] = -1;
    g.life[x] = t->tensors[x].dies_after;
  }
  return versions_of (t, a, &g.found, err) && put_all (&g) && finish (&g, out);
}
