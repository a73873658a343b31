/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/waits.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"

enum { LONGEST_CHAIN = 1000 };

typedef struct reading {
  const trace *trace;
  const plan *plan;
  const timeline *line;
  int32_t *out_place, *in_place; /* per move */
  int32_t *last; /* per op, of it and those before it in the list: the one that ends last */
} reading;

/* An item `count` of a queue of n, counted as "`count` have ended": 1 is this step's first,
   0 the last step's last. */
static int32_t item_of (int64_t count, int32_t n, int64_t *steps_back) {
  int64_t at = count - 1;
  *steps_back = 0;
  for (; n > 0 && at < 0; at += n)
    ++*steps_back;
  return n > 0 && at < n ? (int32_t)at : -1;
}

static int64_t op_end (const reading *r, int64_t count, int32_t *op) {
  int64_t back;
  *op = item_of (count, r->trace->n_ops, &back);
  *op = *op < 0 ? -1 : r->last[*op];
  return *op < 0 ? INT64_MIN : r->line->ops[*op].end_ns - back * r->line->period_ns;
}

static int64_t out_end (const reading *r, int64_t count, int32_t *move) {
  int64_t back;
  int32_t at = item_of (count, r->plan->n_outs, &back);
  *move = at < 0 ? -1 : r->plan->out_order[at];
  return at < 0 ? INT64_MIN : r->line->outs[*move].end_ns - back * r->line->period_ns;
}

static int64_t in_end (const reading *r, int64_t count, int32_t *move) {
  int64_t back;
  int32_t at = item_of (count, r->plan->n_ins, &back);
  *move = at < 0 ? -1 : r->plan->in_order[at];
  return at < 0 ? INT64_MIN : r->line->ins[*move].end_ns - back * r->line->period_ns;
}

typedef struct latest {
  int64_t end_ns;
  copy_cause cause;
  int32_t op, move;
} latest;

static void later (latest *l, int64_t end_ns, copy_cause cause, int32_t op, int32_t move) {
  if (end_ns > l->end_ns)
    *l = (latest){ end_ns, cause, op, move };
}

static latest before_out (const reading *r, int32_t m) {
  latest l = { INT64_MIN, COPY_free, -1, -1 };
  int32_t op, move;
  int64_t end_ns = op_end (r, (int64_t)r->plan->moves[m].out_after + 1, &op);
  later (&l, end_ns, COPY_op, op, -1);
  end_ns = out_end (r, r->out_place[m], &move);
  later (&l, end_ns, COPY_link, -1, move);
  return l;
}

static latest before_in (const reading *r, int32_t m) {
  const move *at = &r->plan->moves[m];
  latest l = { INT64_MIN, COPY_free, -1, -1 };
  bool wraps = at->in_before <= at->out_after;
  int32_t op, move;
  int64_t end_ns;
  if (at->in_ops != NO_WAIT) {
    end_ns = op_end (r, at->in_ops, &op);
    later (&l, end_ns, COPY_op, op, -1);
  }
  if (at->in_outs != NO_WAIT) {
    end_ns = out_end (r, at->in_outs, &move);
    later (&l, end_ns, COPY_out, -1, move);
  }
  if (at->clean) {
    end_ns = op_end (r, at->out_after + 1 - (wraps ? (int64_t)r->trace->n_ops : 0), &op);
    later (&l, end_ns, COPY_op, op, -1);
  } else {
    int64_t own = r->out_place[m] + 1 - (wraps ? (int64_t)r->plan->n_outs : 0);
    end_ns = out_end (r, own, &move);
    later (&l, end_ns, COPY_out, -1, move);
  }
  end_ns = in_end (r, r->in_place[m], &move);
  later (&l, end_ns, COPY_link, -1, move);
  return l;
}

/* The copy that ended just when the op started. */
static void tell (const reading *r, const int32_t *last_in, const int32_t *outs, wait *w) {
  int64_t start_ns = r->line->ops[w->op].start_ns, end_ns = INT64_MIN;
  int32_t move = -1;
  w->move = w->cause_op = w->cause_move = -1;
  w->cause = COPY_free;
  if (last_in[w->op] >= 0) {
    w->move = last_in[w->op];
    end_ns = r->line->ins[w->move].end_ns;
  }
  if (outs[w->op] != NO_WAIT) {
    int64_t out_ns = out_end (r, outs[w->op], &move);
    if (move >= 0 && out_ns > end_ns) {
      w->by_out = true;
      w->move = move;
      end_ns = out_ns;
    }
  }
  if (end_ns != start_ns) {
    w->move = -1;
    return;
  }
  latest l = { .cause = COPY_link, .move = w->move };
  for (w->behind = -1; l.cause == COPY_link && w->behind < LONGEST_CHAIN; w->behind++) {
    const span *copy = w->by_out ? &r->line->outs[l.move] : &r->line->ins[l.move];
    int64_t start_ns = copy->start_ns, period_ns = r->line->period_ns;
    l = w->by_out ? before_out (r, l.move) : before_in (r, l.move);
    if (l.cause == COPY_free || period_ns <= 0 || (start_ns - l.end_ns) % period_ns != 0)
      l.cause = COPY_free;
  }
  if (l.cause == COPY_free)
    return;
  w->cause = l.cause;
  w->cause_op = l.op;
  w->cause_move = l.move;
}

/* Copies see the ops of all streams as one list: who waits makes those behind it wait. */
static void see_one_list (const reading *r, int32_t *last_in, int32_t *outs) {
  for (int32_t k = 1; k < r->trace->n_ops; k++) {
    int32_t before = last_in[k - 1];
    if (before >= 0 && (last_in[k] < 0 || r->in_place[before] > r->in_place[last_in[k]]))
      last_in[k] = before;
    outs[k] = outs[k] < outs[k - 1] ? outs[k - 1] : outs[k];
  }
}

static bool index_copies (reading *r, arena *a, int32_t **last_in, int32_t **outs, error *err) {
  const plan *p = r->plan;
  if (!ALLOC (a, r->out_place, p->n_moves, err) || !ALLOC (a, r->in_place, p->n_moves, err) ||
      !ALLOC (a, *last_in, r->trace->n_ops, err) || !ALLOC (a, *outs, r->trace->n_ops, err) ||
      !ALLOC (a, r->last, r->trace->n_ops, err))
    return false;
  for (int32_t i = 0; i < p->n_outs; i++)
    r->out_place[p->out_order[i]] = i;
  for (int32_t k = 0; k < r->trace->n_ops; k++) {
    (*last_in)[k] = -1;
    (*outs)[k] = NO_WAIT;
  }
  for (int32_t i = 0; i < p->n_ins; i++) {
    r->in_place[p->in_order[i]] = i;
    (*last_in)[p->moves[p->in_order[i]].in_before] = p->in_order[i];
  }
  for (int32_t i = 0; i < p->n_op_waits; i++)
    (*outs)[p->op_waits[i].op] = p->op_waits[i].outs;
  for (int32_t k = 0; k < r->trace->n_ops; k++)
    r->last[k] =
        k > 0 && r->line->ops[r->last[k - 1]].end_ns > r->line->ops[k].end_ns ? r->last[k - 1] : k;
  if (trace_has_streams (r->trace))
    see_one_list (r, *last_in, *outs);
  return true;
}

/* When an op could begin if it waited for no copy: its gap behind the ops that it waits for. */
static int64_t free_ns (const reading *r, const int32_t *newest, int32_t k) {
  const op *o = &r->trace->ops[k];
  const span *ops = r->line->ops;
  int32_t n = r->trace->n_ops, before = newest[o->stream];
  int64_t ns = before == NO_OP ? INT64_MIN : ops[before].end_ns;
  for (int32_t j = 0; j < o->after.count; j++)
    ns = max_of (ns, ops[o->after.at[j]].end_ns);
  return (ns == INT64_MIN ? ops[r->last[n - 1]].end_ns - r->line->period_ns : ns) + o->gap_ns;
}

bool waits_of (const sim_job *job, const timeline *line, arena *a, wait **out, int32_t *count,
               error *err) {
  assert (job && line && out && count);
  reading r = { .trace = job->rewritten->trace, .plan = job->plan, .line = line };
  int32_t *last_in, *outs, n = r.trace->n_ops;
  *count = 0;
  if (!ALLOC (a, *out, n, err) || !index_copies (&r, a, &last_in, &outs, err))
    return false;
  int32_t newest[MOST_STREAMS];
  memset (newest, 0xff, sizeof newest);
  for (int32_t k = 0; k < n; k++) {
    int64_t ns = line->ops[k].start_ns - free_ns (&r, newest, k);
    if (ns > 0) {
      wait *w = &(*out)[(*count)++];
      *w = (wait){ .op = k, .ns = ns };
      tell (&r, last_in, outs, w);
    }
    newest[r.trace->ops[k].stream] = k;
  }
  return true;
}
