/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fixed.h"

#include <math.h>

/* Which gap of the unit the move lies in. */
static int32_t gap_of (const gaps *g, const move *m) {
  for (int32_t i = g->of_unit[m->unit]; i < g->of_unit[m->unit + 1]; i++) {
    int32_t n = g->n_ops, from = g->at[i].after;
    int32_t length = (g->at[i].before - from + n - 1) % n + 1;
    int32_t out = (m->out_after - from + n) % n, in = (m->in_before - from + n - 1) % n + 1;
    if (out < length && in <= length && out < in)
      return i;
  }
  return NO_GAP;
}

typedef struct done {
  int32_t gap, part, out; /* ops behind the gap's start */
  int64_t main, tail;
  bool clean;
} done;

/* A part that goes twice in one gap is away from the first time on: the first counts. */
static int32_t collect (const flow *f, const plan *p, done *to) {
  const gaps *g = f->source;
  int32_t n = 0;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *m = &p->moves[i];
    const unit_info *u = &g->units->at[m->unit];
    int32_t gap = gap_of (g, m), k = 0;
    if (gap == NO_GAP || g->at[gap].unused)
      continue;
    int32_t out = (m->out_after - g->at[gap].after + g->n_ops) % g->n_ops;
    while (k < n && (to[k].gap != gap || to[k].part != m->part))
      k++;
    if (k < n && to[k].out < out)
      continue;
    int64_t end = unit_part_first (u, m->part + 1, m->of);
    int64_t granules = end - unit_part_first (u, m->part, m->of);
    bool tail = end == u->granules;
    to[k] = (done){
      gap, m->part, out, (granules - tail) * g->granule_bytes, tail * g->granule_bytes, m->clean
    };
    n += k == n;
  }
  return n;
}

static bool is_in (const flow *f, int32_t gap) {
  for (int32_t i = 0; i < f->n_gaps; i++)
    if (f->gaps[i].gap == gap)
      return true;
  return false;
}

/* A copy out in a gap that the program leaves out, because it lies inside one slot, is one in the
   next gap, which is released in the same slot. */
static int32_t pass_on (const flow *f, done *d, int32_t n) {
  const gaps *g = f->source;
  for (int32_t i = 0; i < n; i++) {
    if (d[i].clean || is_in (f, d[i].gap))
      continue;
    int32_t unit = g->at[d[i].gap].unit, next = d[i].gap + 1, k = 0;
    if (next == g->of_unit[unit + 1])
      next = g->of_unit[unit];
    if (g->at[next].clean != d[i].gap || next == d[i].gap)
      continue;
    while (k < n && (d[k].gap != next || d[k].part != d[i].part))
      k++;
    if (k == n) {
      d[n] = d[i];
      d[n++].gap = next;
    } else if (d[k].clean) {
      d[k].clean = false;
      if (k < i)
        i = k - 1;
    }
  }
  return n;
}

/* What leaves of a gap's piece, by copy or clean. */
static int64_t amount (const done *d, int32_t n, int32_t gap, bool tail, bool split, bool clean) {
  int64_t sum = 0;
  for (int32_t i = 0; i < n; i++)
    if (d[i].gap == gap && d[i].clean == clean)
      sum += split ? (tail ? d[i].tail : d[i].main) : d[i].main + d[i].tail;
  return sum;
}

static bool is_split (const flow *f, int32_t unit) {
  for (int32_t i = 0; i < f->n_members; i++)
    if (f->members[i].unit == unit && f->members[i].tail)
      return true;
  return false;
}

bool fixed_solve (flow *f, const plan *p, arena *a, double *stall_ns, error *err) {
  done *d = NEW (a, (int64_t)p->n_moves * (f->source->count + 1), done, err);
  if (!d)
    return false;
  int32_t n = pass_on (f, d, collect (f, p, d));
  for (int32_t i = 0; i < f->n_chains; i++) {
    const flow_chain *c = &f->chains[i];
    for (int32_t col = c->column; col < f->n_columns && f->column_at[col] < c->link + c->count;
         col++) {
      if (f->column_kind[col] == COLUMN_gap_valid)
        continue;
      bool clean = f->column_kind[col] == COLUMN_gap_clean;
      int64_t bytes = 0;
      for (int32_t k = 0; k < c->n_members; k++) {
        const flow_member *m = &f->members[c->members + k];
        int32_t gap = f->gaps[m->first_gap + f->column_at[col] - c->link].gap;
        bool split = is_split (f, m->unit);
        bytes += amount (d, n, gap, m->tail, split, clean);
        if (c->circle && !f->host_limited) /* no column for copies out that nobody needs */
          bytes += amount (d, n, gap, m->tail, split, false);
      }
      f->low[col] = f->high[col] = flow_grains_down (&f->link, bytes);
    }
  }
  return fixed_finish (f, a, stall_ns, err);
}

bool fixed_finish (const flow *f, arena *a, double *stall_ns, error *err) {
  ilp_problem lp;
  ilp_options o = { .method = ILP_SIMPLEX };
  ilp_result r;
  if (!flow_problem (f, a, &lp, err) || !ilp_solve (&lp, &o, a, &r, err))
    return false;
  if (r.status != ILP_OPTIMAL) { /* the simplex may stumble; what both refuse is infeasible */
    o.method = ILP_INTERIOR;
    if (!ilp_solve (&lp, &o, a, &r, err))
      return false;
  }
  *stall_ns = r.status == ILP_OPTIMAL ? ldexp (r.value, FLOW_UNIT_BITS - f->link.shift) * 1e9 /
                                            (double)f->link.rates.out_alone
                                      : -1;
  return true;
}
