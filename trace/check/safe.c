/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Live and safe. The three queues of one step are walked as far as their waits let them: where they
   stop, the plan hangs. In the order of that walk, two steps are walked again with what each event
   knows to have ended, and every taking over in the second is judged. */
#include <assert.h>
#include <string.h>

#include "trace/check/inner.h"

/* The items of each queue that have surely ended, counted from the first of the two steps. */
typedef struct known {
  int64_t ops, outs, ins;
} known;

typedef enum event { EVENT_OP, EVENT_OUT, EVENT_IN } event;

typedef struct walk {
  checker *c;
  uint8_t *order; /* of event */
  int64_t count;
  int32_t ops, outs, ins;                 /* how many have ended */
  int32_t *due_first;                     /* n_ops + 1: places in `due` */
  int32_t *due;                           /* places in in_order, by the op that waits for them */
  known *op_end, *out_end, *in_end;       /* of both steps */
  known *op_start, *out_start, *in_start; /* of the second */
  known *own; /* of several streams: at the end of each op of this step; op_end is then of all ops
                 up to it in the list */
  known gate; /* of several streams: what the ops of this step so far wait for of copies */
  int32_t newest[MOST_STREAMS]; /* of each stream, in this step */
} walk;

bool check_hand_over (checker *c, check_handovers *list, int32_t former, int32_t next,
                      bool same_step) {
  assert (former >= 0 && next >= 0);
  if (list->count > 0 && list->at[list->count - 1].former == former &&
      list->at[list->count - 1].next == next)
    return true;
  check_handover *at =
      arena_grow (c->a, list->at, &list->room, list->count + 1, sizeof *at, c->err);
  if (!at)
    return false;
  list->at = at;
  list->at[list->count++] = (check_handover){ former, next, same_step };
  return true;
}

static bool list_due (walk *w) {
  const plan *p = w->c->p;
  int32_t n = w->c->n_ops;
  if (!ALLOC (w->c->a, w->due_first, (int64_t)n + 2, w->c->err) ||
      !ALLOC (w->c->a, w->due, p->n_ins, w->c->err))
    return false;
  for (int32_t i = 0; i < p->n_ins; i++)
    w->due_first[p->moves[p->in_order[i]].in_before + 2]++;
  for (int32_t k = 2; k <= n + 1; k++)
    w->due_first[k] += w->due_first[k - 1];
  for (int32_t i = 0; i < p->n_ins; i++)
    w->due[w->due_first[p->moves[p->in_order[i]].in_before + 1]++] = i;
  return true;
}

/* Ins end in order, so an op has all of its own when the last of them has ended. */
static bool op_may_start (const walk *w, int32_t k) {
  if (w->c->wait_outs[k] > w->outs)
    return false;
  return w->due_first[k] == w->due_first[k + 1] || w->due[w->due_first[k + 1] - 1] < w->ins;
}

static bool out_may_start (const walk *w, int32_t place) {
  return w->c->p->moves[w->c->p->out_order[place]].out_after < w->ops;
}

static bool in_may_start (const walk *w, int32_t place) {
  int32_t i = w->c->p->in_order[place];
  const move *x = &w->c->p->moves[i];
  if (x->in_ops > w->ops || x->in_outs > w->outs)
    return false;
  if (check_wraps (x))
    return true;
  return x->clean ? x->out_after < w->ops : w->c->out_place[i] < w->outs;
}

static bool walk_on (walk *w) {
  const plan *p = w->c->p;
  int64_t before = w->count;
  while (w->ops < w->c->n_ops && op_may_start (w, w->ops)) {
    w->order[w->count++] = EVENT_OP;
    w->ops++;
  }
  while (w->outs < p->n_outs && out_may_start (w, w->outs)) {
    w->order[w->count++] = EVENT_OUT;
    w->outs++;
  }
  while (w->ins < p->n_ins && in_may_start (w, w->ins)) {
    w->order[w->count++] = EVENT_IN;
    w->ins++;
  }
  return w->count > before;
}

/* Outs wait for ops only, so in every deadlock an op or an in hangs. */
static bool is_live (walk *w) {
  checker *c = w->c;
  const plan *p = c->p;
  while (walk_on (w))
    ;
  if (w->ops == c->n_ops && w->outs == p->n_outs && w->ins == p->n_ins)
    return true;
  if (w->ins == p->n_ins)
    return check_breaks (c, RULE_live, "op_waits", -1, NULL,
                         "op %d waits for %d outs of its step, of which %d can ever end", w->ops,
                         c->wait_outs[w->ops], w->outs);
  return check_breaks (c, RULE_live, "in_order", w->ins, NULL,
                       "the copy in of move %d can never start: %d ops and %d outs of its step can "
                       "end before it",
                       p->in_order[w->ins], w->ops, w->outs);
}

static void learn (known *x, const known *from) {
  x->ops = from->ops > x->ops ? from->ops : x->ops;
  x->outs = from->outs > x->outs ? from->outs : x->outs;
  x->ins = from->ins > x->ins ? from->ins : x->ins;
}

/* The first `count` events of a queue have ended, counted from the first step. */
static void learn_count (known *x, const known *ends, int64_t count) {
  if (count > 0)
    learn (x, &ends[count - 1]);
}

static void learn_wait (known *x, const known *ends, int32_t wait, int64_t before) {
  if (wait != NO_WAIT)
    learn_count (x, ends, before + wait);
}

static void learn_copies (const walk *w, int32_t step, int32_t k, known *x) {
  const checker *c = w->c;
  learn_wait (x, w->out_end, c->wait_outs[k], (int64_t)step * c->p->n_outs);
  for (int32_t i = w->due_first[k]; i < w->due_first[k + 1]; i++)
    learn (x, &w->in_end[(int64_t)step * c->p->n_ins + w->due[i]]);
}

static known start_of_op (const walk *w, int32_t step, int32_t k) {
  known x = { 0, 0, 0 };
  learn_count (&x, w->op_end, (int64_t)step * w->c->n_ops + k);
  learn_copies (w, step, k, &x);
  return x;
}

/* On a stream beside others: all of the step before has ended, and what it waits for. */
static known start_beside (walk *w, int32_t step, int32_t k) {
  const checker *c = w->c;
  const op *o = &c->t->ops[k];
  int64_t before = (int64_t)step * c->n_ops;
  if (k == 0) {
    w->gate = (known){ 0, 0, 0 };
    memset (w->newest, 0xff, sizeof w->newest);
  }
  learn_copies (w, step, k, &w->gate);
  known x = w->gate;
  learn_count (&x, w->op_end, before);
  if (w->newest[o->stream] != NO_OP)
    learn (&x, &w->own[w->newest[o->stream]]);
  for (int32_t i = 0; i < o->after.count; i++)
    learn (&x, &w->own[o->after.at[i]]);
  if (x.ops < before + c->s.prefix[k])
    x.ops = before + c->s.prefix[k];
  return x;
}

static void end_beside (walk *w, int32_t step, int32_t k, known x) {
  int64_t at = (int64_t)step * w->c->n_ops + k;
  if (x.ops == at)
    x.ops++;
  w->own[k] = x;
  w->newest[w->c->t->ops[k].stream] = k;
  w->op_end[at] = x;
  learn_count (&w->op_end[at], w->op_end, at);
  w->op_end[at].ops = at + 1;
}

static known start_of_out (const walk *w, int32_t step, int32_t place) {
  const checker *c = w->c;
  const move *m = &c->p->moves[c->p->out_order[place]];
  known x = { 0, 0, 0 };
  learn_count (&x, w->out_end, (int64_t)step * c->p->n_outs + place);
  learn (&x, &w->op_end[(int64_t)step * c->n_ops + m->out_after]);
  return x;
}

static known start_of_in (const walk *w, int32_t step, int32_t place) {
  const checker *c = w->c;
  int32_t i = c->p->in_order[place];
  const move *m = &c->p->moves[i];
  int64_t ops = (int64_t)step * c->n_ops, outs = (int64_t)step * c->p->n_outs;
  known x = { 0, 0, 0 };
  learn_count (&x, w->in_end, (int64_t)step * c->p->n_ins + place);
  learn_wait (&x, w->op_end, m->in_ops, ops);
  learn_wait (&x, w->out_end, m->in_outs, outs);
  if (check_wraps (m)) { /* its out is of the step before */
    ops -= c->n_ops;
    outs -= c->p->n_outs;
  }
  if (m->clean)
    learn_count (&x, w->op_end, ops + m->out_after + 1);
  else
    learn_count (&x, w->out_end, outs + c->out_place[i] + 1);
  return x;
}

static void walk_step (walk *w, int32_t step) {
  const checker *c = w->c;
  int64_t ops = 0, outs = 0, ins = 0, before;
  for (int64_t i = 0; i < w->count; i++) {
    known x;
    switch ((event)w->order[i]) {
    case EVENT_OP:
      if (w->own) {
        w->op_start[ops] = start_beside (w, step, (int32_t)ops);
        end_beside (w, step, (int32_t)ops, w->op_start[ops]);
        ops++;
        break;
      }
      x = w->op_start[ops] = start_of_op (w, step, (int32_t)ops);
      before = (int64_t)step * c->n_ops + ops++;
      x.ops = before + 1;
      w->op_end[before] = x;
      break;
    case EVENT_OUT:
      x = w->out_start[outs] = start_of_out (w, step, (int32_t)outs);
      before = (int64_t)step * c->p->n_outs + outs++;
      x.outs = before + 1;
      w->out_end[before] = x;
      break;
    case EVENT_IN:
      x = w->in_start[ins] = start_of_in (w, step, (int32_t)ins);
      before = (int64_t)step * c->p->n_ins + ins++;
      x.ins = before + 1;
      w->in_end[before] = x;
      break;
    }
  }
}

/* All ops of this step, up to the end of a stay, that use what it holds have ended when an op of
   another stream begins. */
static bool users_have_ended (const walk *w, const check_handover *x, const known *birth) {
  const checker *c = w->c;
  const stay *s = &c->p->placement.stays[x->former];
  int32_t op = c->stays[x->next].op, last = c->stays[x->former].end.index;
  if (s->kind == STAY_WORKSPACE)
    return streams_ordered (c->t, &c->s, s->index, op);
  int32_t unit = s->kind == STAY_MOVE    ? c->p->moves[s->index].unit
                 : s->kind == STAY_GROUP ? c->t->n_tensors + s->index
                                         : s->index;
  const check_unit *u = &c->units[unit];
  for (int32_t i = u->first_use; i < u->first_use + u->n_uses && c->uses[i].op <= last; i++)
    if (!c->uses[i].held && birth->ops <= (int64_t)c->n_ops + c->uses[i].op &&
        !streams_ordered (c->t, &c->s, c->uses[i].op, op))
      return false;
  return true;
}

static bool granules_safe (const walk *w) {
  checker *c = w->c;
  for (int64_t i = 0; i < c->device.count; i++) {
    const check_handover *x = &c->device.at[i];
    const check_stay *next = &c->stays[x->next];
    const check_end *end = &c->stays[x->former].end;
    const known *birth = next->in < 0 ? &w->op_start[next->op] : &w->in_start[next->in];
    int64_t step = (x->same_step ? 1 : 0) + end->steps;
    int64_t needed = step * (end->out ? c->p->n_outs : c->n_ops) + end->index + 1;
    if ((end->out ? birth->outs : birth->ops) < needed &&
        !(w->own && step == 1 && next->in < 0 && !end->out && users_have_ended (w, x, birth)))
      return check_breaks (c, RULE_safe, "placement/stays", x->next, "runs",
                           "granules of row %d are taken at the start of %s %d, when %s %d may not "
                           "have ended; it needs a later wait",
                           x->former, next->in < 0 ? "op" : "the copy in of move",
                           next->in < 0 ? next->op : c->p->in_order[next->in],
                           end->out ? "the copy out of move" : "op",
                           end->out ? c->p->out_order[end->index] : end->index);
  }
  return true;
}

static bool host_safe (const walk *w) {
  checker *c = w->c;
  for (int64_t i = 0; i < c->host.count; i++) {
    const check_handover *x = &c->host.at[i];
    int32_t last = c->last_in[x->former];
    int64_t step = (x->same_step ? 1 : 0) + c->last_in_steps[x->former];
    int64_t needed = step * c->p->n_ins + c->in_place[last] + 1;
    if (w->out_start[c->out_place[x->next]].ins < needed)
      return check_breaks (c, RULE_host_safe, "moves", x->next, "host_offset",
                           "host bytes of move %d are written by the copy out of move %d, when the "
                           "copy in of move %d may not have ended",
                           x->former, x->next, last);
  }
  return true;
}

static bool walk_new (walk *w) {
  checker *c = w->c;
  const plan *p = c->p;
  return ALLOC (c->a, w->order, (int64_t)c->n_ops + p->n_outs + p->n_ins, c->err) &&
         ALLOC (c->a, w->op_end, 2 * (int64_t)c->n_ops, c->err) &&
         ALLOC (c->a, w->out_end, 2 * (int64_t)p->n_outs, c->err) &&
         ALLOC (c->a, w->in_end, 2 * (int64_t)p->n_ins, c->err) &&
         ALLOC (c->a, w->op_start, c->n_ops, c->err) &&
         ALLOC (c->a, w->out_start, p->n_outs, c->err) &&
         ALLOC (c->a, w->in_start, p->n_ins, c->err) && list_due (w) &&
         (c->s.count < 2 || (w->own = NEW (c->a, c->n_ops, known, c->err)));
}

bool check_safe (checker *c) {
  walk w = { .c = c };
  if (!walk_new (&w) || !is_live (&w))
    return false;
  walk_step (&w, 0);
  walk_step (&w, 1);
  return granules_safe (&w) && host_safe (&w);
}
