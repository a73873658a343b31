/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forward run: ops, copies out and copies in with a count of granules, for a few steps, of
   which the last whole one is written down.  It decides orders, and nothing of it is shown to
   anyone.

   A copy in starts as soon as memory surely allows: when it fits now, and when at every op up to
   the one it is for, what must be there, what came in early and this copy fit together.  That, and
   copies in one after the other in order of need, is why it never hangs: an op waits only for
   copies out, and those always go on.  In another order it may. */
#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/place/stays_inner.h"

#define NEVER_NS INT64_MAX
#define LAST_NS ((int64_t)1 << 57) /* the simulator, which gives up at 2^62, runs 32 steps */
#define NO_NEED (INT64_MIN / 4)
#define SURELY 1.000001 /* more than all roundings of a product and a quotient */

static moment now (forward *f) {
  return (moment){ f->now_ns, f->order++ };
}

static void begins (forward *f, int32_t timed_stay, int32_t step) {
  moment m = now (f);
  f->held += f->l->at[timed_stay].granules;
  if (step == f->written) {
    f->l->at[timed_stay].from = m;
    f->left--;
  }
}

static void ends (forward *f, int32_t timed_stay, int32_t step) {
  moment m = now (f);
  f->held -= f->l->at[timed_stay].granules;
  if (step - f->l->at[timed_stay].end_wraps == f->written) {
    f->l->at[timed_stay].to = m;
    f->left--;
  }
}

/* ---- ops ---- */

/* Early copies in are held at ops ahead, and no longer at those that have passed.  Their sum is the
   same for many of these, one after the other, so they are told together. */
static void pass_ops (forward *f) {
  int32_t end = f->op + f->running;
  if (f->early > 0)
    peaks_add (&f->ahead, f->passed, end, -f->early);
  f->passed = end;
}

static void births (forward *f, int32_t k) {
  const row_list *b = &f->l->births;
  int32_t first = b->offset[k], end = b->offset[k + 1];
  if (f->op_step == f->written)
    for (int32_t i = first; i < end; i++)
      begins (f, b->at[i], f->op_step);
  else {
    f->order += end - first;
    f->held += f->l->born[k];
  }
}

static void deaths (forward *f, int32_t k) {
  const row_list *e = &f->l->ends;
  int32_t first = e->offset[k], end = e->offset[k + 1];
  if (f->op_step >= f->written)
    for (int32_t i = first; i < end; i++)
      ends (f, e->at[i], f->op_step);
  else {
    f->order += end - first;
    f->held -= f->l->ended[k];
  }
}

static bool op_may_start (const forward *f) {
  int64_t outs = (int64_t)f->op_step * f->l->n_outs;
  /* no further than is looked at: a trace of no length would run on for ever in one instant */
  return !f->running && f->op_step <= f->written + 1 && f->now_ns >= f->gap_end_ns &&
         f->ins_done[f->op_step & 1][f->op] == f->ins_due[f->op] &&
         f->outs_done >= outs + f->op_outs[f->op] && f->held + f->l->born[f->op] <= f->granules;
}

static void op_start (forward *f) {
  stays *l = f->l;
  int32_t k = f->op;
  if (k == 0 && f->op_step < WRITTEN_STEP + 2)
    f->step_start[f->op_step] = now (f);
  if (f->op_step == f->written) {
    l->start_ns[k] = f->now_ns - f->step_start[f->written].at_ns;
    l->start_order[k] = f->order;
  }
  births (f, k);
  /* Copies in for this op are part of its level. */
  if (f->due[k]) {
    pass_ops (f);
    f->early -= f->due[k];
    f->ins_done[f->op_step & 1][k] = 0;
  }
  f->running = true;
  f->op_end_ns = f->now_ns + l->trace->ops[k].ns;
}

static void op_end (forward *f) {
  stays *l = f->l;
  int32_t k = f->op;
  if (f->op_step == f->written)
    l->end_order[k] = f->order;
  deaths (f, k);
  f->running = false;
  f->ops_done++;
  if (++f->op == l->trace->n_ops) {
    pass_ops (f);
    f->op = f->passed = 0;
    f->op_step++;
  }
  f->gap_end_ns = f->now_ns + l->trace->ops[f->op].gap_ns;
  if (f->chooses)
    for (int32_t i = f->counted.offset[f->op]; i < f->counted.offset[f->op + 1]; i++)
      stays_meet (f, f->counted.at[i]);
}

/* The next op that has not started, counted over all steps. */
static int64_t op_ahead (const forward *f) {
  return f->ops_done + f->running;
}

/* ---- copies ---- */

/* When the op that runs ends, or the pause before the next one. */
static int64_t op_next (const forward *f) {
  return f->running ? f->op_end_ns : f->gap_end_ns > f->now_ns ? f->gap_end_ns : NEVER_NS;
}

/* The end is computed only where it may come before the op's: it changes with every event, and most
   copies take longer than an op. */
static int64_t engine_end (const forward *f, const engine *e, int64_t op_ns) {
  double until_ns = (double)(op_ns - f->now_ns) + 1;
  if (op_ns != NEVER_NS && e->left > e->rate * until_ns * SURELY)
    return NEVER_NS;
  double ns = e->left > 0 ? e->left / e->rate : 0;
  if (ns > (double)LAST_NS)
    return f->now_ns + LAST_NS + 1;
  return f->now_ns + (int64_t)ns + ((double)(int64_t)ns < ns);
}

static void engine_rates (forward *f) {
  engine *engines[] = { &f->out_engine, &f->in_engine };
  bool carries[2];
  for (int i = 0; i < 2; i++) {
    engine *e = engines[i];
    carries[i] = e->move >= 0 && e->latency_ns <= f->now_ns;
    if (!carries[i])
      continue;
    e->left -= e->rate * (double)(f->now_ns - e->from_ns);
    e->from_ns = f->now_ns;
  }
  bool both = carries[0] && carries[1];
  f->out_engine.rate = f->out_rates[both];
  f->in_engine.rate = f->in_rates[both];
  int64_t op_ns = op_next (f);
  for (int i = 0; i < 2; i++)
    if (carries[i])
      engines[i]->end_ns = engine_end (f, engines[i], op_ns);
}

static void engine_start (forward *f, engine *e, int32_t move) {
  *e = (engine){ .move = move,
                 .latency_ns = f->now_ns + f->l->device->link.copy_ns,
                 .left = (double)f->l->bytes[move],
                 .end_ns = NEVER_NS };
  e->from_ns = e->latency_ns;
}

static bool out_may_start (const forward *f) {
  if (f->out_engine.move >= 0 || f->l->n_outs == 0)
    return false;
  const wish *w = &f->l->moves[f->l->out_order[f->out]];
  return f->ops_done >= (int64_t)f->out_step * f->l->trace->n_ops + w->out_after + 1;
}

static void out_end (forward *f) {
  int32_t move = f->out_engine.move;
  ends (f, f->l->out_stay[move], f->out_step);
  f->out_engine.move = -1;
  f->outs_done++;
  if (f->chooses)
    stays_meet (f, move);
  if (++f->out == f->l->n_outs) {
    f->out = 0;
    f->out_step++;
  }
}

/* [first, end) of ops counted over all steps, as at most two ranges of one step. */
static int64_t most_ahead (const forward *f, int64_t first, int64_t end) {
  int32_t n = f->l->trace->n_ops, a = (int32_t)(first % n);
  int64_t b = a + (end - first);
  if (b <= n)
    return peaks_most (&f->ahead, a, (int32_t)b);
  int64_t x = peaks_most (&f->ahead, a, n), y = peaks_most (&f->ahead, 0, (int32_t)(b - n));
  return x > y ? x : y;
}

static void add_ahead (forward *f, int64_t first, int64_t end, int64_t granules) {
  int32_t n = f->l->trace->n_ops, a = (int32_t)(first % n);
  int64_t b = a + (end - first);
  peaks_add (&f->ahead, a, b <= n ? (int32_t)b : n, granules);
  if (b > n)
    peaks_add (&f->ahead, 0, (int32_t)(b - n), granules);
}

static bool has_memory (forward *f, int32_t move) {
  int64_t granules = f->l->at[f->l->in_stay[move]].granules;
  int64_t due = (int64_t)f->in_step * f->l->trace->n_ops + f->l->moves[move].in_before;
  if (f->held + granules > f->granules)
    return false;
  if (due > ((int64_t)f->op_step + 1) * f->l->trace->n_ops + f->passed)
    pass_ops (f); /* as far as the next step is looked at */
  return most_ahead (f, op_ahead (f), due) + granules <= f->granules;
}

/* The copy in that starts now, or -1. */
static int32_t in_choice (forward *f) {
  const stays *l = f->l;
  if (f->in_engine.move >= 0 || l->n_moves == 0 || (f->chooses && f->n_ready == 0))
    return -1;
  int32_t move = l->in_order[f->chooses ? f->ready[0] : f->in];
  return (f->chooses || stays_is_released (f, move)) && has_memory (f, move) ? move : -1;
}

static void in_start (forward *f, int32_t move) {
  stays *l = f->l;
  int32_t granules = l->at[l->in_stay[move]].granules;
  begins (f, l->in_stay[move], f->in_step);
  pass_ops (f);
  f->early += granules;
  add_ahead (f, op_ahead (f), (int64_t)f->in_step * l->trace->n_ops + l->moves[move].in_before,
             granules);
  engine_start (f, &f->in_engine, move);
  f->coming_step = f->in_step;
  if (f->chooses) {
    if (f->in_step == f->written)
      f->chosen[f->n_chosen++] = move;
    stays_ready_take (f);
  }
  if (++f->in == l->n_moves) {
    f->in = 0;
    f->in_step++;
    if (f->chooses)
      stays_meet_all (f);
  }
}

static void in_end (forward *f) {
  f->ins_done[f->coming_step & 1][f->l->moves[f->in_engine.move].in_before]++;
  f->in_engine.move = -1;
}

/* ---- time ---- */

static bool has_ended (const forward *f, const engine *e) {
  return e->move >= 0 && e->latency_ns <= f->now_ns && e->end_ns <= f->now_ns;
}

static bool op_has_ended (const forward *f) {
  return f->running && f->op_end_ns <= f->now_ns;
}

/* Each question is asked behind what may change its answer, so once is enough, but for ops of no
   length. */
static void instant (forward *f) {
  do {
    if (op_has_ended (f))
      op_end (f);
    if (has_ended (f, &f->out_engine))
      out_end (f);
    if (has_ended (f, &f->in_engine))
      in_end (f);
    if (op_may_start (f))
      op_start (f);
    if (out_may_start (f))
      engine_start (f, &f->out_engine, f->l->out_order[f->out]);
    int32_t move = in_choice (f);
    if (move >= 0)
      in_start (f, move);
  } while (op_has_ended (f));
  engine_rates (f);
}

static int64_t least (int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t engine_next (const forward *f, const engine *e) {
  return e->move < 0 ? NEVER_NS : e->latency_ns > f->now_ns ? e->latency_ns : e->end_ns;
}

static int64_t next_event (const forward *f) {
  int64_t next = least (engine_next (f, &f->out_engine), engine_next (f, &f->in_engine));
  return least (next, op_next (f));
}

static bool prepare (forward *f, arena *a, error *err) {
  const stays *l = f->l;
  int32_t n = l->trace->n_ops;
  if (!ALLOC (a, f->ins_due, n, err) || !ALLOC (a, f->ins_done[0], n, err) ||
      !ALLOC (a, f->ins_done[1], n, err) || !ALLOC (a, f->due, n, err) ||
      !ALLOC (a, f->op_outs, n, err) || !peaks_build (&f->ahead, l->level, n, a, err))
    return false;
  if (f->chooses && !stays_choose_begin (f, a, err))
    return false;
  for (int32_t k = 0; k < n; k++)
    f->op_outs[k] = NO_NEED;
  for (int32_t i = 0; i < l->n_moves; i++) {
    int32_t op = l->moves[l->in_order[i]].in_before;
    f->ins_due[op]++;
    f->due[op] += l->at[l->in_stay[l->in_order[i]]].granules;
  }
  for (int32_t i = 0; i < l->n_outs; i++) {
    const wish *w = &l->moves[l->out_order[i]];
    if (!w->wait_out)
      continue;
    bool last = w->out_after + 1 == n;
    f->op_outs[last ? 0 : w->out_after + 1] = i + 1 - (last ? l->n_outs : 0);
  }
  for (int32_t i = 0; i < l->count; i++) {
    const timed_stay *x = &l->at[i];
    if (x->always || x->end_wraps)
      f->held += x->granules;
    if (!x->always)
      f->left += 2;
  }
  return true;
}

static void set_rates (forward *f) {
  link_rates r = device_rates (&f->l->device->link, f->l->device->share_ppm);
  f->out_rates[false] = (double)r.out_alone * 1e-9;
  f->out_rates[true] = (double)r.out_both * 1e-9;
  f->in_rates[false] = (double)r.in_alone * 1e-9;
  f->in_rates[true] = (double)r.in_both * 1e-9;
}

static bool run (stays *l, int64_t granules, bool chooses, arena *scratch, moment *period,
                 moment *start, error *err) {
  arena_mark mark = arena_here (scratch);
  forward f = { .l = l,
                .granules = granules,
                .written = l->trace->n_ops > LARGE ? WRITTEN_STEP_LARGE : WRITTEN_STEP,
                .gap_end_ns = l->trace->ops[0].gap_ns };
  f.out_engine.move = f.in_engine.move = -1;
  set_rates (&f);
  f.chooses = chooses;
  bool ok = prepare (&f, scratch, err);
  while (ok) {
    instant (&f);
    if (f.left == 0 && op_ahead (&f) > (int64_t)(f.written + 1) * l->trace->n_ops)
      break;
    int64_t next_ns = next_event (&f);
    if (next_ns == NEVER_NS)
      ok = error_set (err, l->by_need && !chooses ? ERR_internal : ERR_infeasible,
                      "the forward run of the scheduler hangs at op %d", f.op);
    else if (next_ns > LAST_NS)
      ok = error_set (err, ERR_infeasible, "the step takes longer than is of use");
    /* the same instant once more: where the rates changed, what was left of a copy may be nothing
     */
    assert (!ok || next_ns >= f.now_ns);
    f.now_ns = next_ns;
  }
  const moment *s = &f.step_start[f.written];
  *start = s[0];
  *period = (moment){ s[1].at_ns - s[0].at_ns, s[1].order - s[0].order };
  if (ok && chooses) {
    assert (f.n_chosen == l->n_moves);
    memcpy (l->in_order, f.chosen, (size_t)l->n_moves * sizeof *l->in_order);
    l->by_need = false;
  }
  arena_back (scratch, mark);
  return ok;
}

bool stays_run (stays *l, int64_t granules, arena *scratch, moment *period, moment *start,
                error *err) {
  assert (l->at && period && start && granules >= 0);
  return run (l, granules, false, scratch, period, start, err);
}

bool stays_order (stays *l, int64_t granules, arena *scratch, error *err) {
  assert (l->at && granules >= 0);
  moment period, start;
  return run (l, granules, true, scratch, &period, &start, err);
}
