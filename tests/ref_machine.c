/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ref_machine.h"

#define SECOND ((__int128)1000000000)
#define LATEST ((__int128)1 << 62)

/* ---- what is asked of the record ---- */

static ref_step *step_new (const ref_worker *w, arena *a, error *err) {
  ref_step *s = NEW (a, 1, ref_step, err);
  int64_t ops = w->t->n_ops, moves = w->p->n_moves + 1, all = 2 * ops + 4 * moves;
  int64_t *times = NEW (a, all, int64_t, err);
  if (!s || !times)
    return NULL;
  for (int64_t i = 0; i < all; i++)
    times[i] = NOT_YET;
  *s = (ref_step){ times,
                   times + ops,
                   times + 2 * ops,
                   times + 2 * ops + moves,
                   times + 2 * ops + 2 * moves,
                   times + 2 * ops + 3 * moves };
  return s;
}

static bool have_step (ref_machine *m, ref_worker *w, int64_t step) {
  ref_run *r = w->run;
  while (r->n_steps <= step) {
    r->steps = arena_grow (m->a, r->steps, &w->room, r->n_steps + 1, sizeof (ref_step *), m->err);
    if (!r->steps || !(r->steps[r->n_steps] = step_new (w, m->a, m->err)))
      return false;
    r->n_steps++;
  }
  return true;
}

/* When the n-th op from the start of step 0 ended; what lies before ended at 0. */
static int64_t op_ended (const ref_worker *w, int64_t n) {
  if (n < 0)
    return 0;
  int64_t step = n / w->t->n_ops;
  return step < w->run->n_steps ? w->run->steps[step]->op_end[n % w->t->n_ops] : NOT_YET;
}

static int64_t copy_ended (const ref_worker *w, ref_direction d, int64_t step, int32_t move) {
  if (step < 0)
    return 0;
  if (step >= w->run->n_steps)
    return NOT_YET;
  const ref_step *s = w->run->steps[step];
  return d == OUT ? s->out_end[move] : s->in_end[move];
}

static int32_t queue_length (const ref_worker *w, ref_direction d) {
  return d == OUT ? w->p->n_outs : w->p->n_ins;
}

static int32_t queue_move (const ref_worker *w, ref_direction d, int64_t n) {
  return d == OUT ? w->p->out_order[n % w->p->n_outs] : w->p->in_order[n % w->p->n_ins];
}

/* The same for the n-th copy of a queue. */
static int64_t nth_copy_ended (const ref_worker *w, ref_direction d, int64_t n) {
  if (n < 0)
    return 0;
  return copy_ended (w, d, n / queue_length (w, d), queue_move (w, d, n));
}

/* The later of two moments, if both have come. */
static int64_t both_of (int64_t x, int64_t y) {
  return x == NOT_YET || y == NOT_YET ? NOT_YET : x > y ? x : y;
}

/* ---- when an item could start: NOT_YET where that is not known yet ---- */

static int64_t op_ready (const ref_worker *w) {
  int64_t n = w->next_op, step = n / w->t->n_ops;
  int32_t k = (int32_t)(n % w->t->n_ops);
  int64_t at = op_ended (w, n - 1);
  if (at != NOT_YET)
    at += w->t->ops[k].gap_ns;
  for (int32_t i = 0; i < w->p->n_moves; i++)
    if (w->p->moves[i].in_before == k)
      at = both_of (at, copy_ended (w, IN, step, i));
  for (int32_t i = 0; i < w->p->n_op_waits; i++)
    if (w->p->op_waits[i].op == k && w->p->op_waits[i].outs != NO_WAIT)
      at = both_of (at, nth_copy_ended (w, OUT, step * w->p->n_outs + w->p->op_waits[i].outs - 1));
  return at;
}

static int64_t copy_ready (const ref_worker *w, ref_direction d) {
  if (queue_length (w, d) == 0)
    return NOT_YET;
  int64_t n = w->next_copy[d], step = n / queue_length (w, d), ops = w->t->n_ops;
  int32_t i = queue_move (w, d, n);
  const move *v = &w->p->moves[i];
  int64_t at = nth_copy_ended (w, d, n - 1);
  if (d == OUT)
    return both_of (at, op_ended (w, step * ops + v->out_after));
  int64_t left_in = v->in_before <= v->out_after ? step - 1 : step;
  at = both_of (at, v->clean ? op_ended (w, left_in * ops + v->out_after)
                             : copy_ended (w, OUT, left_in, i));
  if (v->in_ops != NO_WAIT)
    at = both_of (at, op_ended (w, step * ops + v->in_ops - 1));
  if (v->in_outs != NO_WAIT)
    at = both_of (at, nth_copy_ended (w, OUT, step * w->p->n_outs + v->in_outs - 1));
  return at;
}

/* ---- what happens at one instant ---- */

static bool carries (const ref_machine *m, ref_direction d) {
  return m->engines[d].busy && m->now >= m->engines[d].carries_from;
}

static int64_t copy_rate (const ref_machine *m, ref_direction d) {
  return carries (m, OUT) && carries (m, IN) ? m->rate_both[d] : m->rate_alone[d];
}

static int64_t op_rate (const ref_machine *m) {
  int64_t n = 0;
  for (int32_t j = 0; j < m->n_workers; j++)
    n += m->workers[j].op_runs;
  return n ? (int64_t)SECOND / n : 0;
}

static void end_things (ref_machine *m) {
  for (int d = OUT; d <= IN; d++) {
    ref_engine *e = &m->engines[d];
    if (!carries (m, d) || e->left > 0)
      continue;
    ref_step *s = m->workers[e->job].run->steps[e->step];
    (d == OUT ? s->out_end : s->in_end)[e->move] = m->now;
    e->busy = false;
  }
  for (int32_t j = 0; j < m->n_workers; j++) {
    ref_worker *w = &m->workers[j];
    if (!w->op_runs || w->op_left > 0)
      continue;
    int64_t n = w->next_op - 1;
    w->run->steps[n / w->t->n_ops]->op_end[n % w->t->n_ops] = m->now;
    w->op_runs = false;
  }
}

/* The job whose next op starts now, or -1. */
static int32_t op_choice (const ref_machine *m) {
  int32_t best = -1;
  int64_t best_at = 0;
  for (int32_t j = 0; j < m->n_workers; j++) {
    if (m->workers[j].op_runs) {
      if (m->turns)
        return -1;
      continue;
    }
    int64_t at = op_ready (&m->workers[j]);
    if (at != NOT_YET && at <= m->now && (best < 0 || at < best_at)) {
      best = j;
      best_at = at;
    }
  }
  return best;
}

static bool has_started (const ref_worker *w, int32_t step) {
  return w->run->n_steps > step && w->run->steps[step]->op_start[0] != NOT_YET;
}

static bool has_ended (const ref_worker *w, int32_t steps) {
  return has_started (w, steps) && w->next_op >= (int64_t)steps * w->t->n_ops &&
         nth_copy_ended (w, OUT, (int64_t)steps * w->p->n_outs - 1) != NOT_YET &&
         nth_copy_ended (w, IN, (int64_t)steps * w->p->n_ins - 1) != NOT_YET;
}

static bool all_done (const ref_machine *m) {
  for (int32_t j = 0; j < m->n_workers; j++)
    if (m->n_workers == 1 ? !has_ended (&m->workers[j], LOOKED_AT)
                          : !has_started (&m->workers[j], TO_STEP))
      return false;
  return true;
}

/* Until nothing more starts at this instant, or all is done: a step may take no time. */
static bool start_ops (ref_machine *m) {
  for (int32_t j; !all_done (m) && (j = op_choice (m)) >= 0; end_things (m)) {
    ref_worker *w = &m->workers[j];
    int64_t step = w->next_op / w->t->n_ops, k = w->next_op % w->t->n_ops;
    if (!have_step (m, w, step))
      return false;
    w->run->steps[step]->op_start[k] = m->now;
    w->op_left = w->t->ops[k].ns * SECOND;
    w->op_runs = true;
    w->next_op++;
  }
  return true;
}

static bool start_copy (ref_machine *m, ref_direction d) {
  ref_engine *e = &m->engines[d];
  int32_t best = -1;
  int64_t best_at = 0;
  if (e->busy || (d == OUT && m->outs_are_held))
    return true;
  for (int32_t j = 0; j < m->n_workers; j++) {
    int64_t at = copy_ready (&m->workers[j], d);
    if (at != NOT_YET && at <= m->now && (best < 0 || at < best_at)) {
      best = j;
      best_at = at;
    }
  }
  if (best < 0)
    return true;
  ref_worker *w = &m->workers[best];
  int64_t n = w->next_copy[d]++, step = n / queue_length (w, d);
  if (!have_step (m, w, step))
    return false;
  *e = (ref_engine){ true, best, queue_move (w, d, n), (int32_t)step, m->now + m->copy_ns, 0 };
  e->left = w->move_bytes[e->move] * SECOND;
  ref_step *s = w->run->steps[step];
  (d == OUT ? s->out_start : s->in_start)[e->move] = m->now;
  return true;
}

/* ---- from one instant to the next ---- */

static void sooner (__int128 *next, __int128 at) {
  if (*next < 0 || at < *next)
    *next = at;
}

static __int128 when_done (const ref_machine *m, __int128 left, int64_t rate) {
  return m->now + (left + rate - 1) / rate;
}

/* The next instant at which anything changes; -1: nothing ever does. */
static __int128 next_instant (const ref_machine *m) {
  __int128 next = -1;
  for (int d = OUT; d <= IN; d++) {
    const ref_engine *e = &m->engines[d];
    if (e->busy)
      sooner (&next, carries (m, d) ? when_done (m, e->left, copy_rate (m, d)) : e->carries_from);
  }
  for (int32_t j = 0; j < m->n_workers; j++) {
    const ref_worker *w = &m->workers[j];
    int64_t at = w->op_runs ? NOT_YET : op_ready (w);
    if (w->op_runs)
      sooner (&next, when_done (m, w->op_left, op_rate (m)));
    else if (at != NOT_YET && at > m->now)
      sooner (&next, at);
  }
  return next;
}

static void pass_time (ref_machine *m, int64_t until) {
  __int128 passes = until - m->now;
  int64_t rates[2] = { copy_rate (m, OUT), copy_rate (m, IN) };
  for (int d = OUT; d <= IN; d++)
    if (carries (m, d))
      m->engines[d].left -= passes * rates[d];
  int64_t speed = op_rate (m);
  for (int32_t j = 0; j < m->n_workers; j++)
    if (m->workers[j].op_runs)
      m->workers[j].op_left -= passes * speed;
  m->now = until;
}

bool ref_machine_run (ref_machine *m) {
  for (;;) {
    end_things (m);
    if (!start_ops (m) || !start_copy (m, OUT) || !start_copy (m, IN))
      return false;
    if (all_done (m))
      return true;
    __int128 next = next_instant (m);
    if (next > LATEST)
      return error_set (m->err, ERR_infeasible, "simulated time exceeds 2^62 ns");
    if (next >= 0)
      pass_time (m, (int64_t)next);
    else if (m->outs_are_held)
      m->outs_are_held = false;
    else
      return error_set (m->err, ERR_infeasible, "the plan hangs");
  }
}

/* ---- one machine ---- */

static int64_t rate_of (__int128 twice, int64_t share_ppm) {
  int64_t rate = (int64_t)(twice * share_ppm / 2000000);
  return rate > 1 ? rate : 1;
}

static __int128 twice_when_both (__int128 own, __int128 other, __int128 both) {
  __int128 rest = both > 2 * both - 2 * other ? both : 2 * both - 2 * other;
  return rest < 2 * own ? rest : 2 * own;
}

ref_machine ref_machine_new (const device *d, ref_worker *workers, int32_t n, arena *a,
                             error *err) {
  __int128 out = d->link.d2h_bytes_per_s, in = d->link.h2d_bytes_per_s;
  int64_t share = n > 1 ? 1000000 : d->share_ppm;
  ref_machine m = { .workers = workers, .n_workers = n, .a = a, .err = err };
  m.copy_ns = d->link.copy_ns;
  m.rate_alone[OUT] = rate_of (2 * out, share);
  m.rate_alone[IN] = rate_of (2 * in, share);
  m.rate_both[OUT] = rate_of (twice_when_both (out, in, d->link.both_bytes_per_s), share);
  m.rate_both[IN] = rate_of (twice_when_both (in, out, d->link.both_bytes_per_s), share);
  return m;
}
