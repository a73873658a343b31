/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/replay/script.h"

#include <assert.h>

typedef struct writer {
  const script_request *q;
  script *out; /* arrays NULL: only counting */
  kernel_op *ops;
  int64_t *times; /* a gap's and an op's, where launches find them */
  int32_t stream; /* of the item that is written */
  int32_t n_streams;
  int32_t *upto; /* of several, per op and stream: the last op of that up to this one, or -1 */
  arena *a;
} writer;

static script_call *add (writer *w, script_kind kind) {
  script *o = w->out;
  script_call *c = &o->calls[o->n_calls++];
  *c = (script_call){ .kind = kind, .stream = w->stream };
  return c;
}

static void add_event (writer *w, script_kind kind, int32_t place, int32_t lag) {
  script_call *c = add (w, kind);
  c->place = place;
  c->lag = lag;
}

/* Not with others in one entry: it is either this or a calculation. */
static void add_calculation (writer *w, int32_t op, int64_t *ns) {
  script_call *c = add (w, SCRIPT_CALCULATE);
  c->place = op;
  c->first = w->out->n_launches;
  c->count = 1;
  kernels_wait_launch (w->q->kernels, ns, &w->out->launches[w->out->n_launches++]);
}

static kernel_launch *add_launch (writer *w) {
  script *o = w->out;
  script_call *last = o->n_calls > 0 ? &o->calls[o->n_calls - 1] : NULL;
  if (last == NULL || last->kind != SCRIPT_LAUNCH || last->stream != w->stream) {
    last = add (w, SCRIPT_LAUNCH);
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
  script_call *c = add (w, i->queue == WALK_OUTS ? SCRIPT_OUT : SCRIPT_IN);
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
  if (i->n_waits > 0 || i->queue != WALK_OPS || trace_has_streams (rw->trace))
    return -1;
  const op *o = &rw->trace->ops[i->index];
  return o->gap_ns == 0 && o->collective == COLLECTIVE_none ? op_before (p, place) : -1;
}

/* ---- waits ---- */

static int32_t last_upto (const writer *w, int32_t op, int32_t stream) {
  return w->upto[(int64_t)op * w->n_streams + stream];
}

/* All ops up to one have ended. */
static void wait_for_ops (writer *w, int32_t op, int32_t lag, int32_t but) {
  const walk *p = w->q->walk;
  for (int32_t x = 0; x < w->n_streams; x++)
    if (x != but && last_upto (w, op, x) >= 0)
      add_event (w, SCRIPT_WAIT, p->place[WALK_OPS][last_upto (w, op, x)], lag);
}

static void add_wait (writer *w, const walk_wait *v) {
  if (w->upto && v->queue == WALK_OPS)
    wait_for_ops (w, v->position, v->lag, -1);
  else
    add_event (w, SCRIPT_WAIT, w->q->walk->place[v->queue][v->position], v->lag);
}

static int32_t before_on_stream (const writer *w, int32_t op) {
  return op > 0 ? last_upto (w, op - 1, w->q->rewritten->trace->ops[op].stream) : NO_OP;
}

/* It waits for no op of its step. */
static bool begins_step (const writer *w, int32_t op) {
  return w->upto
             ? before_on_stream (w, op) == NO_OP && w->q->rewritten->trace->ops[op].after.count == 0
             : op == 0;
}

/* Ops of other streams: those that it names, or all of the step before. */
static void wait_beside (writer *w, int32_t op) {
  const trace *t = w->q->rewritten->trace;
  for (int32_t i = 0; i < t->ops[op].after.count; i++)
    add_event (w, SCRIPT_WAIT, w->q->walk->place[WALK_OPS][t->ops[op].after.at[i]], 0);
  if (begins_step (w, op))
    wait_for_ops (w, t->n_ops - 1, 1, t->ops[op].stream);
}

/* The copies that an op waits for; what waits before it in the list, on another stream, waits
   before it too. */
static void wait_for_copies (writer *w, const walk_item *i) {
  const walk *p = w->q->walk;
  for (int32_t k = i->first_wait; !w->upto && k < i->first_wait + i->n_waits; k++)
    add_wait (w, &p->waits[k]);
  for (int32_t op = i->index; w->upto && op > before_on_stream (w, i->index); op--) {
    const walk_item *at = &p->items[p->place[WALK_OPS][op]];
    for (int32_t k = at->first_demand; k < at->first_demand + at->n_demands; k++)
      add_wait (w, &p->demands[k]);
  }
}

static void add_op_item (writer *w, const walk_item *i) {
  const script_request *q = w->q;
  if (w->upto)
    wait_beside (w, i->index);
  add_gap (w, i->index);
  if (q->meets && begins_step (w, i->index))
    add (w, SCRIPT_MEET);
  wait_for_copies (w, i);
  if (q->meeting_of && q->meeting_of[i->index] >= 0)
    add (w, SCRIPT_COLLECTIVE)->place = i->index;
}

static void add_item (writer *w, int32_t place) {
  const script_request *q = w->q;
  const walk *p = q->walk;
  const walk_item *i = &p->items[place];
  w->stream = script_stream_of (q->rewritten->trace, i);
  if (i->queue == WALK_OPS)
    add_op_item (w, i);
  for (int32_t k = i->first_wait; i->queue != WALK_OPS && k < i->first_wait + i->n_waits; k++)
    add_wait (w, &p->waits[k]);
  if (q->timed && script_begins_with (p, q->rewritten, place) < 0)
    add_event (w, SCRIPT_BEGIN, place, 0);
  if (i->queue == WALK_OPS)
    add_op (w, i->index);
  else
    add_copy (w, i);
  if (q->timed || q->ended || p->awaited[i->queue][i->position])
    add_event (w, SCRIPT_END, place, 0);
}

static bool find_streams (writer *w, error *err) {
  const trace *t = w->q->rewritten->trace;
  w->n_streams = 1;
  if (!trace_has_streams (t))
    return true;
  w->n_streams = t->n_streams;
  w->upto = NEW (w->a, (int64_t)t->n_ops * t->n_streams, int32_t, err);
  for (int32_t k = 0; w->upto && k < t->n_ops; k++)
    for (int32_t x = 0; x < t->n_streams; x++)
      w->upto[(int64_t)k * t->n_streams + x] = t->ops[k].stream == x ? k
                                               : k > 0               ? last_upto (w, k - 1, x)
                                                                     : NO_OP;
  return w->upto;
}

/* An item: a launch or two, or a copy, two records and two meetings; and waits, for an op of each
   stream, or in each for what an op waits for. */
static int64_t most_calls (const writer *w) {
  const walk *p = w->q->walk;
  const trace *t = w->q->rewritten->trace;
  const walk_item *last = p->n_items == 0 ? NULL : &p->items[p->n_items - 1];
  int64_t waits = last == NULL ? 0 : last->first_demand + last->n_demands, afters = 0;
  for (int32_t k = 0; k < t->n_ops; k++)
    afters += t->ops[k].after.count;
  return 6 * (int64_t)p->n_items + afters + w->n_streams * (waits + w->n_streams);
}

bool script_make (const script_request *q, arena *a, script *out, error *err) {
  assert (q && q->walk && out);
  const walk *p = q->walk;
  int64_t n_ops = p->count[WALK_OPS], n = p->n_items;
  writer w = { .q = q, .out = out, .a = a };
  if (!find_streams (&w, err))
    return false;
  *out = (script){ .launches = NEW (a, 2 * n_ops, kernel_launch, err),
                   .copies = NEW (a, n - n_ops, script_copy, err),
                   .calls = NEW (a, most_calls (&w), script_call, err) };
  if (!ALLOC (a, w.times, 2 * n_ops, err) ||
      !ALLOC (a, w.ops, q->operands == NULL ? 0 : n_ops, err) || out->launches == NULL ||
      out->copies == NULL || out->calls == NULL)
    return false;
  for (int32_t place = 0; place < n; place++)
    add_item (&w, place);
  return true;
}
