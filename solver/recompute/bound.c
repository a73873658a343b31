/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bound of drops and swaps together, op by op. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "solver/recompute/recompute.h"

/* Bytes that one op's copy would bring back: all outputs that idle at the op in question. */
typedef struct item {
  int64_t bytes, ns;
} item;

typedef struct weighing {
  const trace *t;
  const gaps *g;
  const solve_options *o;
  const policy_view *view;
  int32_t *writer; /* per tensor: the last op so far that writes it, or NO_OP */
  int64_t *by_op;  /* per op: bytes of its outputs that idle now */
  uint8_t *idle;   /* per tensor: between two uses */
  item *items;
  int64_t base_ns, rate;
} weighing;

static int denser (const void *a, const void *b) {
  const item *x = a, *y = b;
  __int128 p = (__int128)x->bytes * y->ns, q = (__int128)y->bytes * x->ns;
  return p > q ? -1 : p < q;
}

/* True if a step of ns can have as much as `need` bytes away: the link's share, and what the time
   beyond compute makes again; both rounded up. */
static bool can_have (const weighing *w, int32_t count, int64_t need, int64_t ns) {
  int64_t left_ns = ns - w->base_ns;
  __int128 away = ((__int128)ns * w->rate + 999999999) / 1000000000;
  for (int32_t i = 0; i < count && away < need; i++) {
    const item *x = &w->items[i];
    if (x->ns <= left_ns)
      away += x->bytes;
    else
      away += ((__int128)x->bytes * left_ns + x->ns - 1) / x->ns;
    left_ns = x->ns <= left_ns ? left_ns - x->ns : 0;
  }
  return away >= need;
}

static int64_t least_ns (const weighing *w, int32_t count, int64_t need) {
  int64_t low = w->base_ns, high = INT64_MAX / 4;
  if (!can_have (w, count, need, high))
    return INT64_MAX;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (can_have (w, count, need, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

bool recompute_is_cheap (const policy_view *v, int32_t op) {
  return v->class[op] != CLASS_CONV && v->class[op] != CLASS_FC;
}

static bool may_drop (const weighing *w, int32_t x) {
  const tensor *y = &w->t->tensors[x];
  return !y->persistent && !y->pinned && y->again < AGAIN_PASSES && w->writer[x] != NO_OP &&
         (w->o->recompute != RECOMPUTE_CHEAP || recompute_is_cheap (w->view, w->writer[x]));
}

static int64_t at_op (weighing *w, int32_t k, int64_t need) {
  int32_t count = 0;
  for (int32_t x = 0; x < w->t->n_tensors; x++)
    if (w->idle[x] && may_drop (w, x))
      w->by_op[w->writer[x]] += w->t->tensors[x].bytes;
  for (int32_t i = 0; i < k; i++) {
    if (w->by_op[i] > 0)
      w->items[count++] = (item){ w->by_op[i], w->t->ops[i].ns + w->t->ops[i].gap_ns };
    w->by_op[i] = 0;
  }
  qsort (w->items, (size_t)count, sizeof *w->items, denser);
  return least_ns (w, count, need);
}

/* Over every op, or over those furthest over the budget where there are many. */
static bool weigh (weighing *w, const uses *u, arena *a, int64_t *ns, error *err) {
  int64_t most_work = tuned (w->o->tuning, TUNE_crossing_work);
  const trace *t = w->t;
  int64_t most = 0;
  int32_t every = (int32_t)((int64_t)t->n_ops * (t->n_tensors + t->n_ops) / most_work) + 1;
  int32_t *seen = NEW (a, t->n_tensors, int32_t, err); /* uses passed */
  if (!seen)
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t over = w->g->base_bytes[k] - w->g->unused_bytes - w->g->room_bytes;
    most = over > most ? over : most;
  }
  for (int32_t k = 0; k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    const index_list *lists[] = { &o->reads, &o->writes };
    /* Tensors that op k uses do not idle there; tensors that ended do not either. */
    for (int which = 0; which < 2; which++)
      for (int32_t j = 0; j < lists[which]->count; j++)
        w->idle[lists[which]->at[j]] = 0;
    int64_t need = w->g->base_bytes[k] - w->g->unused_bytes - w->g->room_bytes;
    if (need > 0 && (k % every == 0 || need >= most - most / 50)) {
      int64_t at = at_op (w, k, need);
      *ns = at > *ns ? at : *ns;
    }
    for (int which = 0; which < 2; which++)
      for (int32_t j = 0; j < lists[which]->count; j++) {
        int32_t x = lists[which]->at[j];
        while (seen[x] < uses_count (u, x) && u->at[u->offset[x] + seen[x]].op <= k)
          seen[x]++;
        w->idle[x] = seen[x] > 0 && seen[x] < uses_count (u, x);
        if (which)
          w->writer[x] = k;
      }
  }
  return true;
}

bool recompute_bound (const trace *t, const variant *cut, const solve_options *o, arena *scratch,
                      int64_t *ns, error *err) {
  assert (o->recompute != RECOMPUTE_OFF && ns);
  arena_mark mark = arena_here (scratch);
  static const variant nothing = { 0 };
  const variant *v = cut ? cut : &nothing;
  variant bare = *v;
  bare.recomputes = NULL;
  bare.n_recomputes = 0;
  uses all;
  policy_view view;
  rewritten_step *x = NEW (scratch, 1, rewritten_step, err);
  bool ok = x && variant_rewrite (t, &bare, o, scratch, x, err);
  const trace *rewritten = ok ? x->rw.trace : NULL;
  const gaps *g = ok ? &x->step.gaps : NULL;
  ok = ok && uses_of (rewritten, scratch, &all, err) &&
       (o->recompute != RECOMPUTE_CHEAP || policy_view_build (rewritten, o->device, o->budget_bytes,
                                                              o->host_bytes, scratch, &view, err));
  *ns = INT64_MAX;
  if (!ok || g->floor_bytes > o->budget_bytes)
    goto out;
  weighing w = { .t = rewritten,
                 .g = g,
                 .o = o,
                 .view = &view,
                 .base_ns = trace_total_ns (rewritten),
                 .rate = o->recompute == RECOMPUTE_ONLY
                             ? 0
                             : device_rates (&o->device->link, o->device->share_ppm).in_alone };
  w.writer = NEW (scratch, rewritten->n_tensors, int32_t, err);
  w.by_op = NEW (scratch, rewritten->n_ops, int64_t, err);
  w.idle = NEW (scratch, rewritten->n_tensors, uint8_t, err);
  w.items = NEW (scratch, rewritten->n_ops, item, err);
  ok = w.writer && w.by_op && w.idle && w.items;
  if (ok) {
    memset (w.writer, 0xff, (size_t)rewritten->n_tensors * sizeof *w.writer);
    *ns = w.base_ns;
    ok = weigh (&w, &all, scratch, ns, err);
  }
out:
  arena_back (scratch, mark);
  return ok;
}
