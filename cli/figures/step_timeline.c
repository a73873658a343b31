/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/step_timeline.h"

#include "base/units.h"
#include "trace/simulate/waits.h"
#include "trace/streams.h"
#include "trace/unit.h"

/* Holders of memory: the kinds of tensors, then these two. */
enum { HOLDER_WORKSPACE = TENSOR_KINDS, HOLDER_POOL, HOLDERS };

/* tensor, op, move: an index or -1. */
typedef struct held {
  int64_t start_ns, end_ns, bytes;
  int32_t kind, tensor, op, move;
} held;

/* One of the two steps. */
typedef struct side {
  const trace *trace;
  const rewritten *from; /* NULL: the trace is the original */
  const span *ops;
  const int64_t *stalls_ns; /* one an op, or NULL */
  held *held;
  int32_t n_held;
  int64_t period_ns;
} side;

/* ---- before: everything on the device, nothing moves ---- */

static void add_lives (const units *u, const placement *pl, side *s) {
  const trace *t = s->trace;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const unit_info *it = &u->at[i];
    bool always = t->tensors[i].persistent;
    if (!it->granules)
      continue;
    s->held[s->n_held++] = (held){ always ? 0 : s->ops[it->first].start_ns,
                                   always ? s->period_ns : s->ops[it->last].end_ns,
                                   it->granules * pl->granule_bytes,
                                   t->tensors[i].kind,
                                   i,
                                   -1,
                                   -1 };
  }
  for (int32_t i = 0; i < t->n_ops; i++)
    if (t->ops[i].workspace_bytes)
      s->held[s->n_held++] =
          (held){ s->ops[i].start_ns,
                  s->ops[i].end_ns,
                  units_div_up (t->ops[i].workspace_bytes, pl->granule_bytes) * pl->granule_bytes,
                  HOLDER_WORKSPACE,
                  -1,
                  i,
                  -1 };
  if (u->pool_bytes)
    s->held[s->n_held++] =
        (held){ 0,
                s->period_ns,
                units_div_up (u->pool_bytes, pl->granule_bytes) * pl->granule_bytes,
                HOLDER_POOL,
                -1,
                -1,
                -1 };
}

static bool make_before (const plan_step *step, arena *a, side *s, error *err) {
  const trace *t = step->job.original;
  const placement *pl = &step->job.plan->placement;
  units u;
  const int64_t *ends = trace_ends (t, a, err);
  span *ops = NEW (a, t->n_ops, span, err);
  *s = (side){ .trace = t, .ops = ops };
  if (!ALLOC (a, s->held, (int64_t)t->n_tensors + t->n_ops + 1, err) || !ends || !ops ||
      !units_of (t, NULL, 0, pl->granule_bytes, pl->pool_below_bytes, a, &u, err))
    return false;
  s->period_ns = ends[t->n_ops];
  const int64_t *own = streams_ends (t, a, err);
  for (int32_t i = 0; own && i < t->n_ops; i++)
    ops[i] = (span){ own[i] - t->ops[i].ns, own[i] };
  if (!own)
    return false;
  add_lives (&u, pl, s);
  return true;
}

/* ---- after: the simulated step ---- */

static held held_by_stay (const plan_step *step, const stay *s) {
  const plan *p = step->job.plan;
  const trace *t = step->rewritten.trace;
  held h = { .tensor = -1, .op = -1, .move = s->kind == STAY_MOVE ? s->index : -1 };
  int32_t unit = s->kind == STAY_MOVE ? p->moves[s->index].unit : s->index;
  if (s->kind == STAY_WORKSPACE) {
    h.op = s->index;
    h.kind = HOLDER_WORKSPACE;
    return h;
  }
  unit += s->kind == STAY_GROUP ? t->n_tensors : 0;
  h.tensor = unit < t->n_tensors ? unit : p->groups[unit - t->n_tensors].at[0];
  h.kind = t->tensors[h.tensor].kind;
  return h;
}

static void add_stays (const plan_step *step, side *s) {
  const placement *pl = &step->job.plan->placement;
  for (int32_t i = 0; i < pl->n_stays; i++) {
    held h = held_by_stay (step, &pl->stays[i]);
    const span *at = &step->line.stays[i];
    bool always = at->start_ns < 0 && at->end_ns < 0;
    h.start_ns = always ? 0 : at->start_ns;
    h.end_ns = always ? s->period_ns : at->end_ns;
    h.bytes = stay_granules (pl, &pl->stays[i]) * pl->granule_bytes;
    if (h.bytes && h.end_ns > h.start_ns)
      s->held[s->n_held++] = h;
  }
  if (pl->pool_bytes)
    s->held[s->n_held++] =
        (held){ 0,
                s->period_ns,
                units_div_up (pl->pool_bytes, pl->granule_bytes) * pl->granule_bytes,
                HOLDER_POOL,
                -1,
                -1,
                -1 };
}

static bool make_after (const plan_step *step, arena *a, side *s, error *err) {
  const trace *t = step->rewritten.trace;
  const span *ops = step->line.ops;
  int64_t *stalls = NEW (a, t->n_ops, int64_t, err);
  *s = (side){ .trace = t,
               .from = &step->rewritten,
               .ops = ops,
               .stalls_ns = stalls,
               .period_ns = step->line.period_ns };
  if (!ALLOC (a, s->held, (int64_t)step->job.plan->placement.n_stays + 1, err) || !stalls)
    return false;
  wait *waits;
  int32_t n;
  if (!waits_of (&step->job, &step->line, a, &waits, &n, err))
    return false;
  for (int32_t i = 0; i < n; i++)
    stalls[waits[i].op] = waits[i].ns;
  add_stays (step, s);
  return true;
}

/* ---- writing ---- */

/* Tables go out as columns, which are a third of rows and read faster: `expression` for each i of n
   rows. */
#define COLUMN(w, key, n, expression) \
  do {                                \
    json_add_array (w, key);          \
    for (int32_t i = 0; i < (n); i++) \
      json_put_int (w, expression);   \
    json_close_array (w);             \
  } while (0)

static void put_held (json_writer *w, const side *s) {
  json_add_object (w, "held");
  COLUMN (w, "bytes", s->n_held, s->held[i].bytes);
  COLUMN (w, "end_ns", s->n_held, s->held[i].end_ns);
  COLUMN (w, "kind", s->n_held, s->held[i].kind);
  COLUMN (w, "move", s->n_held, s->held[i].move);
  COLUMN (w, "op", s->n_held, s->held[i].op);
  COLUMN (w, "start_ns", s->n_held, s->held[i].start_ns);
  COLUMN (w, "tensor", s->n_held, s->held[i].tensor);
  json_close_object (w);
}

static void put_list (json_writer *w, const index_list *list) {
  json_open_array (w);
  for (int32_t i = 0; i < list->count; i++)
    json_put_int (w, list->at[i]);
  json_close_array (w);
}

static void put_ops (json_writer *w, const side *s) {
  const trace *t = s->trace;
  json_add_object (w, "ops");
  COLUMN (w, "again", t->n_ops, s->from && s->from->ops[i].copy);
  COLUMN (w, "end_ns", t->n_ops, s->ops[i].end_ns);
  json_add_array (w, "name");
  for (int32_t i = 0; i < t->n_ops; i++)
    json_put_text (w, t->ops[i].name ? t->ops[i].name : "");
  json_close_array (w);
  COLUMN (w, "origin", t->n_ops, s->from ? s->from->ops[i].index : i);
  COLUMN (w, "phase", t->n_ops, t->ops[i].phase);
  json_add_array (w, "reads");
  for (int32_t i = 0; i < t->n_ops; i++)
    put_list (w, &t->ops[i].reads);
  json_close_array (w);
  COLUMN (w, "stall_ns", t->n_ops, s->stalls_ns ? s->stalls_ns[i] : 0);
  COLUMN (w, "start_ns", t->n_ops, s->ops[i].start_ns);
  json_add_array (w, "writes");
  for (int32_t i = 0; i < t->n_ops; i++)
    put_list (w, &t->ops[i].writes);
  json_close_array (w);
  json_close_object (w);
}

static void put_tensors (json_writer *w, const side *s) {
  const trace *t = s->trace;
  json_add_object (w, "tensors");
  COLUMN (w, "again", t->n_tensors, s->from && s->from->tensors[i].copy);
  COLUMN (w, "bytes", t->n_tensors, t->tensors[i].bytes);
  COLUMN (w, "kind", t->n_tensors, t->tensors[i].kind);
  json_add_array (w, "name");
  for (int32_t i = 0; i < t->n_tensors; i++)
    json_put_text (w, t->tensors[i].name ? t->tensors[i].name : "");
  json_close_array (w);
  COLUMN (w, "origin", t->n_tensors, s->from ? s->from->tensors[i].index : i);
  json_close_object (w);
}

static int32_t first_tensor (const plan_step *step, int32_t unit) {
  int32_t n = step->rewritten.trace->n_tensors;
  return unit < n ? unit : step->job.plan->groups[unit - n].at[0];
}

/* tensor: of a group its first; more: the others. */
static bool put_moves (json_writer *w, const plan_step *step, arena *a, error *err) {
  const plan *p = step->job.plan;
  const timeline *line = &step->line;
  int32_t n = p->n_moves, whole = step->rewritten.trace->n_tensors;
  const int64_t *bytes = plan_move_bytes (&step->job, a, err);
  if (!bytes)
    return false;
  json_add_object (w, "moves");
  COLUMN (w, "bytes", n, bytes[i]);
  COLUMN (w, "in_before", n, p->moves[i].in_before);
  COLUMN (w, "in_end_ns", n, line->ins[i].end_ns);
  COLUMN (w, "in_start_ns", n, line->ins[i].start_ns);
  COLUMN (w, "more", n,
          p->moves[i].unit < whole ? 0 : p->groups[p->moves[i].unit - whole].count - 1);
  COLUMN (w, "of", n, p->moves[i].of);
  COLUMN (w, "out_after", n, p->moves[i].out_after);
  COLUMN (w, "out_end_ns", n, line->outs[i].end_ns);
  COLUMN (w, "out_start_ns", n, line->outs[i].start_ns);
  COLUMN (w, "part", n, p->moves[i].part);
  COLUMN (w, "tensor", n, first_tensor (step, p->moves[i].unit));
  json_close_object (w);
  return true;
}

static bool put_side (json_writer *w, const side *s, const plan_step *moves, arena *a, error *err) {
  json_open_object (w);
  put_held (w, s);
  if (moves && !put_moves (w, moves, a, err))
    return false;
  put_ops (w, s);
  json_add_int (w, "period_ns", s->period_ns);
  put_tensors (w, s);
  json_close_object (w);
  return true;
}

static void put_holders (json_writer *w) {
  static const char *const own[] = { "workspace of ops", "pool of small tensors" };
  json_add_array (w, "holders");
  for (int h = 0; h < HOLDERS; h++)
    json_put_text (w, h < TENSOR_KINDS ? tensor_kind_names[h] : own[h - TENSOR_KINDS]);
  json_close_array (w);
}

static void put_about (json_writer *w, const plan_step *s) {
  const plan *p = s->job.plan;
  json_add_int (w, "budget_bytes", p->budget_bytes);
  certificate_write (w, p->has_certificate ? &p->certificate : NULL, false);
  json_put_key (w, "device");
  device_write (w, &p->device);
  json_add_text (w, "format", TIMELINE_FORMAT);
  put_holders (w);
  json_add_text (w, "name", s->job.original->name);
  predicted_write (w, "predicted", &s->costs);
}

bool step_timeline (const plan_step *s, arena *a, bytes *out, error *err) {
  json_writer w;
  side before, after;
  if (s->line.period_ns <= 0)
    return error_set (err, ERR_infeasible, "a step of no length has no picture");
  if (!make_before (s, a, &before, err) || !make_after (s, a, &after, err))
    return false;
  json_begin_object (&w, 0);
  json_put_key (&w, "after");
  bool ok = put_side (&w, &after, s, a, err);
  json_put_key (&w, "before");
  ok = ok && put_side (&w, &before, NULL, a, err);
  if (ok)
    put_about (&w, s);
  json_close_object (&w);
  return json_finish (&w, out, err) && ok;
}
