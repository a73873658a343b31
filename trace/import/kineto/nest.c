/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Intervals and those around them.  One sweep per thread over ops and questions in order of time,
   with a stack of the ops that have begun: what has ended is popped, so the top answers.  Intervals
   are closed, since a launch may carry the very microsecond at which its op ends. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/kineto/kineto.h"

typedef enum item_kind { ITEM_OP, ITEM_LAUNCH, ITEM_MEMORY } item_kind;

typedef struct item {
  int64_t at_ns, end_ns, tie;
  int32_t thread, index;
  uint8_t kind;
} item;

/* By thread and time; at one time ops before questions, longer ops (the outer ones) first, and of
   equal ones that with the smaller External id, which entered first. */
static int by_time (const void *a, const void *b) {
  const item *x = a, *y = b;
  return ORDER (x->thread, y->thread) ?: ORDER (x->at_ns, y->at_ns)
         ?: ORDER (y->kind == ITEM_OP, x->kind == ITEM_OP) ?: ORDER (y->end_ns, x->end_ns)
         ?: ORDER (x->tie, y->tie) ?: ORDER (x->kind, y->kind) ?: ORDER (x->index, y->index);
}

/* The second stack holds no annotations: they give their mark to what is in them, but own nothing.
 */
typedef struct sweep {
  kineto *k;
  int32_t *stack, *owners;
  int32_t top, top_owner; /* how many */
  int32_t *launch_owner;
} sweep;

static void enter (sweep *w, int32_t index) {
  kineto_op *o = &w->k->ops[index];
  /* One that ends at the very start of this one is no parent, but may still answer questions. */
  int32_t around = w->top - 1;
  while (around >= 0 && w->k->ops[w->stack[around]].end_ns <= o->start_ns &&
         w->k->ops[w->stack[around]].end_ns < o->end_ns)
    around--;
  o->parent = around >= 0 ? w->stack[around] : NONE;
  if (o->mark == MARK_NONE && o->parent != NONE)
    o->mark = w->k->ops[o->parent].mark;
  w->stack[w->top++] = index;
  if (!o->annotation)
    w->owners[w->top_owner++] = index;
}

static void visit (sweep *w, const item *i) {
  while (w->top && w->k->ops[w->stack[w->top - 1]].end_ns < i->at_ns)
    w->top--;
  while (w->top_owner && w->k->ops[w->owners[w->top_owner - 1]].end_ns < i->at_ns)
    w->top_owner--;
  int32_t owner = w->top_owner ? w->owners[w->top_owner - 1] : NONE;
  if (i->kind == ITEM_OP)
    enter (w, i->index);
  else if (i->kind == ITEM_LAUNCH)
    w->launch_owner[i->index] = owner;
  else
    w->k->memory[i->index].around = owner;
}

static item *collect (import_job *job, const kineto *k, int64_t n) {
  item *items = NEW (job->scratch, n, item, job->err);
  if (!items)
    return NULL;
  int64_t at = 0;
  for (int32_t i = 0; i < k->n_ops; i++) {
    const kineto_op *o = &k->ops[i];
    items[at++] = (item){ o->start_ns, o->end_ns, o->external_id, o->thread, i, ITEM_OP };
  }
  for (int32_t i = 0; i < k->n_launches; i++) {
    const kineto_launch *l = &k->launches[i];
    items[at++] = (item){ l->at_ns, 0, 0, l->thread, i, ITEM_LAUNCH };
  }
  for (int32_t i = 0; i < k->n_memory; i++) {
    const kineto_memory *m = &k->memory[i];
    items[at++] = (item){ m->at_ns, 0, 0, m->thread, i, ITEM_MEMORY };
  }
  return items;
}

typedef enum thread_role { THREAD_BACKWARD = 1, THREAD_STEP = 2, THREAD_FORWARD = 4 } thread_role;

/* A thread that runs calls of autograd, and neither the step nor differentiable calls, is one of
   autograd's: the sums of gradients and what else it does between its nodes is backward too. */
static bool mark_threads (import_job *job, kineto *k) {
  uint8_t *roles = NEW (job->scratch, k->threads.count, uint8_t, job->err);
  if (!roles)
    return false;
  for (int32_t i = 0; i < k->n_steps; i++)
    roles[k->steps[i].thread] |= THREAD_STEP;
  for (int32_t i = 0; i < k->n_ops; i++) {
    const kineto_op *o = &k->ops[i];
    roles[o->thread] |= o->mark == MARK_BACKWARD ? THREAD_BACKWARD
                        : o->mark == MARK_UPDATE ? THREAD_STEP
                        : o->sequence >= 0       ? THREAD_FORWARD
                                                 : 0;
  }
  for (int32_t i = 0; i < k->n_ops; i++)
    if (k->ops[i].mark == MARK_NONE && roles[k->ops[i].thread] == THREAD_BACKWARD)
      k->ops[i].mark = MARK_BACKWARD;
  return true;
}

static slice process_of (const kineto *k, int32_t thread) {
  slice text = k->threads.texts[thread];
  const char *end = memchr (text.at, '/', (size_t)text.size);
  return (slice){ text.at, end ? end - text.at : text.size, false };
}

/* Each process counts its launches from 1, and nothing says of which one a kernel is. */
static bool need_one_process (import_job *job, const kineto *k) {
  for (int32_t i = 1; i < k->n_launches; i++) {
    if (k->launches[i].thread == k->launches[i - 1].thread)
      continue;
    slice a = process_of (k, k->launches[i - 1].thread), b = process_of (k, k->launches[i].thread);
    if (a.size != b.size || memcmp (a.at, b.at, (size_t)a.size) != 0)
      return error_set (job->err, ERR_infeasible,
                        "processes %.*s and %.*s both launch kernels, as in a file put together of "
                        "several ranks: give the file of one",
                        (int)a.size, a.at, (int)b.size, b.at);
  }
  return true;
}

/* Some releases wrote 0 for both times of kernels whose records came late. */
static bool is_timeless (const kineto *k, const kineto_gpu *g) {
  return g->start_ns == 0 && g->ns == 0 && g->launch != NONE && k->launches[g->launch].at_ns > 0;
}

bool kineto_nest (import_job *job, kineto *k) {
  if (!need_one_process (job, k))
    return false;
  id_map launches = id_map_new (job->scratch);
  for (int32_t i = 0; i < k->n_launches; i++) {
    int32_t *at = id_map_at (&launches, k->launches[i].correlation, job->err);
    if (!at)
      return false;
    if (*at < 0)
      *at = i;
  }
  sweep w = { .k = k,
              .stack = NEW (job->scratch, k->n_ops, int32_t, job->err),
              .owners = NEW (job->scratch, k->n_ops, int32_t, job->err),
              .launch_owner = NEW (job->scratch, k->n_launches, int32_t, job->err) };
  if (!w.stack || !w.owners || !w.launch_owner)
    return false;
  arena_mark mark = arena_here (job->scratch);
  int64_t n = (int64_t)k->n_ops + k->n_launches + k->n_memory;
  item *items = collect (job, k, n);
  if (!items)
    return false;
  qsort (items, (size_t)n, sizeof *items, by_time);
  for (int64_t i = 0; i < n; i++) {
    if (i && items[i].thread != items[i - 1].thread)
      w.top = w.top_owner = 0;
    visit (&w, &items[i]);
  }
  arena_back (job->scratch, mark);
  if (!mark_threads (job, k))
    return false;
  int32_t kept = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    kineto_gpu *g = &k->gpu[i];
    g->launch = g->correlation > 0 ? id_map_find (&launches, g->correlation) : NONE;
    g->owner = g->launch != NONE ? w.launch_owner[g->launch] : NONE;
    if (!is_timeless (k, g))
      k->gpu[kept++] = *g;
  }
  k->timeless = k->n_gpu - kept;
  k->n_gpu = kept;
  return true;
}
