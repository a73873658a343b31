/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step of some movers takes at least.  Each copy has to run between the end of one op and
   the start of another: a copy out before the first op that has no room for its bytes, a copy in
   after the last one.  An engine does one at a time, so where more copies must lie between two ops
   than time passes there, compute stalls for the rest; and stalls between different ops add up. */
#include "base/order.h"
#include "tests/best_inner.h"

/* From the end of op `from` to the start of the op that is `length` later, round the step. */
typedef struct job {
  int32_t from, length;
  int64_t ns;
} job;

static int32_t round_step (const searching *s, int32_t op) {
  return (op % s->n_ops + s->n_ops) % s->n_ops;
}

static int32_t length_of (const searching *s, const mover *x) {
  return round_step (s, x->before - x->after - 1) + 1;
}

static bool has_no_room (const searching *s, const mover *x, int32_t op) {
  return s->load[round_step (s, op)] + x->granules > s->budget;
}

void best_windows (searching *s) {
  for (int32_t m = 0; m < s->n_movers; m++) {
    mover *x = &s->movers[m];
    int32_t all = length_of (s, x);
    x->gone_from = 1;
    x->gone_to = all - 1;
    while (x->gone_from < all && !has_no_room (s, x, x->after + x->gone_from))
      x->gone_from++;
    while (x->gone_to > 0 && !has_no_room (s, x, x->after + x->gone_to))
      x->gone_to--;
  }
}

static int64_t inside (const searching *s, const job *jobs, int32_t from, int32_t length) {
  int64_t ns = 0;
  for (int32_t m = 0; m < s->n_movers; m++)
    if (round_step (s, jobs[m].from - from) + jobs[m].length <= length)
      ns += jobs[m].ns;
  return ns;
}

/* The longest single one. */
static int64_t longest (const searching *s, const job *jobs, int32_t from, int32_t length) {
  int64_t ns = 0;
  for (int32_t m = 0; m < s->n_movers; m++)
    if (round_step (s, jobs[m].from - from) + jobs[m].length <= length && jobs[m].ns > ns)
      ns = jobs[m].ns;
  return ns;
}

/* Stalls behind op `from` up to the op that is so far away. */
typedef int64_t stalls[BEST_OPS][BEST_OPS + 1];

/* A queue: who is before another may start no later and must end no later. False: it cannot. */
static bool in_order (const int32_t *order, int32_t count, int32_t *from, int32_t *to) {
  for (int32_t i = 1; i < count; i++)
    from[order[i]] = (int32_t)max_of (from[order[i]], from[order[i - 1]]);
  for (int32_t i = count - 1; i > 0; i--)
    if (to[order[i - 1]] > to[order[i]])
      to[order[i - 1]] = to[order[i]];
  for (int32_t i = 0; i < count; i++)
    if (to[order[i]] <= from[order[i]])
      return false;
  return true;
}

static bool make_jobs (const searching *s, int32_t n_outs, int32_t n_ins, job *out, job *in,
                       job *whole) {
  int32_t out_from[BEST_MOVES], out_to[BEST_MOVES], in_from[BEST_MOVES], in_to[BEST_MOVES];
  for (int32_t m = 0; m < s->n_movers; m++) {
    const mover *x = &s->movers[m];
    out_from[m] = x->after;
    out_to[m] = x->after + x->gone_from;
    in_from[m] = x->after - (x->wraps ? s->n_ops : 0) + x->gone_to;
    in_to[m] = x->before;
  }
  for (int32_t i = 0; i < n_ins; i++) /* not before the op before its place has begun */
    in_from[s->in_order[i]] = (int32_t)max_of (in_from[s->in_order[i]], s->place[i] - 2);
  if (!in_order (s->out_order, n_outs, out_from, out_to) ||
      !in_order (s->in_order, n_ins, in_from, in_to))
    return false;
  for (int32_t m = 0; m < s->n_movers; m++) {
    const mover *x = &s->movers[m];
    int64_t out_ns = x->clean ? 0 : x->out_ns;
    out[m] = (job){ round_step (s, out_from[m]), out_to[m] - out_from[m], out_ns };
    in[m] = (job){ round_step (s, in_from[m]), in_to[m] - in_from[m], x->in_ns };
    whole[m] = (job){ x->after, length_of (s, x), out_ns + x->in_ns };
  }
  return true;
}

static void find_stalls (const searching *s, const job *out, const job *in, const job *whole,
                         stalls w) {
  for (int32_t from = 0; from < s->n_ops; from++) {
    int64_t passes_ns = 0; /* without stalls */
    for (int32_t length = 1; length <= s->n_ops; length++) {
      const op *o = &s->t->ops[round_step (s, from + length)];
      int64_t work_ns = max_of (inside (s, out, from, length), inside (s, in, from, length));
      work_ns = max_of (work_ns, longest (s, whole, from, length));
      passes_ns += o->gap_ns;
      w[from][length] = max_of (0, work_ns - passes_ns);
      passes_ns += o->ns;
    }
  }
}

/* The most that stalls between different ops come to, where none of these lies across the start of
   op `start`'s. */
static int64_t most_from (const searching *s, stalls w, int32_t start) {
  int64_t best[BEST_OPS + 1] = { 0 };
  for (int32_t end = 1; end <= s->n_ops; end++) {
    best[end] = best[end - 1];
    for (int32_t begin = 0; begin < end; begin++)
      best[end] =
          max_of (best[end], best[begin] + w[round_step (s, start - 1 + begin)][end - begin]);
  }
  return best[s->n_ops];
}

int64_t best_least_ns (const searching *s, int32_t n_outs, int32_t n_ins) {
  stalls w;
  job out[BEST_MOVES], in[BEST_MOVES], whole[BEST_MOVES];
  int64_t out_ns = 0, in_ns = 0, stall_ns = 0;
  for (int32_t m = 0; m < s->n_movers; m++) {
    out_ns += s->movers[m].clean ? 0 : s->movers[m].out_ns;
    in_ns += s->movers[m].in_ns;
  }
  int64_t least_ns = max_of (s->compute_ns, max_of (out_ns, in_ns));
  if (least_ns >= s->out->step_ns)
    return least_ns;
  if (!make_jobs (s, n_outs, n_ins, out, in, whole))
    return INT64_MAX;
  find_stalls (s, out, in, whole, w);
  for (int32_t start = 0; start < s->n_ops; start++)
    stall_ns = max_of (stall_ns, most_from (s, w, start));
  return max_of (least_ns, s->compute_ns + stall_ns);
}
