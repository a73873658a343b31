/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan as three queues with what each item waits for, for executors of other people. */
#include "config.h"

#include "library/inner.h"

#include <stdlib.h>

#include "base/order.h"
#include "trace/check/check.h"
#include "trace/rewrite/rewrite.h"
#include "trace/simulate/simulate.h"
#include "trace/unit.h"

ferry_trace *ferry_plan_trace (const ferry_trace *t, const ferry_plan *p, ferry_error *told) {
  error err = { 0 };
  rewritten rw;
  bytes text = { 0 };
  trace *made = NULL;
  arena *scratch = NULL, *a = NULL;
  if (library_given (t, "the trace", &err) && library_given (p, "the plan", &err) &&
      check_trace (t->trace, p->plan, &err) && (scratch = library_arena (&err)) &&
      plan_rewrite (t->trace, p->plan, scratch, &rw, &err) &&
      trace_text (rw.trace, TRACE_PACKED, &text, &err) && (a = library_arena (&err)))
    made = trace_parse (text.data, text.size, NULL, a, &err);
  bytes_free (&text);
  arena_free (scratch);
  ferry_trace *out = a ? library_trace (a, made, &err) : NULL;
  return library_told (told, &err) ? out : NULL;
}

bool ferry_plan_steps (const ferry_trace *t, const ferry_plan *p, ferry_steps *out,
                       ferry_error *told) {
  error err = { 0 };
  rewritten rw;
  predicted seen;
  arena *scratch = NULL;
  if (library_given (t, "the trace", &err) && library_given (p, "the plan", &err) &&
      library_sized (out, sizeof *out, "the steps", &err) &&
      check_trace (t->trace, p->plan, &err) && (scratch = library_arena (&err)) &&
      plan_rewrite (t->trace, p->plan, scratch, &rw, &err) &&
      simulate_plan (t->trace, p->plan, scratch, &seen, &err)) {
    ferry_steps made = { .ops = rw.trace->n_ops,
                         .outs = p->plan->n_outs,
                         .ins = p->plan->n_ins,
                         .granules = p->plan->placement.granules,
                         .granule_bytes = p->plan->placement.granule_bytes,
                         .pool_bytes = p->plan->placement.pool_bytes,
                         .host_bytes = seen.host_peak_bytes,
                         .placement = p->plan->placement.kind == PLACEMENT_ARENA
                                          ? FERRY_PLACEMENT_ARENA
                                          : FERRY_PLACEMENT_GRANULES };
    library_out (out, &made, sizeof made);
  }
  arena_free (scratch);
  return library_told (told, &err);
}

/* ---- waits ---- */

static int64_t count_of (int32_t wanted) {
  return wanted == NO_WAIT ? FERRY_NO_WAIT : wanted;
}

static int32_t place_of (const int32_t *order, int32_t n, int32_t move) {
  int32_t i = 0;
  while (i < n && order[i] != move)
    i++;
  return i;
}

static void wait_of_op (const plan *p, int32_t op, ferry_wait *out) {
  for (int32_t i = 0; i < p->n_ins; i++)
    if (p->moves[p->in_order[i]].in_before == op)
      out->ins = i + 1;
  for (int32_t i = 0; i < p->n_op_waits; i++)
    if (p->op_waits[i].op == op)
      out->outs = count_of (p->op_waits[i].outs);
}

/* Its own copy out, of the step before where it wraps; or the op behind which it is dropped. */
static void wait_of_in (const plan *p, int32_t n_ops, int32_t move_index, ferry_wait *out) {
  const move *m = &p->moves[move_index];
  int64_t lag = m->in_before <= m->out_after ? 1 : 0;
  out->ops = count_of (m->in_ops);
  out->outs = count_of (m->in_outs);
  if (m->clean)
    out->ops = max_of (out->ops, m->out_after + 1 - lag * n_ops);
  else
    out->outs =
        max_of (out->outs, place_of (p->out_order, p->n_outs, move_index) + 1 - lag * p->n_outs);
}

static bool item_of (const ferry_trace *rewritten, const ferry_plan *p, ferry_queue queue,
                     int32_t i, error *err) {
  if (!library_given (rewritten, "the trace", err) || !library_given (p, "the plan", err))
    return false;
  int32_t n = queue == FERRY_OPS    ? rewritten->trace->n_ops
              : queue == FERRY_OUTS ? p->plan->n_outs
              : queue == FERRY_INS  ? p->plan->n_ins
                                    : -1;
  return (i >= 0 && i < n) || error_set (err, ERR_usage, "queue %d has no item %d", (int)queue, i);
}

bool ferry_plan_wait (const ferry_trace *rewritten, const ferry_plan *p, ferry_queue queue,
                      int32_t i, ferry_wait *out, ferry_error *told) {
  error err = { 0 };
  if (item_of (rewritten, p, queue, i, &err) &&
      library_sized (out, sizeof *out, "the wait", &err)) {
    const plan *x = p->plan;
    ferry_wait made = { .ops = FERRY_NO_WAIT, .outs = FERRY_NO_WAIT, .ins = FERRY_NO_WAIT };
    if (queue == FERRY_OPS)
      wait_of_op (x, i, &made);
    else if (queue == FERRY_OUTS)
      made.ops = x->moves[x->out_order[i]].out_after + 1;
    else
      wait_of_in (x, rewritten->trace->n_ops, x->in_order[i], &made);
    library_out (out, &made, sizeof made);
  }
  return library_told (told, &err);
}

/* ---- moves ---- */

static bool same_part (const move *x, const move *y) {
  return x->unit == y->unit && x->part == y->part && x->of == y->of;
}

/* The move whose copy in brought what this copy out takes away; -1: it was there from its birth.
   What persists may have come in the step before. */
static int32_t brought_by (const plan *p, int32_t index, bool persistent) {
  const move *m = &p->moves[index];
  int32_t before = -1, last = -1;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *x = &p->moves[i];
    if (!same_part (x, m))
      continue;
    if (x->in_before <= m->out_after && (before < 0 || x->in_before > p->moves[before].in_before))
      before = i;
    if (last < 0 || x->in_before > p->moves[last].in_before)
      last = i;
  }
  return before >= 0 || !persistent ? before : last;
}

static const stay *stay_of (const plan *p, const units *u, int32_t index, bool in) {
  const move *m = &p->moves[index];
  int32_t group = m->unit - u->trace->n_tensors;
  int32_t from = in ? index : brought_by (p, index, u->at[m->unit].persistent);
  for (int32_t i = 0; i < p->placement.n_stays; i++) {
    const stay *s = &p->placement.stays[i];
    if (from >= 0 ? s->kind == STAY_MOVE && s->index == from
                  : s->part == m->part && (group < 0 ? s->kind == STAY_TENSOR && s->index == m->unit
                                                     : s->kind == STAY_GROUP && s->index == group))
      return s;
  }
  return NULL;
}

static int32_t index_of (const plan *p, ferry_queue queue, int32_t i) {
  return queue == FERRY_OUTS ? p->out_order[i] : p->in_order[i];
}

/* A copy for the caller, in the plan's arena: a tensor alone is a list of one. */
static const int32_t *tensors_of (const plan *p, int32_t n_tensors, const move *m, int32_t *count) {
  int32_t group = m->unit - n_tensors;
  *count = group < 0 ? 1 : p->groups[group].count;
  return group < 0 ? &m->unit : p->groups[group].at;
}

/* A plan that nobody has checked may speak of what there is not. */
static bool is_there (const units *u, const move *m, int32_t index, error *err) {
  if (m->unit >= 0 && m->unit < u->count && m->part >= 0 && m->part < m->of &&
      m->of <= u->at[m->unit].granules)
    return true;
  return error_set (err, ERR_input, "move %d is of part %d of %d of unit %d, which is not there",
                    index, m->part, m->of, m->unit);
}

bool ferry_plan_move (const ferry_trace *rewritten, const ferry_plan *p, ferry_queue queue,
                      int32_t i, ferry_move *out, ferry_error *told) {
  error err = { 0 };
  units u;
  arena *scratch = NULL;
  if (queue == FERRY_OPS)
    error_set (&err, ERR_usage, "an op is no move");
  else if (item_of (rewritten, p, queue, i, &err) &&
           library_sized (out, sizeof *out, "the move", &err) && (scratch = library_arena (&err)) &&
           units_of (rewritten->trace, p->plan->groups, p->plan->n_groups,
                     p->plan->placement.granule_bytes, p->plan->placement.pool_below_bytes, scratch,
                     &u, &err) &&
           is_there (&u, &p->plan->moves[index_of (p->plan, queue, i)],
                     index_of (p->plan, queue, i), &err)) {
    const plan *x = p->plan;
    int64_t granule = x->placement.granule_bytes;
    int32_t index = index_of (x, queue, i);
    const move *m = &x->moves[index];
    const stay *s = stay_of (x, &u, index, queue == FERRY_INS);
    ferry_move made = {
      .move = index,
      .part = m->part,
      .of = m->of,
      .bytes = unit_part_bytes (&u.at[m->unit], granule, m->part, m->of),
      .unit_offset = unit_part_first (&u.at[m->unit], m->part, m->of) * granule,
      .host_offset = m->host_offset,
      .clean = m->clean,
      .granules = s ? &x->placement.runs[s->first_run].first : NULL,
      .n_granules = s ? s->n_runs : 0,
    };
    made.tensors = tensors_of (x, rewritten->trace->n_tensors, m, &made.n_tensors);
    library_out (out, &made, sizeof made);
  }
  arena_free (scratch);
  return library_told (told, &err);
}
