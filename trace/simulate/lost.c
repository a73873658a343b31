/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/lost.h"

#include <assert.h>

#include "trace/unit.h"

bool lost_live (const sim_job *job, const timeline *line, arena *scratch, int64_t *live_bytes,
                error *err) {
  assert (job && line && live_bytes);
  const plan *p = job->plan;
  const trace *t = job->rewritten->trace;
  const placement *pl = &p->placement;
  arena_mark mark = arena_here (scratch);
  units u;
  int32_t *of = NULL;
  if (!units_of (t, p->groups, p->n_groups, pl->granule_bytes, pl->pool_below_bytes, scratch, &u,
                 err) ||
      !(of = NEW (scratch, u.count, int32_t, err)))
    return false;
  for (int32_t i = 0; i < u.count; i++)
    of[i] = 1;
  for (int32_t i = 0; i < p->n_moves; i++)
    of[p->moves[i].unit] = p->moves[i].of;
  *live_bytes = pl->pool_bytes;
  for (int32_t i = 0; i < line->n_holders; i++) {
    const stay *s = &pl->stays[line->holders[i]];
    const move *m = s->kind == STAY_MOVE ? &p->moves[s->index] : NULL;
    int32_t unit = m ? m->unit : s->kind == STAY_GROUP ? t->n_tensors + s->index : s->index;
    *live_bytes += s->kind == STAY_WORKSPACE ? t->ops[s->index].workspace_bytes
                                             : unit_part_bytes (&u.at[unit], pl->granule_bytes,
                                                                m ? m->part : s->part, of[unit]);
  }
  arena_back (scratch, mark);
  return true;
}

bool lost_bytes (const trace *t, const plan *p, arena *scratch, int64_t *bytes, error *err) {
  assert (t && p && bytes);
  arena_mark mark = arena_here (scratch);
  rewritten rw;
  predicted cost;
  timeline line;
  sim_options o = { .timeline_arena = scratch };
  int64_t live = 0;
  bool ok = plan_rewrite (t, p, scratch, &rw, err);
  sim_job job = { t, &rw, p };
  ok = ok && simulate (&job, 1, &o, scratch, &cost, &line, err) &&
       lost_live (&job, &line, scratch, &live, err);
  *bytes = ok && line.period_ns > 0 ? cost.peak_bytes - live : 0;
  arena_back (scratch, mark);
  return ok;
}
