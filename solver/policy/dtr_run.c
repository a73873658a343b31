/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/dtr_run.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/policy/dtr_costs.h"
#include "solver/policy/remake.h"

/* The times that the step may run again before it is given up; and as often the step is run once
   more with what could not be made again kept. */
enum { MOST_AGAIN = 8, MOST_RUNS = 6 };

typedef struct run {
  const dtr_request *q;
  const trace *t;
  arena *arena;
  error *err;
  dtr_costs costs;
  remake again;
  dtr_answer *out;
  int64_t entries_room;
  int32_t *touched_of, *touched; /* per op: the tensors that it uses */
  int32_t *first, *last;         /* per tensor: its uses */
  uint8_t *may_go;               /* per tensor: before its last use */
  uint8_t *always;               /* per tensor: also behind it */
  uint8_t *here;                 /* per tensor */
  int32_t *locks;                /* per tensor: it cannot go now */
  int64_t *used_ns;              /* per tensor: its last use */
  int32_t *at, *loose, n_loose;  /* tensors that may go: their places, and the list */
  int32_t *until;                /* per tensor: the last op of the entry that reads it */
  int32_t *made;                 /* per tensor: the mark of an entry that has written it */
  int32_t *sorted;               /* the entry's ops */
  int64_t *double_bytes;         /* per tensor: of a copy beside what is here already */
  int64_t now_ns, bytes, step_ns;
  bool refused; /* something could not be made again */
} run;

/* ---- tensors come and go ---- */

static void come (run *r, int32_t x) {
  assert (!r->here[x]);
  r->here[x] = 1;
  r->bytes += r->q->room[x];
  r->used_ns[x] = r->now_ns;
  if (r->costs.gone[x])
    dtr_costs_comes (&r->costs, x);
  if (!r->may_go[x])
    return;
  r->at[x] = r->n_loose;
  r->loose[r->n_loose++] = x;
}

static bool go (run *r, int32_t x) {
  assert (r->here[x] && !r->always[x]);
  r->here[x] = 0;
  r->bytes -= r->q->room[x];
  r->again.away[x] = 1;
  if (!r->may_go[x])
    return true;
  int32_t other = r->loose[--r->n_loose];
  r->loose[r->at[x]] = other;
  r->at[other] = r->at[x];
  return dtr_costs_goes (&r->costs, x, r->err);
}

/* Cost over bytes and staleness, without the division. */
static double measure (const run *r, int32_t x, int64_t cost_ns) {
  double stale = (double)(r->now_ns - r->used_ns[x] + 1);
  double cost = (double)(cost_ns + 1);
  double weighed = r->q->weight == DTR_ROOT     ? sqrt (cost)
                   : r->q->weight == DTR_SQUARE ? cost * cost
                                                : cost;
  return weighed / ((double)r->q->room[x] * stale);
}

/* A cost with which the measure is surely more than that. */
static int64_t too_much (const run *r, int32_t x, double than) {
  double stale = (double)(r->now_ns - r->used_ns[x] + 1);
  double weighed = than * (double)r->q->room[x] * stale;
  double cost = r->q->weight == DTR_ROOT     ? weighed * weighed
                : r->q->weight == DTR_SQUARE ? sqrt (weighed)
                                             : weighed;
  return cost < 1e18 ? (int64_t)(cost * 1.000001) + 2 : INT64_MAX;
}

/* Little has to be known of a cost to rule most tensors out, before all that is gone is asked. */
static int32_t cheapest (run *r) {
  int32_t best = -1;
  double least = 0;
  for (int32_t i = 0; i < r->n_loose; i++) {
    int32_t x = r->loose[i];
    if (r->locks[x] || r->q->room[x] == 0)
      continue;
    if (best >= 0 && measure (r, x, r->costs.known_ns[x]) > least)
      continue;
    int64_t most_ns = best < 0 ? INT64_MAX : too_much (r, x, least);
    double h = measure (r, x, dtr_costs_ns (&r->costs, x, most_ns));
    if (best < 0 || h < least || (h <= least && x < best)) {
      best = x;
      least = h;
    }
  }
  return best;
}

static bool make_room (run *r, int64_t bytes) {
  int64_t lacking;
  while ((lacking = r->bytes + bytes - r->q->budget_bytes) > 0) {
    int32_t x = cheapest (r);
    if (x < 0) {
      r->out->lacking_bytes = lacking > r->out->lacking_bytes ? lacking : r->out->lacking_bytes;
      return true;
    }
    if (!go (r, x))
      return false;
  }
  return true;
}

/* ---- an entry ---- */

static bool is_dead (const run *r, int32_t x, int32_t before) {
  return r->last[x] < before;
}

/* Ops in order of the trace, the last of the entry that reads each tensor, and locks on what is
   there and will be read. */
static void plan_entry (run *r, const int32_t *ops, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    const index_list *reads = &r->t->ops[ops[i]].reads;
    for (int32_t j = 0; j < reads->count; j++) {
      r->until[reads->at[j]] = i;
      r->locks[reads->at[j]]++;
    }
  }
}

static bool is_left (const run *r, int32_t x) {
  return r->here[x] && !r->always[x] && !r->locks[x];
}

/* The op's reads are over; what only this entry needed is given up. */
static bool leave_reads (run *r, const op *o, int32_t i) {
  for (int32_t j = 0; j < o->reads.count; j++) {
    int32_t x = o->reads.at[j];
    r->locks[x]--;
    r->used_ns[x] = r->now_ns;
    if (r->until[x] != i)
      continue;
    r->bytes -= r->double_bytes[x];
    r->double_bytes[x] = 0;
    if (is_left (r, x) && is_dead (r, x, r->again.before) && !go (r, x))
      return false;
  }
  return true;
}

/* Behind the entry: copies of what was here already, what only its ops read, and what they made a
   part of only. */
static bool leave_writes (run *r, const int32_t *ops, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    const index_list *writes = &r->t->ops[ops[i]].writes;
    for (int32_t j = 0; j < writes->count; j++) {
      int32_t x = writes->at[j];
      r->bytes -= r->double_bytes[x];
      r->double_bytes[x] = 0;
      bool over = is_dead (r, x, r->again.before) || r->again.away[x];
      if (over && is_left (r, x) && !go (r, x))
        return false;
    }
  }
  return true;
}

static bool run_again (run *r, int32_t k, int32_t i) {
  int32_t *made = r->made;
  const op *o = &r->t->ops[k];
  int64_t need = o->workspace_bytes;
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t x = o->writes.at[j];
    if (!list_has (&o->side, x) && made[x] != r->again.mark)
      need += r->q->room[x];
  }
  if (!make_room (r, need))
    return false;
  r->now_ns += o->ns + o->gap_ns;
  r->out->again_ns += o->ns + o->gap_ns;
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t x = o->writes.at[j];
    if (list_has (&o->side, x))
      continue;
    bool fresh = made[x] != r->again.mark;
    made[x] = r->again.mark;
    if (!fresh) {
      r->used_ns[x] = r->now_ns;
    } else if (r->here[x]) {
      r->double_bytes[x] = r->q->room[x];
      r->bytes += r->q->room[x];
    } else {
      come (r, x);
    }
  }
  return leave_reads (r, o, i);
}

static bool is_wanted (const void *context, const remake *w, int32_t x) {
  const run *r = context;
  return w->away[x] && r->here[x] && !is_dead (r, x, w->before);
}

static bool put_entry (run *r) {
  if (!GROW (r->arena, r->out->entries, &r->entries_room, (int64_t)r->out->n_entries + 1, r->err))
    return false;
  recompute *entry = &r->out->entries[r->out->n_entries++];
  if (!remake_put (&r->again, is_wanted, r, entry, r->err))
    return false;
  r->out->replaced += entry->replaces.count;
  return true;
}

/* Makes what the op misses; what cannot be made counts as there, and stays from then on. */
static bool fetch (run *r, int32_t k) {
  remake *w = &r->again;
  remake_next (w, k);
  for (int32_t i = r->touched_of[k]; i < r->touched_of[k + 1]; i++) {
    int32_t x = r->touched[i];
    if (r->here[x] || r->first[x] == k || remake_has (w, x) || remake_request (w, x))
      continue;
    if (w->full)
      return false;
    r->refused = true;
    w->away[x] = 0;
    r->may_go[x] = 0;
    come (r, x);
  }
  int32_t n = w->n_ops;
  if (n == 0)
    return true;
  memcpy (r->sorted, w->ops, (size_t)n * sizeof *r->sorted);
  qsort (r->sorted, (size_t)n, sizeof *r->sorted, order_int32);
  plan_entry (r, r->sorted, n);
  for (int32_t i = 0; i < n; i++)
    if (!run_again (r, r->sorted[i], i))
      return false;
  return put_entry (r) && leave_writes (r, r->sorted, n);
}

/* ---- the step ---- */

static void lock_touched (run *r, int32_t k, int side) {
  for (int32_t i = r->touched_of[k]; i < r->touched_of[k + 1]; i++)
    r->locks[r->touched[i]] += side;
}

static bool run_op (run *r, int32_t k) {
  const op *o = &r->t->ops[k];
  int64_t need = o->workspace_bytes;
  lock_touched (r, k, 1);
  if (!fetch (r, k))
    return false;
  for (int32_t i = r->touched_of[k]; i < r->touched_of[k + 1]; i++)
    need += r->here[r->touched[i]] ? 0 : r->q->room[r->touched[i]];
  if (!make_room (r, need))
    return false;
  r->now_ns += o->ns + o->gap_ns;
  lock_touched (r, k, -1);
  for (int32_t i = r->touched_of[k]; i < r->touched_of[k + 1]; i++) {
    int32_t x = r->touched[i];
    if (!r->here[x])
      come (r, x);
    r->used_ns[x] = r->now_ns;
    r->again.away[x] = 0;
    if (r->last[x] == k && !r->always[x] && !go (r, x))
      return false;
  }
  return true;
}

static bool run_step (run *r) {
  int64_t most_ns = units_scale (r->step_ns, MOST_AGAIN, 1);
  for (int32_t k = 0; k < r->t->n_ops; k++) {
    if (!run_op (r, k))
      return false;
    if (r->out->again_ns > most_ns || (r->q->stop && r->q->stop (r->q->stop_context))) {
      r->out->lacking_bytes += r->out->lacking_bytes == 0;
      return true;
    }
  }
  return true;
}

/* Only what an op of this step made from scratch, and may make once more. */
static bool can_go (const dtr_request *q, int32_t x) {
  const tensor *at = &q->trace->tensors[x];
  if (at->persistent || at->pinned || at->again >= AGAIN_PASSES || q->room[x] == 0 ||
      q->room[x] < q->floor_bytes)
    return false;
  for (int32_t i = q->uses->offset[x]; i < q->uses->offset[x + 1]; i++) {
    const op *o = &q->trace->ops[q->uses->at[i].op];
    if (!list_has (&o->writes, x))
      continue;
    return !list_has (&o->side, x) && (!q->may || q->may[q->uses->at[i].op]);
  }
  return false;
}

static bool list_touched (run *r) {
  const trace *t = r->t;
  const uses *u = r->q->uses;
  if (!ALLOC (r->arena, r->touched_of, (int64_t)t->n_ops + 2, r->err) ||
      !ALLOC (r->arena, r->touched, u->offset[t->n_tensors], r->err))
    return false;
  for (int32_t i = 0; i < u->offset[t->n_tensors]; i++)
    r->touched_of[u->at[i].op + 2]++;
  for (int32_t k = 0; k < t->n_ops; k++)
    r->touched_of[k + 2] += r->touched_of[k + 1];
  for (int32_t x = 0; x < t->n_tensors; x++)
    for (int32_t i = u->offset[x]; i < u->offset[x + 1]; i++)
      r->touched[r->touched_of[u->at[i].op + 1]++] = x;
  return true;
}

static bool start_run (run *r) {
  const trace *t = r->t;
  int32_t n = t->n_tensors,
          **numbers[] = { &r->first, &r->last, &r->locks, &r->at, &r->loose, &r->until, &r->made };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!(*numbers[i] = NEW (r->arena, n, int32_t, r->err)))
      return false;
  if (!ALLOC (r->arena, r->may_go, n, r->err) || !ALLOC (r->arena, r->always, n, r->err) ||
      !ALLOC (r->arena, r->here, n, r->err) || !ALLOC (r->arena, r->used_ns, n, r->err) ||
      !ALLOC (r->arena, r->double_bytes, n, r->err) ||
      !ALLOC (r->arena, r->sorted, t->n_ops, r->err))
    return false;
  for (int32_t x = 0; x < n; x++) {
    r->first[x] = uses_first (r->q->uses, x);
    r->last[x] = uses_last (r->q->uses, x);
    r->may_go[x] = can_go (r->q, x);
    r->always[x] = t->tensors[x].persistent || uses_version (r->q->uses, x, t->n_ops) == 0;
  }
  return list_touched (r);
}

/* Nothing has run yet. */
static bool restart (run *r) {
  const trace *t = r->t;
  remake_rule rule = {
    .trace = t, .uses = r->q->uses, .keeps = r->q->keeps, .most_ops = t->n_ops + 1
  };
  *r->out = (dtr_answer){ 0 };
  r->entries_room = r->now_ns = r->bytes = 0;
  r->n_loose = 0;
  r->refused = false;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    r->here[x] = t->tensors[x].persistent;
    r->bytes += r->here[x] ? r->q->room[x] : 0;
    r->locks[x] = r->made[x] = 0;
    r->used_ns[x] = r->double_bytes[x] = 0;
  }
  return dtr_costs_of (t, r->q->uses, r->q->cost, r->arena, &r->costs, r->err) &&
         remake_begin (&r->again, &rule, r->arena, r->err);
}

bool dtr_run (const dtr_request *q, arena *a, dtr_answer *out, error *err) {
  assert (q->trace && q->uses && q->room && out);
  run r = { .q = q, .t = q->trace, .arena = a, .err = err, .out = out };
  r.step_ns = trace_total_ns (q->trace);
  if (!start_run (&r))
    return false;
  for (int i = 0; i < MOST_RUNS; i++) {
    if (!restart (&r) || !run_step (&r))
      return false;
    if (!r.refused)
      return true;
  }
  return true;
}
