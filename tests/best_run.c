/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/best_inner.h"

typedef struct release {
  int64_t at_ns;
  int32_t granules;
} release;

typedef struct runner {
  release waiting[BEST_STAYS * 2];
  int32_t n_waiting, held, out_step, out;
  int64_t now_ns, out_free_ns, in_free_ns;
} runner;

static void release_later (runner *r, int64_t at_ns, int32_t granules) {
  if (granules)
    r->waiting[r->n_waiting++] = (release){ at_ns, granules };
}

/* Not before `at_ns`, and when so many granules are free. False: never. */
static bool acquire (const searching *s, runner *r, int64_t at_ns, int32_t granules) {
  if (r->now_ns < at_ns)
    r->now_ns = at_ns;
  for (;;) {
    int32_t next = -1;
    for (int32_t i = 0; i < r->n_waiting; i++)
      if (next < 0 || r->waiting[i].at_ns < r->waiting[next].at_ns)
        next = i;
    bool fits = r->held + granules <= s->budget;
    if (fits && (next < 0 || r->waiting[next].at_ns > r->now_ns))
      break;
    if (next < 0)
      return false;
    if (!fits && r->waiting[next].at_ns > r->now_ns)
      r->now_ns = r->waiting[next].at_ns;
    r->held -= r->waiting[next].granules;
    r->waiting[next] = r->waiting[--r->n_waiting];
  }
  r->held += granules;
  return true;
}

static bool run_in (searching *s, runner *r, int32_t step, int32_t m, int32_t steps) {
  const mover *x = &s->movers[m];
  int32_t own = step - x->wraps;
  int64_t at_ns = r->in_free_ns, ready_ns = 0;
  if (own >= 0)
    ready_ns = x->clean ? s->seen->op_end[own][x->after] : s->seen->out_end[own][m];
  if (ready_ns < 0 || own >= steps)
    return false;
  at_ns = ready_ns > at_ns ? ready_ns : at_ns;
  if (!acquire (s, r, at_ns, x->granules))
    return false;
  s->seen->in_start[step][m] = r->now_ns;
  s->seen->in_end[step][m] = r->in_free_ns = r->now_ns + x->in_ns;
  return true;
}

/* Copies out whose op has its time. */
static void run_outs (searching *s, runner *r, int32_t steps) {
  while (s->n_outs && r->out_step < steps) {
    int32_t m = s->out_order[r->out];
    int64_t ready_ns = s->seen->op_end[r->out_step][s->movers[m].after];
    if (ready_ns < 0)
      return;
    int64_t start_ns = ready_ns > r->out_free_ns ? ready_ns : r->out_free_ns;
    s->seen->out_end[r->out_step][m] = r->out_free_ns = start_ns + s->movers[m].out_ns;
    release_later (r, r->out_free_ns, s->movers[m].granules);
    if (++r->out == s->n_outs) {
      r->out = 0;
      r->out_step++;
    }
  }
}

static bool run_op (searching *s, runner *r, int32_t step, int32_t k, int32_t steps) {
  const op *o = &s->t->ops[k];
  times *seen = s->seen;
  int64_t at_ns = k ? seen->op_end[step][k - 1] : step ? seen->op_end[step - 1][s->n_ops - 1] : 0;
  at_ns += o->gap_ns;
  for (int32_t m = 0; m < s->n_movers; m++)
    if (s->movers[m].before == k && seen->in_end[step][m] > at_ns)
      at_ns = seen->in_end[step][m];
  if (!acquire (s, r, at_ns, s->begins[k]))
    return false;
  seen->op_start[step][k] = r->now_ns;
  seen->op_end[step][k] = r->now_ns + o->ns;
  release_later (r, r->now_ns + o->ns, s->ends[k]);
  run_outs (s, r, steps);
  return true;
}

int64_t best_run (searching *s, int32_t steps, int64_t limit_ns) {
  runner r = { .held = s->at_first };
  int32_t n = s->n_ops, in_step = 0, in = 0, half = steps / 2, last = steps - 1;
  for (int32_t i = 0; i < steps; i++) {
    for (int32_t k = 0; k < n; k++)
      s->seen->op_end[i][k] = -1;
    for (int32_t m = 0; m < s->n_movers; m++)
      s->seen->out_end[i][m] = -1;
  }
  s->out->tried++;
  for (int32_t at = 0; at < steps * n; at++) {
    while (s->n_movers && in_step < steps && in_step * n + s->place[in] <= at) {
      if (!run_in (s, &r, in_step, s->in_order[in], steps))
        return INT64_MAX;
      if (++in == s->n_movers) {
        in = 0;
        in_step++;
      }
    }
    if (!run_op (s, &r, at / n, at % n, steps))
      return INT64_MAX;
    if (at > half * n && at <= last * n &&
        s->seen->op_start[at / n][at % n] - s->seen->op_start[half][0] >= limit_ns * (last - half))
      return INT64_MAX;
  }
  int64_t ns = s->seen->op_start[last][0] - s->seen->op_start[half][0];
  ns = (ns + last - half - 1) / (last - half);
  return ns > s->least_ns ? ns : s->least_ns;
}
