/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/replay/program.h"

#include <string.h>

#include "executor/replay/implied.h"

typedef struct maker {
  const plan *plan;
  program *out;
  int32_t *out_place; /* of a move in out_order; -1: clean */
  int32_t *due;       /* of an op: the last place in in_order that it waits for, or -1 */
  int32_t *op_outs;   /* of an op: its row of op_waits, or NO_WAIT */
  program_wait found[4];
  int32_t n_found;
} maker;

static void add (maker *m, program_queue queue, int32_t position, int32_t lag) {
  m->found[m->n_found++] = (program_wait){ queue, position, lag };
}

/* "So many have ended", counted relative to the item's step. */
static void add_count (maker *m, program_queue queue, int32_t wanted) {
  int32_t n = m->out->count[queue];
  if (wanted == NO_WAIT || n == 0)
    return;
  if (wanted > 0)
    add (m, queue, wanted - 1, 0);
  else if (wanted > -n)
    add (m, queue, n - 1 + wanted, 1);
  else
    add (m, queue, n - 1, 2);
}

static void find_waits (maker *m, program_queue queue, int32_t position) {
  const plan *p = m->plan;
  m->n_found = 0;
  if (queue == QUEUE_OPS) {
    if (m->due[position] >= 0)
      add (m, QUEUE_INS, m->due[position], 0);
    add_count (m, QUEUE_OUTS, m->op_outs[position]);
    return;
  }
  if (queue == QUEUE_OUTS) {
    add (m, QUEUE_OPS, p->moves[p->out_order[position]].out_after, 0);
    return;
  }
  int32_t index = p->in_order[position];
  const move *v = &p->moves[index];
  int32_t lag = v->in_before <= v->out_after ? 1 : 0;
  add_count (m, QUEUE_OPS, v->in_ops);
  add_count (m, QUEUE_OUTS, v->in_outs);
  if (v->clean)
    add (m, QUEUE_OPS, v->out_after, lag);
  else
    add (m, QUEUE_OUTS, m->out_place[index], lag);
}

static bool can_issue (const maker *m, const int32_t done[QUEUES]) {
  for (int32_t i = 0; i < m->n_found; i++)
    if (m->found[i].lag == 0 && m->found[i].position >= done[m->found[i].queue])
      return false;
  return true;
}

static void issue (maker *m, program_queue queue, int32_t position) {
  program *o = m->out;
  program_item *i = &o->items[o->n_items];
  int32_t first = o->n_items == 0 ? 0 : i[-1].first_demand + i[-1].n_demands;
  *i = (program_item){ .queue = queue,
                       .position = position,
                       .index = queue == QUEUE_OPS    ? position
                                : queue == QUEUE_OUTS ? m->plan->out_order[position]
                                                      : m->plan->in_order[position],
                       .first_demand = first,
                       .n_demands = m->n_found };
  memcpy (o->demands + first, m->found, (size_t)m->n_found * sizeof *m->found);
  o->place[queue][position] = o->n_items++;
}

static bool prepare (maker *m, arena *a, error *err) {
  const plan *p = m->plan;
  program *o = m->out;
  int32_t total = 0;
  for (int q = 0; q < QUEUES; q++) {
    total += o->count[q];
    if ((o->place[q] = NEW (a, o->count[q], int32_t, err)) == NULL ||
        (o->awaited[q] = NEW (a, o->count[q], bool, err)) == NULL)
      return false;
  }
  if ((o->items = NEW (a, total, program_item, err)) == NULL ||
      (o->demands = NEW (a, 4 * (int64_t)total, program_wait, err)) == NULL ||
      (m->out_place = NEW (a, p->n_moves, int32_t, err)) == NULL ||
      (m->due = NEW (a, o->count[QUEUE_OPS], int32_t, err)) == NULL ||
      (m->op_outs = NEW (a, o->count[QUEUE_OPS], int32_t, err)) == NULL)
    return false;
  for (int32_t i = 0; i < p->n_moves; i++)
    m->out_place[i] = -1;
  for (int32_t i = 0; i < o->count[QUEUE_OPS]; i++) {
    m->due[i] = -1;
    m->op_outs[i] = NO_WAIT;
  }
  for (int32_t i = 0; i < p->n_outs; i++)
    m->out_place[p->out_order[i]] = i;
  for (int32_t i = 0; i < p->n_ins; i++)
    m->due[p->moves[p->in_order[i]].in_before] = i;
  for (int32_t i = 0; i < p->n_op_waits; i++)
    m->op_outs[p->op_waits[i].op] = p->op_waits[i].outs;
  return true;
}

bool program_make (const rewritten *rw, const plan *p, arena *a, program *out, error *err) {
  *out = (program){ .count = { rw->trace->n_ops, p->n_outs, p->n_ins } };
  maker m = { .plan = p, .out = out };
  if (!prepare (&m, a, err))
    return false;
  int32_t done[QUEUES] = { 0, 0, 0 };
  bool moved = true;
  while (moved) {
    moved = false;
    /* Copies first: an engine should know its work as early as it can. */
    for (int q = QUEUES - 1; q >= 0; q--)
      while (done[q] < out->count[q]) {
        find_waits (&m, (program_queue)q, done[q]);
        if (!can_issue (&m, done))
          break;
        issue (&m, (program_queue)q, done[q]++);
        moved = true;
        if (q == QUEUE_OPS)
          break;
      }
  }
  for (int q = 0; q < QUEUES; q++)
    if (done[q] < out->count[q])
      return error_set (err, ERR_infeasible,
                        "the plan hangs: item %d of the %s queue waits for itself", done[q],
                        q == QUEUE_OPS    ? "op"
                        : q == QUEUE_OUTS ? "out"
                                          : "in");
  return implied_leave_out (out, a, err);
}
