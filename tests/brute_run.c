/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/brute_run.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1 };
static const int64_t FOREVER = INT64_MAX / 2;

typedef struct span {
  int64_t begin, end;
} span;

/* An event: the end of an op or an out, in a step counted from that of the stay. */
typedef struct ending {
  brute_queue queue;
  int32_t place, steps;
} ending;

typedef struct resident {
  brute_queue birth; /* BRUTE_OP or BRUTE_IN */
  int32_t place;
  bool always;
  ending end;
} resident;

struct brute {
  const plan *p;
  const trace *t;
  int32_t n[3];                  /* of each queue */
  span *times[3];                /* BRUTE_STEPS rows */
  resident *residents;           /* one a row of stays */
  bool *meets;                   /* n_stays x n_stays: a granule in common */
  int32_t *copy_of, *copy_steps; /* per move: which move's out it reads, so many steps before */
  bool *host_meets;              /* n_moves x n_moves */
  int64_t *copy_bytes;
  span *stays, *copies; /* BRUTE_STEPS + 1 rows: from step -1 on */
};

static int32_t place_in (const int32_t *order, int32_t n, int32_t index) {
  for (int32_t i = 0; i < n; i++)
    if (order[i] == index)
      return i;
  return -1;
}

static bool op_names (const trace *t, int32_t k, int32_t x) {
  const op *o = &t->ops[k];
  return place_in (o->reads.at, o->reads.count, x) >= 0 ||
         place_in (o->writes.at, o->writes.count, x) >= 0 || t->tensors[x].born_before == k ||
         t->tensors[x].dies_after == k;
}

static bool op_uses (const brute *b, int32_t k, int32_t unit) {
  if (unit < b->t->n_tensors)
    return op_names (b->t, k, unit);
  const index_list *g = &b->p->groups[unit - b->t->n_tensors];
  for (int32_t i = 0; i < g->count; i++)
    if (op_names (b->t, k, g->at[i]))
      return true;
  return false;
}

static bool is_persistent (const brute *b, int32_t unit) {
  if (unit >= b->t->n_tensors)
    unit = b->p->groups[unit - b->t->n_tensors].at[0];
  return b->t->tensors[unit].persistent;
}

static int64_t unit_bytes (const brute *b, int32_t unit) {
  if (unit < b->t->n_tensors)
    return b->t->tensors[unit].bytes;
  const index_list *g = &b->p->groups[unit - b->t->n_tensors];
  int64_t sum = 0;
  for (int32_t i = 0; i < g->count; i++)
    sum += (b->t->tensors[g->at[i]].bytes + 511) / 512 * 512;
  return sum;
}

/* From op `from` on, op by op, round the step: what takes the part away? */
static ending find_end (const brute *b, int32_t unit, int32_t part, int32_t from) {
  int32_t n = b->n[BRUTE_OP], last = from;
  bool persistent = is_persistent (b, unit);
  for (int32_t k = from; k < (persistent ? from + n : n); k++) {
    for (int32_t i = 0; i < b->p->n_moves; i++) {
      const move *x = &b->p->moves[i];
      if (x->unit != unit || x->part != part || x->out_after != k % n)
        continue;
      if (x->clean)
        return (ending){ BRUTE_OP, k % n, k / n };
      return (ending){ BRUTE_OUT, place_in (b->p->out_order, b->n[BRUTE_OUT], i), k / n };
    }
    if (op_uses (b, k % n, unit))
      last = k;
  }
  return (ending){ BRUTE_OP, last % n, 0 };
}

static bool part_moves (const brute *b, int32_t unit, int32_t part) {
  for (int32_t i = 0; i < b->p->n_moves; i++)
    if (b->p->moves[i].unit == unit && b->p->moves[i].part == part)
      return true;
  return false;
}

static resident describe (const brute *b, const stay *x) {
  resident r = { .birth = BRUTE_OP, .place = x->index };
  int32_t unit = x->kind == STAY_GROUP ? b->t->n_tensors + x->index : x->index;
  switch (x->kind) {
  case STAY_WORKSPACE:
    r.end = (ending){ BRUTE_OP, x->index, 0 };
    return r;
  case STAY_MOVE: {
    const move *m = &b->p->moves[x->index];
    r.birth = BRUTE_IN;
    r.place = place_in (b->p->in_order, b->n[BRUTE_IN], x->index);
    r.end = find_end (b, m->unit, m->part, m->in_before);
    return r;
  }
  default:
    r.always = is_persistent (b, unit) && !part_moves (b, unit, x->part);
    for (r.place = 0; !r.always && !op_uses (b, r.place, unit);)
      r.place++;
    r.end = find_end (b, unit, x->part, r.always ? 0 : r.place);
    return r;
  }
}

static bool share_granule (const placement *p, const stay *x, const stay *y) {
  for (int32_t i = x->first_run; i < x->first_run + x->n_runs; i++)
    for (int32_t j = y->first_run; j < y->first_run + y->n_runs; j++)
      if (p->runs[i].first < p->runs[j].first + p->runs[j].count &&
          p->runs[j].first < p->runs[i].first + p->runs[i].count)
        return true;
  return false;
}

static bool wraps (const move *x) {
  return x->in_before <= x->out_after;
}

/* Back from op `out_after`, op by op, to the out that made the bytes; none: they were always there.
 */
static void find_copy (brute *b, int32_t i) {
  const move *x = &b->p->moves[i];
  int32_t n = b->n[BRUTE_OP];
  b->copy_of[i] = -1;
  for (int32_t k = x->out_after; k > x->out_after - n - 1 && b->copy_of[i] < 0; k--)
    for (int32_t j = 0; j < b->p->n_moves; j++) {
      const move *y = &b->p->moves[j];
      if (y->unit == x->unit && y->part == x->part && !y->clean && y->out_after == (k + n) % n) {
        b->copy_of[i] = j;
        b->copy_steps[i] = (k < 0) + wraps (x);
      }
    }
}

static void find_bytes (brute *b, int32_t i) {
  const move *x = &b->p->moves[i];
  int64_t bytes = unit_bytes (b, x->unit), granule = b->p->placement.granule_bytes;
  int64_t granules = (bytes + granule - 1) / granule;
  int64_t first = x->part * granules / x->of * granule;
  int64_t end = (x->part + 1) * granules / x->of * granule;
  b->copy_bytes[i] = (end < bytes ? end : bytes) - first;
}

brute *brute_new (const random_case *c, arena *a, error *err) {
  brute *b = NEW (a, 1, brute, err);
  if (!b)
    return NULL;
  const plan *p = b->p = c->plan;
  int64_t stays = p->placement.n_stays, moves = p->n_moves;
  b->t = c->rewritten.trace;
  b->n[BRUTE_OP] = b->t->n_ops;
  b->n[BRUTE_OUT] = p->n_outs;
  b->n[BRUTE_IN] = p->n_ins;
  for (int q = 0; q < 3; q++)
    if (!(b->times[q] = NEW (a, (int64_t)b->n[q] * BRUTE_STEPS, span, err)))
      return NULL;
  b->residents = NEW (a, stays, resident, err);
  b->meets = NEW (a, stays * stays, bool, err);
  b->copy_of = NEW (a, moves, int32_t, err);
  b->copy_steps = NEW (a, moves, int32_t, err);
  b->copy_bytes = NEW (a, moves, int64_t, err);
  b->host_meets = NEW (a, moves * moves, bool, err);
  b->stays = NEW (a, stays * (BRUTE_STEPS + 1), span, err);
  b->copies = NEW (a, moves * (BRUTE_STEPS + 1), span, err);
  if (!b->residents || !b->meets || !b->copy_of || !b->copy_steps || !b->copy_bytes ||
      !b->host_meets || !b->stays || !b->copies)
    return NULL;
  for (int32_t i = 0; i < stays; i++) {
    b->residents[i] = describe (b, &p->placement.stays[i]);
    for (int32_t j = 0; j < stays; j++)
      b->meets[i * stays + j] =
          share_granule (&p->placement, &p->placement.stays[i], &p->placement.stays[j]);
  }
  for (int32_t i = 0; i < moves; i++) {
    find_copy (b, i);
    find_bytes (b, i);
  }
  for (int32_t i = 0; i < moves; i++)
    for (int32_t j = 0; j < moves; j++)
      b->host_meets[i * moves + j] =
          p->moves[i].host_offset < p->moves[j].host_offset + b->copy_bytes[j] &&
          p->moves[j].host_offset < p->moves[i].host_offset + b->copy_bytes[i];
  return b;
}

/* When an event was over: 0 before the first step, UNKNOWN while it is not. */
static int64_t over_at (const brute *b, brute_queue q, int32_t step, int64_t place) {
  int64_t at = (int64_t)step * b->n[q] + place;
  return at < 0 ? 0 : b->times[q][at].end;
}

static bool wait_for (int64_t end, int64_t *start) {
  if (end == UNKNOWN)
    return false;
  if (end > *start)
    *start = end;
  return true;
}

static bool wait_count (const brute *b, brute_queue q, int32_t step, int32_t count,
                        int64_t *start) {
  return count == NO_WAIT || wait_for (over_at (b, q, step, (int64_t)count - 1), start);
}

static bool op_starts (const brute *b, int32_t step, int32_t k, int64_t *start) {
  for (int32_t i = 0; i < b->n[BRUTE_IN]; i++)
    if (b->p->moves[b->p->in_order[i]].in_before == k &&
        !wait_for (over_at (b, BRUTE_IN, step, i), start))
      return false;
  for (int32_t i = 0; i < b->p->n_op_waits; i++)
    if (b->p->op_waits[i].op == k &&
        !wait_count (b, BRUTE_OUT, step, b->p->op_waits[i].outs, start))
      return false;
  return true;
}

static bool in_starts (const brute *b, int32_t step, int32_t place, int64_t *start) {
  int32_t i = b->p->in_order[place];
  const move *x = &b->p->moves[i];
  int32_t own = step - wraps (x);
  if (!wait_count (b, BRUTE_OP, step, x->in_ops, start) ||
      !wait_count (b, BRUTE_OUT, step, x->in_outs, start))
    return false;
  if (x->clean)
    return wait_for (over_at (b, BRUTE_OP, own, x->out_after), start);
  return wait_for (over_at (b, BRUTE_OUT, own, place_in (b->p->out_order, b->n[BRUTE_OUT], i)),
                   start);
}

static bool starts (const brute *b, brute_queue q, int32_t step, int32_t place, int64_t *start) {
  *start = 0;
  if (!wait_for (over_at (b, q, step, (int64_t)place - 1), start))
    return false;
  if (q == BRUTE_OP)
    return op_starts (b, step, place, start);
  if (q == BRUTE_IN)
    return in_starts (b, step, place, start);
  return wait_for (over_at (b, BRUTE_OP, step, b->p->moves[b->p->out_order[place]].out_after),
                   start);
}

static bool run_queues (brute *b, brute_duration *duration, void *context) {
  int32_t done[3] = { 0, 0, 0 };
  for (int q = 0; q < 3; q++)
    for (int32_t i = 0; i < b->n[q] * BRUTE_STEPS; i++)
      b->times[q][i] = (span){ UNKNOWN, UNKNOWN };
  for (bool on = true; on;) {
    on = false;
    for (int q = 0; q < 3; q++)
      while (done[q] < b->n[q] * BRUTE_STEPS) {
        int32_t step = done[q] / b->n[q], place = done[q] % b->n[q];
        int64_t start;
        if (!starts (b, (brute_queue)q, step, place, &start))
          break;
        b->times[q][done[q]++] =
            (span){ start, start + duration (context, (brute_queue)q, step, place) };
        on = true;
      }
  }
  for (int q = 0; q < 3; q++)
    if (done[q] < b->n[q] * BRUTE_STEPS)
      return false;
  return true;
}

static bool overlap (span x, span y) {
  return x.begin < y.end && y.begin < x.end;
}

static int64_t end_of (const brute *b, brute_queue q, int32_t step, int32_t place) {
  return step >= BRUTE_STEPS ? FOREVER : over_at (b, q, step, place);
}

static bool granules_overlap (brute *b) {
  int32_t n = b->p->placement.n_stays, all = n * (BRUTE_STEPS + 1);
  for (int32_t i = 0; i < all; i++) {
    int32_t step = i / n - 1;
    const resident *r = &b->residents[i % n];
    b->stays[i].begin = step < 0 ? 0 : b->times[r->birth][step * b->n[r->birth] + r->place].begin;
    b->stays[i].end = end_of (b, r->end.queue, step + r->end.steps, r->end.place);
    if (r->always)
      b->stays[i] = (span){ 0, step < 0 ? FOREVER : 0 };
  }
  for (int32_t i = 0; i < all; i++)
    for (int32_t j = 0; j < i; j++)
      if (b->meets[(i % n) * n + j % n] && overlap (b->stays[i], b->stays[j]))
        return true;
  return false;
}

/* Bytes that were always there are one copy, which all moves of the part read. */
static bool one_copy (const brute *b, int32_t i, int32_t j) {
  const move *x = &b->p->moves[i], *y = &b->p->moves[j];
  return b->copy_of[i] < 0 && b->copy_of[j] < 0 && x->unit == y->unit && x->part == y->part;
}

static bool host_overlaps (brute *b) {
  int32_t n = b->p->n_moves, all = n * (BRUTE_STEPS + 1);
  for (int32_t i = 0; i < all; i++) {
    int32_t m = i % n, step = i / n - 1;
    b->copies[i] = (span){ 0, 0 };
    if (b->copy_of[m] < 0)
      b->copies[i].end = step < 0 ? FOREVER : 0;
    else if (!b->p->moves[m].clean && step >= 0)
      b->copies[i].begin = b->times[BRUTE_OUT][step * b->n[BRUTE_OUT] +
                                               place_in (b->p->out_order, b->n[BRUTE_OUT], m)]
                               .begin;
  }
  for (int32_t i = 0; i < b->n[BRUTE_IN] * (BRUTE_STEPS + 1); i++) {
    int32_t step = i / b->n[BRUTE_IN], m = b->p->in_order[i % b->n[BRUTE_IN]];
    int32_t made = step - b->copy_steps[m];
    if (b->copy_of[m] < 0 || made < -1 || made >= BRUTE_STEPS)
      continue;
    span *copy = &b->copies[(made + 1) * n + b->copy_of[m]];
    int64_t end = end_of (b, BRUTE_IN, step, i % b->n[BRUTE_IN]);
    copy->end = end > copy->end ? end : copy->end;
  }
  for (int32_t i = 0; i < all; i++)
    for (int32_t j = 0; j < i; j++)
      if (b->host_meets[(i % n) * n + j % n] && !one_copy (b, i % n, j % n) &&
          overlap (b->copies[i], b->copies[j]))
        return true;
  return false;
}

brute_verdict brute_run (brute *b, brute_duration *duration, void *context) {
  if (!run_queues (b, duration, context))
    return BRUTE_HANGS;
  return granules_overlap (b) || host_overlaps (b) ? BRUTE_OVERLAPS : BRUTE_FINE;
}
