/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Granules: enough for every stay, and who takes over whose. */
#include <stdlib.h>

#include "base/order.h"
#include "trace/check/inner.h"
#include "trace/check/line.h"

static bool enough_granules (checker *c, int32_t row) {
  const placement *p = &c->p->placement;
  const stay *x = &p->stays[row];
  int64_t sum = 0;
  if (x->first_run < 0 || x->n_runs < 0 || x->n_runs > p->n_runs - x->first_run)
    return check_breaks (c, RULE_stay_runs, "placement/stays", row, "runs",
                         "runs %d and %d on are not among the %d of the plan", x->first_run,
                         x->n_runs, p->n_runs);
  for (int32_t i = x->first_run; i < x->first_run + x->n_runs; i++) {
    const granule_run *y = &p->runs[i];
    if (y->count < 1 || y->first < 0 || y->count > p->granules - y->first)
      return check_breaks (c, RULE_stay_runs, "placement/stays", row, "runs",
                           "%d granules from %d are not within the placement's %d", y->count,
                           y->first, p->granules);
    sum += y->count;
  }
  if (sum != c->stays[row].granules)
    return check_breaks (c, RULE_stay_size, "placement/stays", row, "runs",
                         "%lld granules, but the stay needs %lld", (long long)sum,
                         (long long)c->stays[row].granules);
  return true;
}

/* All runs of row x within those of row y. */
static bool runs_within (const placement *p, const stay *x, const stay *y) {
  for (int32_t i = x->first_run; i < x->first_run + x->n_runs; i++) {
    int32_t at = p->runs[i].first, end = at + p->runs[i].count;
    for (int32_t j = y->first_run; j < y->first_run + y->n_runs; j++)
      if (p->runs[j].first <= at && at < p->runs[j].first + p->runs[j].count) {
        at = p->runs[j].first + p->runs[j].count;
        j = y->first_run - 1; /* the next run may stand before */
        if (at >= end)
          break;
      }
    if (at < end)
      return false;
  }
  return true;
}

/* If it is promised: each stay of a part against the part's first row. */
static bool same_granules (checker *c) {
  const placement *p = &c->p->placement;
  int64_t parts = 0;
  int64_t *first = NEW (c->a, c->n_units, int64_t, c->err);
  if (!first)
    return false;
  for (int32_t u = 0; u < c->n_units; u++) {
    first[u] = parts;
    parts += c->units[u].of;
  }
  int32_t *row_of = NEW (c->a, parts, int32_t, c->err); /* 1 + the row; 0: none yet */
  if (!row_of)
    return false;
  for (int32_t i = 0; i < p->n_stays; i++) {
    const stay *x = &p->stays[i];
    const move *m = x->kind == STAY_MOVE ? &c->p->moves[x->index] : NULL;
    if (x->kind == STAY_WORKSPACE)
      continue;
    int32_t unit = m ? m->unit : x->kind == STAY_GROUP ? c->t->n_tensors + x->index : x->index;
    int32_t *row = &row_of[first[unit] + (m ? m->part : x->part)];
    if (*row && !runs_within (p, x, &p->stays[*row - 1]))
      return check_breaks (c, RULE_stay_same, "placement/stays", i, "runs",
                           "not the granules of row %d, a stay of the same part", *row - 1);
    *row = i + 1;
  }
  return true;
}

typedef struct in_time {
  int32_t op, row;
} in_time;

static int by_op (const void *x, const void *y) {
  const in_time *a = x, *b = y;
  return ORDER (a->op, b->op) ?: ORDER (a->row, b->row);
}

typedef struct taking {
  checker *c;
  int32_t row; /* takes now */
  bool *taken; /* rows, in this round */
  bool recording;
} taking;

static bool met_stay (void *context, int32_t former) {
  taking *x = context;
  checker *c = x->c;
  const check_stay *mine = &c->stays[x->row], *its = &c->stays[former];
  if (former == x->row && !x->recording)
    return check_breaks (c, RULE_stay_runs, "placement/stays", x->row, "runs",
                         "the runs overlap each other");
  if (its->op == NO_OP || mine->op == NO_OP)
    return check_breaks (c, RULE_granule_always, "placement/stays", x->row, "runs",
                         "it shares granules with row %d, and a part without moves of a "
                         "persistent unit keeps its own",
                         former);
  if (former != x->row && its->op == mine->op)
    return check_breaks (c, RULE_granule_shared, "placement/stays", x->row, "runs",
                         "it shares granules with row %d, and both are for op %d", former,
                         mine->op);
  return !x->recording || check_hand_over (c, &c->device, former, x->row, x->taken[former]);
}

/* Two rounds of a step: what is met in the second is how it always is. */
static bool take_granules (checker *c, line *l, const in_time *order) {
  const placement *p = &c->p->placement;
  taking x = { .c = c };
  for (int round = 0; round < 2; round++) {
    x.recording = round == 1;
    if (!(x.taken = NEW (c->a, p->n_stays, bool, c->err)))
      return false;
    for (int32_t i = 0; i < p->n_stays; i++) {
      const stay *s = &p->stays[x.row = order[i].row];
      if (round == 1 && c->stays[x.row].op == NO_OP)
        continue;
      for (int32_t j = s->first_run; j < s->first_run + s->n_runs; j++) {
        int64_t first = p->runs[j].first;
        if (!line_take (l, first, first + p->runs[j].count, x.row, met_stay, &x))
          return false;
      }
      x.taken[x.row] = true;
    }
  }
  return true;
}

bool check_places (checker *c) {
  const placement *p = &c->p->placement;
  line_bounds bounds = { 0 };
  for (int32_t i = 0; i < p->n_stays; i++)
    if (!enough_granules (c, i))
      return false;
  if (p->same_places && !same_granules (c))
    return false;
  in_time *order = NEW (c->a, p->n_stays, in_time, c->err);
  if (!order)
    return false;
  for (int32_t i = 0; i < p->n_stays; i++) {
    const stay *s = &p->stays[i];
    order[i] = (in_time){ c->stays[i].op, i };
    for (int32_t j = s->first_run; j < s->first_run + s->n_runs; j++) {
      const granule_run *r = &p->runs[j];
      if (!line_bound (&bounds, c->a, r->first, (int64_t)r->first + r->count, c->err))
        return false;
    }
  }
  qsort (order, (size_t)p->n_stays, sizeof *order, by_op);
  line *l = line_new (c->a, &bounds, c->err);
  return l && take_granules (c, l, order);
}
