/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each copy runs between the end of one op and the start of another: a copy out before the first op
   that has no room for its bytes, a copy in behind the last one.  An engine does one at a time, so
   where more copies lie between two ops than time passes there, compute stalls for the rest, and
   stalls between different ops add up. */
#include "solver/attempt/least.h"

#include "base/order.h"

/* From the end of op `from` to the start of the op that is `length` later, round the step. */
typedef struct job {
  int32_t from, length;
  int64_t ns;
} job;

typedef struct counting {
  const least_request *q;
  int32_t n;
  job *outs, *ins, *both; /* per mover; both: its copies one after the other */
  int64_t *stall_ns;      /* of row `from`, column length - 1 */
} counting;

static int32_t round_step (const counting *c, int32_t op) {
  return (op % c->n + c->n) % c->n;
}

static bool must_be_gone (const counting *c, const mover *m, int32_t op) {
  return c->q->level[round_step (c, op)] + m->room_bytes > c->q->room_bytes;
}

static void make_jobs (counting *c, int32_t i) {
  const mover *m = &c->q->movers[i];
  const gap *g = &c->q->gaps->at[m->gap];
  int32_t all = round_step (c, g->before - g->after - 1) + 1, gone = 1, back = all - 1;
  while (gone < all && !must_be_gone (c, m, g->after + gone))
    gone++;
  while (back > 0 && !must_be_gone (c, m, g->after + back))
    back--;
  c->outs[i] = (job){ g->after, gone, m->out_ns };
  c->ins[i] = (job){ round_step (c, g->after + back), all - back, m->in_ns };
  c->both[i] = (job){ g->after, all, m->out_ns + m->in_ns };
}

/* The time of the jobs that lie in `length` ops behind `from`; or that of the longest of them. */
static int64_t work_in (const counting *c, const job *jobs, int32_t from, int32_t length,
                        bool one) {
  int64_t ns = 0;
  for (int32_t i = 0; i < c->q->n_movers; i++)
    if (round_step (c, jobs[i].from - from) + jobs[i].length <= length)
      ns = one ? max_of (ns, jobs[i].ns) : ns + jobs[i].ns;
  return ns;
}

static void find_stalls (counting *c) {
  const op *ops = c->q->gaps->units->trace->ops;
  for (int32_t from = 0; from < c->n; from++) {
    int64_t passes_ns = 0; /* without stalls */
    for (int32_t length = 1; length <= c->n; length++) {
      const op *o = &ops[round_step (c, from + length)];
      int64_t work_ns = max_of (work_in (c, c->outs, from, length, false),
                                work_in (c, c->ins, from, length, false));
      work_ns = max_of (work_ns, work_in (c, c->both, from, length, true));
      passes_ns += o->gap_ns;
      c->stall_ns[from * c->n + length - 1] = max_of (0, work_ns - passes_ns);
      passes_ns += o->ns;
    }
  }
}

/* The most that stalls come to, none of which lies across the end of op `start`. */
static int64_t most_from (const counting *c, int32_t start, int64_t *best) {
  for (int32_t end = 1; end <= c->n; end++) {
    best[end] = best[end - 1];
    for (int32_t begin = 0; begin < end; begin++)
      best[end] = max_of (best[end],
                          best[begin] +
                              c->stall_ns[round_step (c, start + begin) * c->n + end - begin - 1]);
  }
  return best[c->n];
}

static int64_t count (counting *c, int64_t *best) {
  const least_request *q = c->q;
  int64_t out_ns = 0, in_ns = 0, stall_ns = 0;
  for (int32_t k = 0; k < c->n; k++)
    if (q->level[k] > q->room_bytes)
      return INT64_MAX;
  for (int32_t i = 0; i < q->n_movers; i++) {
    out_ns += q->movers[i].out_ns;
    in_ns += q->movers[i].in_ns;
    make_jobs (c, i);
  }
  find_stalls (c);
  for (int32_t start = 0; start < c->n; start++)
    stall_ns = max_of (stall_ns, most_from (c, start, best));
  return max_of (max_of (out_ns, in_ns), q->compute_ns + stall_ns);
}

bool least_step_ns (const least_request *q, arena *scratch, int64_t *ns, error *err) {
  arena_mark mark = arena_here (scratch);
  counting c = { .q = q, .n = q->gaps->n_ops };
  int64_t *best = NEW (scratch, (int64_t)c.n + 1, int64_t, err);
  c.outs = NEW (scratch, q->n_movers, job, err);
  c.ins = NEW (scratch, q->n_movers, job, err);
  c.both = NEW (scratch, q->n_movers, job, err);
  c.stall_ns = NEW (scratch, (int64_t)c.n * c.n, int64_t, err);
  bool ok = best && c.outs && c.ins && c.both && c.stall_ns;
  if (ok)
    *ns = count (&c, best);
  arena_back (scratch, mark);
  return ok;
}
