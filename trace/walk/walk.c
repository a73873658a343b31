/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/walk/walk.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "trace/walk/implied.h"

typedef struct maker {
  walk *out;
  demands demands;
  int32_t *remake; /* of an op of the rewritten trace: its recompute entry, or -1 */
  walk_wait found[WALK_MOST_DEMANDS];
  int32_t n_found;
} maker;

static bool can_issue (const maker *m, const int32_t done[WALK_QUEUES]) {
  for (int32_t i = 0; i < m->n_found; i++)
    if (m->found[i].lag == 0 && m->found[i].position >= done[m->found[i].queue])
      return false;
  return true;
}

static int32_t index_of (const plan *p, walk_queue queue, int32_t position) {
  return queue == WALK_OPS    ? position
         : queue == WALK_OUTS ? p->out_order[position]
                              : p->in_order[position];
}

static int32_t stay_of (const walk *w, walk_queue queue, int32_t index) {
  if (queue == WALK_OPS)
    return w->stays.work_stay[index];
  const move *m = &w->plan->moves[index];
  return queue == WALK_INS ? w->stays.move_stay[index]
                           : stays_at (&w->stays, m->unit, m->part, m->out_after);
}

static void issue (maker *m, walk_queue queue, int32_t position) {
  walk *o = m->out;
  walk_item *i = &o->items[o->n_items];
  int32_t first = o->n_items == 0 ? 0 : i[-1].first_demand + i[-1].n_demands;
  int32_t index = index_of (o->plan, queue, position);
  *i = (walk_item){ .queue = queue,
                    .position = position,
                    .index = index,
                    .remake = queue == WALK_OPS ? m->remake[index] : -1,
                    .stay = stay_of (o, queue, index),
                    .first_demand = first,
                    .n_demands = m->n_found };
  memcpy (o->demands + first, m->found, (size_t)m->n_found * sizeof *m->found);
  o->place[queue][position] = o->n_items++;
}

static bool issue_all (maker *m, error *err) {
  walk *o = m->out;
  int32_t done[WALK_QUEUES] = { 0, 0, 0 };
  bool moved = true;
  while (moved) {
    moved = false;
    /* Copies first: an engine should know its work as early as it can. */
    for (int q = WALK_QUEUES - 1; q >= 0; q--)
      while (done[q] < o->count[q]) {
        m->n_found = demands_of (&m->demands, (walk_queue)q, done[q], m->found);
        if (!can_issue (m, done))
          break;
        issue (m, (walk_queue)q, done[q]++);
        moved = true;
        if (q == WALK_OPS)
          break;
      }
  }
  for (int q = 0; q < WALK_QUEUES; q++)
    if (done[q] < o->count[q])
      return error_set (err, ERR_infeasible,
                        "the plan hangs: item %d of the %s queue waits for itself", done[q],
                        walk_queue_names[q]);
  return true;
}

/* ---- the place of each in the step ---- */

static walk_item *item_at (const walk *o, walk_queue queue, int32_t position) {
  return &o->items[o->place[queue][position]];
}

/* Behind the last of what it waits for, and behind the item before it in its queue. */
static void put_behind (const walk *o, walk_item *it, int32_t least) {
  it->behind = least;
  for (int32_t i = it->first_demand; i < it->first_demand + it->n_demands; i++) {
    const walk_wait *w = &o->demands[i];
    assert (w->queue != WALK_INS);
    int32_t at =
        w->queue == WALK_OPS ? w->position + 1 : item_at (o, WALK_OUTS, w->position)->behind;
    it->behind = max_of (it->behind, at - w->lag * o->count[WALK_OPS]);
  }
}

static void put_all_behind (const walk *o) {
  int32_t n_ops = o->count[WALK_OPS];
  for (int32_t i = 0; i < n_ops; i++)
    item_at (o, WALK_OPS, i)->behind = i;
  for (walk_queue q = WALK_OUTS; q <= WALK_INS; q++)
    for (int32_t i = 0; i < o->count[q]; i++)
      put_behind (o, item_at (o, q, i), i == 0 ? -n_ops : item_at (o, q, i - 1)->behind);
  /* A copy in is issued behind the last one of the step before, too. */
  int32_t n = o->count[WALK_INS];
  for (int32_t i = 0; i < n; i++) {
    walk_item *it = item_at (o, WALK_INS, i);
    it->behind = max_of (it->behind, item_at (o, WALK_INS, n - 1)->behind - n_ops);
    assert (it->behind > -n_ops);
  }
}

/* An entry's copies stand one behind the other, and entries in their order. */
static bool find_remakes (maker *m, arena *a, error *err) {
  const walk *o = m->out;
  int32_t n_ops = o->count[WALK_OPS], entry = 0, used = 0;
  if ((m->remake = NEW (a, n_ops, int32_t, err)) == NULL)
    return false;
  for (int32_t k = 0; k < n_ops; k++) {
    m->remake[k] = -1;
    if (o->plan->n_recomputes == 0 || !o->rewritten->ops[k].copy)
      continue;
    assert (entry < o->plan->n_recomputes);
    m->remake[k] = entry;
    if (++used == o->plan->recomputes[entry].ops.count) {
      entry++;
      used = 0;
    }
  }
  return true;
}

static bool prepare (maker *m, arena *a, error *err) {
  walk *o = m->out;
  const plan *p = o->plan;
  int64_t total = 0;
  for (int q = 0; q < WALK_QUEUES; q++) {
    total += o->count[q];
    if ((o->place[q] = NEW (a, o->count[q], int32_t, err)) == NULL ||
        (o->awaited[q] = NEW (a, o->count[q], bool, err)) == NULL)
      return false;
  }
  return (o->items = NEW (a, total, walk_item, err)) != NULL &&
         (o->demands = NEW (a, WALK_MOST_DEMANDS * total, walk_wait, err)) != NULL &&
         units_of (o->rewritten->trace, p->groups, p->n_groups, p->placement.granule_bytes,
                   p->placement.pool_below_bytes, a, &o->units, err) &&
         stays_map (&o->units, p, a, &o->stays, err) &&
         demands_make (p, o->count[WALK_OPS], a, &m->demands, err) && find_remakes (m, a, err);
}

bool walk_make (const rewritten *rw, const plan *p, arena *a, walk *out, error *err) {
  assert (rw && rw->trace && p);
  *out = (walk){ .rewritten = rw, .plan = p, .count = { rw->trace->n_ops, p->n_outs, p->n_ins } };
  maker m = { .out = out };
  if (!prepare (&m, a, err) || !issue_all (&m, err))
    return false;
  put_all_behind (out);
  return implied_leave_out (out, a, err);
}
