/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan as three queues with what each item waits for, for executors of other people. */
#include "config.h"

#include "library/inner.h"

#include "base/order.h"
#include "trace/check/check.h"
#include "trace/rewrite/rewrite.h"
#include "trace/simulate/simulate.h"
#include "trace/walk/demands.h"
#include "trace/walk/stays.h"

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

static const walk_queue walk_queues[] = {
  [FERRY_OPS] = WALK_OPS, [FERRY_OUTS] = WALK_OUTS, [FERRY_INS] = WALK_INS
};

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
  demands d;
  arena *scratch = NULL;
  if (item_of (rewritten, p, queue, i, &err) &&
      library_sized (out, sizeof *out, "the wait", &err) && (scratch = library_arena (&err)) &&
      demands_make (p->plan, rewritten->trace->n_ops, scratch, &d, &err)) {
    int64_t counts[] = { FERRY_NO_WAIT, FERRY_NO_WAIT, FERRY_NO_WAIT };
    walk_wait found[WALK_MOST_DEMANDS];
    int32_t n = demands_of (&d, walk_queues[queue], i, found);
    for (int32_t k = 0; k < n; k++)
      counts[found[k].queue] = max_of (counts[found[k].queue], demands_count (&d, &found[k]));
    ferry_wait made = { .ops = counts[WALK_OPS],
                        .outs = counts[WALK_OUTS],
                        .ins = counts[WALK_INS] };
    library_out (out, &made, sizeof made);
  }
  arena_free (scratch);
  return library_told (told, &err);
}

/* ---- moves ---- */

static int32_t index_of (const plan *p, ferry_queue queue, int32_t i) {
  return queue == FERRY_OUTS ? p->out_order[i] : p->in_order[i];
}

/* A copy for the caller, in the plan's arena: a tensor alone is a list of one. */
static const int32_t *tensors_of (const plan *p, int32_t n_tensors, const move *m, int32_t *count) {
  int32_t group = m->unit - n_tensors;
  *count = group < 0 ? 1 : p->groups[group].count;
  return group < 0 ? &m->unit : p->groups[group].at;
}

bool ferry_plan_move (const ferry_trace *rewritten, const ferry_plan *p, ferry_queue queue,
                      int32_t i, ferry_move *out, ferry_error *told) {
  error err = { 0 };
  units u;
  stay_map stays;
  arena *scratch = NULL;
  if (queue == FERRY_OPS)
    error_set (&err, ERR_usage, "an op is no move");
  else if (item_of (rewritten, p, queue, i, &err) &&
           library_sized (out, sizeof *out, "the move", &err) && (scratch = library_arena (&err)) &&
           units_of (rewritten->trace, p->plan->groups, p->plan->n_groups,
                     p->plan->placement.granule_bytes, p->plan->placement.pool_below_bytes, scratch,
                     &u, &err) &&
           stays_map (&u, p->plan, scratch, &stays, &err)) {
    const plan *x = p->plan;
    int64_t granule = x->placement.granule_bytes;
    int32_t index = index_of (x, queue, i);
    const move *m = &x->moves[index];
    int32_t at = queue == FERRY_INS ? stays.move_stay[index]
                                    : stays_at (&stays, m->unit, m->part, m->out_after);
    const stay *s = at >= 0 ? &x->placement.stays[at] : NULL;
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
