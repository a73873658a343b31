/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/replay/script.h"

#include <assert.h>

typedef struct writer {
  const script_request *q;
  script *out; /* arrays NULL: only counting */
  kernel_op *ops;
  int64_t *times; /* a gap's and an op's, where launches find them */
  arena *a;
} writer;

static script_call *add (writer *w, script_kind kind, walk_queue queue) {
  script *o = w->out;
  script_call *c = &o->calls[o->n_calls++];
  *c = (script_call){ .kind = kind, .queue = queue };
  return c;
}

static void add_event (writer *w, script_kind kind, walk_queue queue, int32_t place, int32_t lag) {
  script_call *c = add (w, kind, queue);
  c->place = place;
  c->lag = lag;
}

/* Not with others in one entry: it is either this or a calculation. */
static void add_calculation (writer *w, int32_t op, int64_t *ns) {
  script_call *c = add (w, SCRIPT_CALCULATE, WALK_OPS);
  c->place = op;
  c->first = w->out->n_launches;
  c->count = 1;
  kernels_wait_launch (w->q->kernels, ns, &w->out->launches[w->out->n_launches++]);
}

static kernel_launch *add_launch (writer *w) {
  script *o = w->out;
  script_call *last = o->n_calls > 0 ? &o->calls[o->n_calls - 1] : NULL;
  if (last == NULL || last->kind != SCRIPT_LAUNCH) {
    last = add (w, SCRIPT_LAUNCH, WALK_OPS);
    last->first = o->n_launches;
  }
  last->count++;
  return &o->launches[o->n_launches++];
}

static void add_gap (writer *w, int32_t op) {
  int64_t *ns = &w->times[2 * op];
  *ns = w->q->rewritten->trace->ops[op].gap_ns;
  if (*ns > 0)
    kernels_wait_launch (w->q->kernels, ns, add_launch (w));
}

static void add_op (writer *w, int32_t op) {
  const script_request *q = w->q;
  int64_t *ns = &w->times[2 * op + 1];
  *ns = q->rewritten->trace->ops[op].ns;
  if (q->calculated) {
    add_calculation (w, op, ns);
    return;
  }
  if (q->operands == NULL) {
    kernels_wait_launch (q->kernels, ns, add_launch (w));
    return;
  }
  kernel_op *k = &w->ops[op];
  *k = (kernel_op){ .operands = q->operands + q->op_offset[op],
                    .count = q->op_offset[op + 1] - q->op_offset[op],
                    .ns = *ns,
                    .op = op,
                    .found = q->found };
  kernels_touch_launch (q->kernels, k, q->step, add_launch (w));
}

static void add_copy (writer *w, const walk_item *i) {
  const room *r = w->q->room;
  const move *m = &w->q->plan->moves[i->index];
  int64_t bytes =
      unit_part_bytes (&r->units.at[m->unit], w->q->plan->placement.granule_bytes, m->part, m->of);
  script *o = w->out;
  script_call *c = add (w, i->queue == WALK_OUTS ? SCRIPT_OUT : SCRIPT_IN, i->queue);
  c->first = o->n_copies;
  c->count = 1;
  o->copies[o->n_copies++] =
      (script_copy){ .device = r->stay_at[i->stay],
                     .host = r->host + m->host_offset,
                     .bytes = (size_t)bytes,
                     .owner = (uint64_t)r->stays.first_part[m->unit] + (uint64_t)m->part + 1 };
}

/* The op that stands before this item in the stream of the ops, in the same step; -1: none. */
static int32_t op_before (const walk *p, int32_t place) {
  const walk_item *i = &p->items[place];
  return i->queue == WALK_OPS && i->position > 0 ? p->place[WALK_OPS][i->position - 1] : -1;
}

int32_t script_begins_with (const walk *p, const rewritten *rw, int32_t place) {
  assert (place >= 0 && place < p->n_items);
  const walk_item *i = &p->items[place];
  return i->n_waits == 0 && i->queue == WALK_OPS && rw->trace->ops[i->index].gap_ns == 0
             ? op_before (p, place)
             : -1;
}

static void add_item (writer *w, int32_t place) {
  const script_request *q = w->q;
  const walk *p = q->walk;
  const walk_item *i = &p->items[place];
  if (i->queue == WALK_OPS)
    add_gap (w, i->index);
  if (q->meets && i->queue == WALK_OPS && i->position == 0)
    add (w, SCRIPT_MEET, WALK_OPS);
  for (int32_t k = i->first_wait; k < i->first_wait + i->n_waits; k++) {
    const walk_wait *v = &p->waits[k];
    add_event (w, SCRIPT_WAIT, i->queue, p->place[v->queue][v->position], v->lag);
  }
  if (q->timed && script_begins_with (p, q->rewritten, place) < 0)
    add_event (w, SCRIPT_BEGIN, i->queue, place, 0);
  if (i->queue == WALK_OPS)
    add_op (w, i->index);
  else
    add_copy (w, i);
  if (q->timed || q->ended || p->awaited[i->queue][i->position])
    add_event (w, SCRIPT_END, i->queue, place, 0);
}

bool script_make (const script_request *q, arena *a, script *out, error *err) {
  assert (q && q->walk && out);
  const walk *p = q->walk;
  int64_t n_ops = p->count[WALK_OPS], n = p->n_items;
  int64_t n_waits = n == 0 ? 0 : p->items[n - 1].first_wait + p->items[n - 1].n_waits;
  *out = (script){ .launches = NEW (a, 2 * n_ops, kernel_launch, err),
                   .copies = NEW (a, n - n_ops, script_copy, err),
                   /* an item: a launch or two, or a copy, and two records; and a meeting */
                   .calls = NEW (a, 4 * n + n_waits + 1, script_call, err) };
  writer w = { .q = q, .out = out, .a = a };
  w.times = NEW (a, 2 * n_ops, int64_t, err);
  w.ops = NEW (a, q->operands == NULL ? 0 : n_ops, kernel_op, err);
  if (out->launches == NULL || out->copies == NULL || out->calls == NULL || w.times == NULL ||
      w.ops == NULL)
    return false;
  for (int32_t place = 0; place < n; place++)
    add_item (&w, place);
  return true;
}
