/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The version of a tensor is the number of writes to it so far in the step.  An order is sound
   where each op finds the versions that it finds in the trace as it is. */
#include "trace/rewrite/order.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "trace/uses.h"

typedef struct ordering {
  const trace *t;
  arena *arena;
  error *err;
  int32_t *order, *place; /* the op at each place, and the place of each op */
  int32_t *run_of;        /* per place: the run that names it */
  int32_t *version;       /* per tensor, as the ops go by */
  int32_t *born, *dies;   /* per op: the first tensor born before it, or dying after; or -1 */
  int32_t *next_born, *next_dies; /* per tensor: the next one of the same op */
  int32_t *offset, *found;        /* per op: the versions that it finds, in the order of `meet` */
} ordering;

/* Sees the version that an op finds of a tensor. */
typedef bool meet_one (ordering *o, int32_t op, int32_t nth, int32_t tensor);

static bool refuse_run (const ordering *o, int32_t run, const char *format, long long a,
                        long long b) {
  char where[32];
  snprintf (where, sizeof where, "/order/%d", 2 * run);
  return error_at (o->err, ERR_input, where, format, a, b);
}

/* ---- the permutation ---- */

static bool spread (ordering *o, const op_run *runs, int32_t n_runs) {
  int64_t n = 0, most = o->t->n_ops;
  memset (o->place, 0xff, (size_t)most * sizeof *o->place);
  for (int32_t r = 0; r < n_runs; r++) {
    const op_run *x = &runs[r];
    if (x->first < 0 || x->count < 1 || (int64_t)x->first + x->count > most)
      return refuse_run (o, r, "the run of %lld ops from op %lld passes the trace's end", x->count,
                         x->first);
    if (n + x->count > most)
      return refuse_run (o, r,
                         "the order has over %lld ops, as many as the trace; op %lld is one more",
                         most, x->first);
    for (int32_t i = 0; i < x->count; i++) {
      int32_t k = x->first + i;
      if (o->place[k] >= 0)
        return refuse_run (o, r, "op %lld stands in the order twice, first at place %lld", k,
                           o->place[k]);
      o->place[k] = (int32_t)n;
      o->run_of[n] = r;
      o->order[n++] = k;
    }
  }
  return n == most || refuse_run (o, n_runs - 1, "the order has %lld of %lld ops", n, most);
}

/* ---- versions ---- */

static void list_lives (ordering *o) {
  const trace *t = o->t;
  memset (o->born, 0xff, (size_t)t->n_ops * sizeof *o->born);
  memset (o->dies, 0xff, (size_t)t->n_ops * sizeof *o->dies);
  for (int32_t x = t->n_tensors - 1; x >= 0; x--) {
    const tensor *y = &t->tensors[x];
    if (y->born_before != NO_OP) {
      o->next_born[x] = o->born[y->born_before];
      o->born[y->born_before] = x;
    }
    if (y->dies_after != NO_OP) {
      o->next_dies[x] = o->dies[y->dies_after];
      o->dies[y->dies_after] = x;
    }
  }
}

/* Everything that an op meets, one after the other: a birth is a write before it, a death a read
   behind it. */
static bool meet (ordering *o, int32_t k, meet_one *see) {
  const op *x = &o->t->ops[k];
  int32_t nth = 0;
  for (int32_t y = o->born[k]; y >= 0; y = o->next_born[y]) {
    if (!see (o, k, nth++, y))
      return false;
    o->version[y]++;
  }
  for (int32_t i = 0; i < x->reads.count; i++)
    if (!see (o, k, nth++, x->reads.at[i]))
      return false;
  for (int32_t i = 0; i < x->writes.count; i++) {
    if (!see (o, k, nth++, x->writes.at[i]))
      return false;
    o->version[x->writes.at[i]]++;
  }
  for (int32_t y = o->dies[k]; y >= 0; y = o->next_dies[y])
    if (!see (o, k, nth++, y))
      return false;
  return true;
}

static int32_t meets (const ordering *o, int32_t k) {
  int32_t n = o->t->ops[k].reads.count + o->t->ops[k].writes.count;
  for (int32_t y = o->born[k]; y >= 0; y = o->next_born[y])
    n++;
  for (int32_t y = o->dies[k]; y >= 0; y = o->next_dies[y])
    n++;
  return n;
}

static bool note (ordering *o, int32_t op, int32_t nth, int32_t tensor) {
  o->found[o->offset[op] + nth] = o->version[tensor];
  return true;
}

static bool compare (ordering *o, int32_t op, int32_t nth, int32_t tensor) {
  return o->found[o->offset[op] + nth] == o->version[tensor] ||
         refuse_run (o, o->run_of[o->place[op]],
                     "op %lld would not find tensor %lld as it is in the trace's own order", op,
                     tensor);
}

static bool is_sound (ordering *o) {
  const trace *t = o->t;
  list_lives (o);
  for (int32_t k = 0; k < t->n_ops; k++)
    o->offset[k + 1] = o->offset[k] + meets (o, k);
  o->found = NEW (o->arena, o->offset[t->n_ops], int32_t, o->err);
  bool ok = o->found;
  for (int32_t k = 0; ok && k < t->n_ops; k++)
    ok = meet (o, k, note);
  memset (o->version, 0, (size_t)t->n_tensors * sizeof *o->version);
  for (int32_t i = 0; ok && i < t->n_ops; i++)
    ok = meet (o, o->order[i], compare);
  return ok;
}

/* ---- the trace in that order ---- */

static bool write_samples (const ordering *o, trace *made) {
  const trace *t = o->t;
  if (!t->n_samples)
    return true;
  made->ns_samples = NEW (o->arena, (int64_t)t->n_samples * t->n_ops, int64_t, o->err);
  for (int32_t s = 0; made->ns_samples && s < t->n_samples; s++)
    for (int32_t i = 0; i < t->n_ops; i++)
      made->ns_samples[(int64_t)s * t->n_ops + i] =
          t->ns_samples[(int64_t)s * t->n_ops + o->order[i]];
  return made->ns_samples;
}

/* A tensor's end goes along with its op, unless somebody uses it later now. */
static bool write_lives (const ordering *o, trace *made) {
  uses u;
  for (int32_t x = 0; x < made->n_tensors; x++) {
    tensor *y = &made->tensors[x];
    y->born_before = y->born_before == NO_OP ? NO_OP : o->place[y->born_before];
    y->dies_after = NO_OP;
  }
  trace alone = *made; /* ops themselves, not those that run beside them */
  alone.n_streams = 1;
  if (!uses_of (&alone, o->arena, &u, o->err))
    return false;
  for (int32_t x = 0; x < made->n_tensors; x++) {
    int32_t dies = o->t->tensors[x].dies_after;
    if (dies != NO_OP && o->place[dies] >= uses_last (&u, x))
      made->tensors[x].dies_after = o->place[dies];
  }
  return true;
}

/* Waits still go backwards. */
static bool write_waits (const ordering *o, trace *made) {
  for (int32_t i = 0; i < made->n_ops; i++) {
    index_list *after = &made->ops[i].after;
    const int32_t *was = after->at;
    if (after->count && !(after->at = NEW (o->arena, after->count, int32_t, o->err)))
      return false;
    for (int32_t j = 0; j < after->count; j++) {
      after->at[j] = o->place[was[j]];
      if (after->at[j] >= i)
        return refuse_run (o, o->run_of[i], "op %lld runs before op %lld, for which it waits",
                           o->order[i], was[j]);
    }
  }
  return true;
}

static trace *write_trace (const ordering *o) {
  const trace *t = o->t;
  trace *made = NEW (o->arena, 1, trace, o->err);
  if (!made)
    return NULL;
  *made = *t;
  if (!ALLOC (o->arena, made->ops, t->n_ops, o->err) ||
      !ALLOC (o->arena, made->tensors, t->n_tensors, o->err))
    return NULL;
  memcpy (made->tensors, t->tensors, (size_t)t->n_tensors * sizeof *t->tensors);
  for (int32_t i = 0; i < t->n_ops; i++)
    made->ops[i] = t->ops[o->order[i]];
  return write_samples (o, made) && write_waits (o, made) && write_lives (o, made) ? made : NULL;
}

bool trace_reorder (const trace *t, const op_run *runs, int32_t n_runs, arena *a, const trace **out,
                    int32_t **order, error *err) {
  assert (t && out && (runs || n_runs == 0));
  ordering o = { .t = t, .arena = a, .err = err };
  *out = t;
  *order = NULL;
  if (!n_runs)
    return true;
  int32_t **per_op[] = { &o.order, &o.place, &o.run_of, &o.born, &o.dies, &o.offset };
  int32_t **per_tensor[] = { &o.version, &o.next_born, &o.next_dies };
  for (size_t i = 0; i < sizeof per_op / sizeof *per_op; i++)
    if (!(*per_op[i] = NEW (a, (int64_t)t->n_ops + 1, int32_t, err)))
      return false;
  for (size_t i = 0; i < sizeof per_tensor / sizeof *per_tensor; i++)
    if (!(*per_tensor[i] = NEW (a, t->n_tensors, int32_t, err)))
      return false;
  if (!spread (&o, runs, n_runs) || !is_sound (&o) || !(*out = write_trace (&o)))
    return false;
  *order = o.order;
  return true;
}

bool order_runs (const int32_t *order, int32_t n_ops, arena *a, op_run **runs, int32_t *n_runs,
                 error *err) {
  assert (order && n_ops >= 0 && runs && n_runs);
  int32_t n = 0;
  *n_runs = 0;
  *runs = NULL;
  for (int32_t i = 0; i < n_ops; i++)
    n += i == 0 || order[i] != order[i - 1] + 1;
  if (n <= 1)
    return true;
  *runs = NEW (a, n, op_run, err);
  for (int32_t i = 0; *runs && i < n_ops; i++) {
    if (i == 0 || order[i] != order[i - 1] + 1)
      (*runs)[(*n_runs)++] = (op_run){ order[i], 0 };
    (*runs)[*n_runs - 1].count++;
  }
  return *runs;
}

bool plan_set_order (plan *p, const trace *t, op_run *runs, int32_t n_runs, arena *a, error *err) {
  assert (n_runs >= 0 && (runs || n_runs == 0));
  char digest[TRACE_DIGEST];
  if (!n_runs)
    return true;
  if (!trace_digest (t, digest, err))
    return false;
  p->trace_digest = arena_string (a, digest, err);
  p->order = runs;
  p->n_order = n_runs;
  return p->trace_digest;
}
