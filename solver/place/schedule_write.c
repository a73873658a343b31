/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan, written down from moves, stays and places. */
#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/place/schedule_inner.h"

static int32_t as_wait (int64_t count) {
  return count == NOTHING_NEEDED ? NO_WAIT : (int32_t)count;
}

/* The copies of one part that the host holds: each copy out makes one, which clean moves behind it
   share; where there is no copy out, the host has had it from the start. */
static bool host_copies (scheduling *s, const int32_t *moves, int32_t count, arena *scratch) {
  (void)scratch;
  int32_t source = -1;
  for (int32_t i = 0; i < count; i++)
    if (!s->moves[moves[i]].clean)
      source = i;
  int32_t start = source < 0 ? 0 : source;
  for (int32_t i = 0; i < count; i++) {
    int32_t m = moves[(start + i) % count];
    const wish *w = &s->moves[m];
    if (i == 0 || !w->clean)
      s->spans[s->n_spans++] = (host_span){ .bytes = schedule_part_bytes (s, w),
                                            .from = source < 0 ? -1 : w->out_after };
    s->spans[s->n_spans - 1].to = w->in_before;
    s->span_of[m] = s->n_spans - 1;
  }
  return true;
}

static bool pack_host (scheduling *s, arena *scratch) {
  plan *p = s->plan;
  s->spans = NEW (scratch, s->n_moves, host_span, s->err);
  s->span_of = NEW (scratch, s->n_moves, int32_t, s->err);
  if (!s->spans || !s->span_of || !schedule_each_part (s, scratch, host_copies))
    return false;
  int64_t bytes = host_pack (s->spans, s->n_spans, scratch, s->err);
  if (bytes < 0)
    return false;
  if (bytes > p->host_bytes) {
    char need[UNITS_TEXT], have[UNITS_TEXT];
    if (s->shortage)
      *s->shortage = (schedule_shortage){ NO_OP, bytes };
    return error_set (s->err, ERR_infeasible, "the moves need %s on the host, %s are allowed",
                      units_bytes (need, bytes), units_bytes (have, p->host_bytes));
  }
  for (int32_t i = 0; i < p->n_moves; i++)
    p->moves[i].host_offset = s->spans[s->span_of[i]].offset;
  return true;
}

static bool write_moves (scheduling *s) {
  plan *p = s->plan;
  const stays *l = &s->stays;
  p->n_moves = p->n_ins = s->n_moves;
  p->n_outs = l->n_outs;
  p->out_order = l->out_order;
  p->in_order = s->places.in_order ? s->places.in_order : l->in_order;
  if (!ALLOC (s->arena, p->moves, s->n_moves, s->err))
    return false;
  for (int32_t i = 0; i < s->n_moves; i++) {
    const wish *w = &s->moves[i];
    int64_t ops = s->places.in_ops[i];
    if (w->in_not_before != NO_WAIT && w->in_not_before > ops)
      ops = w->in_not_before;
    p->moves[i] = (move){ .unit = w->unit,
                          .part = w->part,
                          .of = w->of,
                          .out_after = w->out_after,
                          .in_before = w->in_before,
                          .in_ops = as_wait (ops),
                          .in_outs = as_wait (s->places.in_outs[i]),
                          .clean = w->clean };
  }
  return true;
}

/* Ops that wait for more copies out than every op before them: the others wait for nothing new. */
static bool write_op_waits (scheduling *s) {
  plan *p = s->plan;
  const stays *l = &s->stays;
  int64_t *outs = s->places.op_outs;
  int32_t n = s->trace->n_ops;
  for (int32_t i = 0; i < s->n_moves; i++) {
    const wish *w = &s->moves[i];
    bool last = w->out_after + 1 == n;
    int64_t count = l->out_place[i] + 1 - (last ? l->n_outs : 0);
    int64_t *at = &outs[last ? 0 : w->out_after + 1];
    if (w->wait_out && !w->clean && *at < count)
      *at = count;
  }
  if (!ALLOC (s->arena, p->op_waits, n, s->err))
    return false;
  int64_t known = NOTHING_NEEDED;
  for (int32_t k = 0; k < n; k++)
    if (outs[k] > known) {
      known = outs[k];
      p->op_waits[p->n_op_waits++] = (op_wait){ k, (int32_t)known };
    }
  return true;
}

static bool write_places (scheduling *s) {
  placement *pl = &s->plan->placement;
  const stays *l = &s->stays;
  *pl = (placement){ .kind = s->options->arena_granule_bytes ? PLACEMENT_ARENA : PLACEMENT_GRANULES,
                     .granule_bytes = s->granule_bytes,
                     .pool_below_bytes = s->pool_below_bytes,
                     .pool_bytes = s->units.pool_bytes,
                     .granules = (int32_t)s->places.granules,
                     .same_places = s->options->same_places,
                     .runs = s->places.runs,
                     .n_runs = (int32_t)s->places.n_runs,
                     .n_stays = l->count };
  if (s->places.n_runs > INT32_MAX / 2)
    return error_set (s->err, ERR_internal, "the plan has too many runs of granules");
  if (!ALLOC (s->arena, pl->stays, l->count, s->err))
    return false;
  for (int32_t i = 0; i < l->count; i++) {
    int64_t first = s->places.first_run[i];
    pl->stays[i] = (stay){ .kind = l->at[i].kind,
                           .index = l->at[i].index,
                           .part = l->at[i].part,
                           .first_run = (int32_t)first,
                           .n_runs = (int32_t)(s->places.first_run[i + 1] - first) };
  }
  return true;
}

bool schedule_write_head (scheduling *s) {
  assert (s->request && s->plan);
  const schedule_request *r = s->request;
  char *digest = NEW (s->arena, TRACE_DIGEST, char, s->err);
  if (!digest)
    return false;
  if (s->options->trace_digest)
    memcpy (digest, s->options->trace_digest, strnlen (s->options->trace_digest, TRACE_DIGEST - 1));
  else if (!trace_digest (r->original, digest, s->err))
    return false;
  *s->plan = (plan){ .trace_digest = digest,
                     .device = *s->device,
                     .budget_bytes = s->options->budget_bytes,
                     .host_bytes = s->options->host_bytes,
                     .sections = (section *)(uintptr_t)r->sections,
                     .recomputes = (recompute *)(uintptr_t)r->recomputes,
                     .groups = (index_list *)(uintptr_t)s->groups,
                     .n_sections = r->n_sections,
                     .n_recomputes = r->n_recomputes,
                     .n_groups = s->n_groups };
  if (s->options->arena_granule_bytes)
    s->plan->device.granule_bytes = s->options->arena_granule_bytes;
  return true;
}

bool schedule_write (scheduling *s, arena *scratch) {
  assert (s->places.runs || s->stays.count == 0);
  return write_moves (s) && write_op_waits (s) && write_places (s) && pack_host (s, scratch);
}
