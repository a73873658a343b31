/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ref_simulate.h"

#include <string.h>

#include "tests/ref_machine.h"
#include "tests/ref_order.h"

/* ---- the figures ---- */

static bool same_times (const int64_t *x, int64_t x0, const int64_t *y, int64_t y0, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if ((x[i] == NOT_YET) != (y[i] == NOT_YET) || (x[i] != NOT_YET && x[i] - x0 != y[i] - y0))
      return false;
  return true;
}

static bool same_state (const ref_worker *w, int32_t i, int32_t j) {
  const ref_step *x = w->run->steps[i], *y = w->run->steps[j];
  int64_t x0 = x->op_start[0], y0 = y->op_start[0];
  int32_t ops = w->t->n_ops, moves = w->p->n_moves;
  return same_times (x->op_start, x0, y->op_start, y0, ops) &&
         same_times (x->op_end, x0, y->op_end, y0, ops) &&
         same_times (x->out_start, x0, y->out_start, y0, moves) &&
         same_times (x->out_end, x0, y->out_end, y0, moves) &&
         same_times (x->in_start, x0, y->in_start, y0, moves) &&
         same_times (x->in_end, x0, y->in_end, y0, moves);
}

static int64_t start_of (const ref_worker *w, int32_t step) {
  return w->run->steps[step]->op_start[0];
}

static void judge (const ref_worker *w) {
  ref_run *r = w->run;
  for (int32_t n = 1; n < LOOKED_AT; n++)
    for (int32_t i = 0; i < n; i++)
      if (same_state (w, i, n)) {
        int64_t time = start_of (w, n) - start_of (w, i), steps = n - i;
        r->repeats = true;
        r->first = i;
        r->again = n;
        r->figure_ns = (time + steps - 1) / steps;
        return;
      }
  for (int32_t n = LOOKED_AT - 8; n < LOOKED_AT; n++) {
    int64_t difference = start_of (w, n) - start_of (w, n - 1);
    if (difference > r->figure_ns)
      r->figure_ns = difference;
  }
}

static int64_t up_to (int64_t x, int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

static int64_t unit_bytes (const ref_worker *w, int32_t unit) {
  if (unit < w->t->n_tensors)
    return w->t->tensors[unit].bytes;
  int64_t sum = 0;
  index_list group = w->p->groups[unit - w->t->n_tensors];
  for (int32_t i = 0; i < group.count; i++)
    sum += up_to (w->t->tensors[group.at[i]].bytes, 512);
  return sum;
}

static int64_t bytes_of_move (const ref_worker *w, const move *v) {
  int64_t granule = w->p->placement.granule_bytes, bytes = unit_bytes (w, v->unit);
  int64_t granules = up_to (bytes, granule) / granule;
  int64_t first = (int64_t)((__int128)v->part * granules / v->of) * granule;
  int64_t end = (int64_t)((__int128)(v->part + 1) * granules / v->of) * granule;
  return (end < bytes ? end : bytes) - first;
}

static void fill_bytes (const ref_worker *w, predicted *to) {
  const placement *where = &w->p->placement;
  to->peak_bytes = up_to (where->granules * where->granule_bytes +
                              up_to (where->pool_bytes, where->granule_bytes),
                          w->p->device.granule_bytes);
  for (int32_t i = 0; i < w->p->n_moves; i++) {
    int64_t end = w->p->moves[i].host_offset + w->move_bytes[i];
    if (end > to->host_peak_bytes)
      to->host_peak_bytes = end;
    to->h2d_bytes += w->move_bytes[i];
    to->d2h_bytes += w->p->moves[i].clean ? 0 : w->move_bytes[i];
  }
  to->host_peak_bytes = up_to (to->host_peak_bytes, 512);
  for (int32_t i = 0; i < w->p->n_resting; i++)
    to->host_peak_bytes += up_to (w->t->tensors[w->p->resting[i]].bytes, 512);
}

static int64_t total_ns (const trace *t) {
  int64_t sum = 0;
  for (int32_t k = 0; k < t->n_ops; k++)
    sum += t->ops[k].ns + t->ops[k].gap_ns;
  return sum;
}

/* ---- one run, and the whole ---- */

static bool one_device (const ref_job *jobs, int32_t n, error *err) {
  const device *d = &jobs[0].plan->device;
  __int128 needs = 0;
  for (int32_t j = 0; j < n; j++) {
    const device *e = &jobs[j].plan->device;
    if (memcmp (&d->link, &e->link, sizeof d->link) != 0 || d->memory_bytes != e->memory_bytes ||
        d->reserved_bytes != e->reserved_bytes || d->granule_bytes != e->granule_bytes ||
        d->host_bytes != e->host_bytes || d->section_ns != e->section_ns)
      return error_set (err, ERR_infeasible, "the jobs' plans name different devices");
    needs += (__int128)jobs[j].plan->budget_bytes + d->reserved_bytes;
  }
  if (n > 1 && needs > d->memory_bytes)
    return error_set (err, ERR_infeasible, "the jobs' budgets do not fit the device");
  return true;
}

static bool worker_new (const ref_job *job, arena *a, ref_worker *w, ref_answer *answer,
                        error *err) {
  const plan *p = job->plan;
  rewritten rw;
  *answer = (ref_answer){ 0 };
  if (!ref_plan_rewrite (job->original, p, a, &rw, err))
    return false;
  *w = (ref_worker){ .t = rw.trace, .p = p };
  w->move_bytes = NEW (a, p->n_moves + 1, int64_t, err);
  if (!w->move_bytes)
    return false;
  for (int32_t i = 0; i < p->n_moves; i++)
    w->move_bytes[i] = bytes_of_move (w, &p->moves[i]);
  answer->rewritten = rw.trace;
  answer->predicted.compute_ns = total_ns (rw.trace);
  answer->predicted.baseline_ns = total_ns (job->original);
  fill_bytes (w, &answer->predicted);
  return true;
}

static bool run_alone (ref_worker *w, arena *a, ref_answer *answer, error *err) {
  predicted *to = &answer->predicted;
  for (int laden = 0; laden < 2 && !to->settled; laden++) {
    ref_run *r = &answer->runs[laden];
    *w = (ref_worker){ .t = w->t, .p = w->p, .move_bytes = w->move_bytes, .run = r };
    ref_machine m = ref_machine_new (&w->p->device, w, 1, a, err);
    m.outs_are_held = laden;
    answer->n_runs++;
    if (!ref_machine_run (&m))
      return false;
    judge (w);
    to->settled = r->repeats;
    if (r->figure_ns > to->step_ns)
      to->step_ns = r->figure_ns;
  }
  return true;
}

bool ref_simulate (const ref_job *jobs, int32_t n_jobs, bool turns, arena *a, ref_answer *answers,
                   error *err) {
  ref_worker *workers = NEW (a, n_jobs, ref_worker, err);
  if (!workers || !one_device (jobs, n_jobs, err))
    return false;
  for (int32_t j = 0; j < n_jobs; j++)
    if (!worker_new (&jobs[j], a, &workers[j], &answers[j], err))
      return false;
  for (int32_t j = 0; n_jobs > 1 && j < n_jobs; j++)
    if (answers[j].predicted.compute_ns == 0)
      return error_set (err, ERR_infeasible, "a job that takes no time cannot share a card");
  if (n_jobs == 1) {
    if (!run_alone (&workers[0], a, &answers[0], err))
      return false;
  } else {
    ref_machine m = ref_machine_new (&jobs[0].plan->device, workers, n_jobs, a, err);
    m.turns = turns;
    for (int32_t j = 0; j < n_jobs; j++) {
      workers[j].run = &answers[j].runs[0];
      answers[j].n_runs = 1;
    }
    if (!ref_machine_run (&m))
      return false;
    for (int32_t j = 0; j < n_jobs; j++) {
      int64_t time = start_of (&workers[j], TO_STEP) - start_of (&workers[j], FROM_STEP);
      int32_t steps = TO_STEP - FROM_STEP;
      answers[j].predicted.step_ns = (time + steps - 1) / steps;
    }
  }
  for (int32_t j = 0; j < n_jobs; j++)
    answers[j].predicted.stall_ns = answers[j].predicted.step_ns - answers[j].predicted.compute_ns;
  return true;
}
