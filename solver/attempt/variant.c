#include "solver/attempt/variant.h"

#include <string.h>

#include "base/units.h"
#include "solver/attempt/parts.h"
#include "solver/attempt/round.h"
#include "solver/place/schedule.h"
#include "trace/simulate/simulate.h"

static bool same_list (const index_list *a, const index_list *b) {
  return a->count == b->count &&
         (!a->count || memcmp (a->at, b->at, (size_t)a->count * sizeof *a->at) == 0);
}

bool variant_same_drops (const variant *a, const variant *b) {
  bool same = a->n_recomputes == b->n_recomputes;
  for (int32_t i = 0; same && i < a->n_recomputes; i++) {
    const recompute *x = &a->recomputes[i], *y = &b->recomputes[i];
    same = x->before == y->before && same_list (&x->ops, &y->ops) &&
           same_list (&x->replaces, &y->replaces);
  }
  return same;
}

static bool rewrite (const trace *t, const variant *v, const solve_options *o, arena *a,
                     rewritten *rw, error *err) {
  return trace_rewrite (t, v->sections, v->n_sections, v->recomputes, v->n_recomputes,
                        o->device->section_ns, a, rw, err);
}

/* Counts bytes as any plan may: no granules, no pool. */
static bool look (const trace *t, const variant *v, const solve_options *o, arena *a, rewritten *rw,
                  gaps *g, variant_value *out, error *err) {
  error why = { 0 };
  units *u = NEW (a, 1, units, err);
  *out = (variant_value){ .bound_ns = INT64_MAX, .step_ns = INT64_MAX };
  if (!u)
    return false;
  if (!rewrite (t, v, o, a, rw, &why)) {
    if (why.code == ERR_input)
      return true;
    if (err && !err->code)
      *err = why;
    return false;
  }
  if (!units_of (rw->trace, NULL, 0, 1, 0, a, u, err) ||
      !gaps_of (u, 1, o->budget_bytes, a, g, err))
    return false;
  int32_t op;
  out->legal = true;
  out->n_ops = rw->trace->n_ops;
  out->compute_ns = trace_total_ns (rw->trace);
  out->floor_bytes = o->recompute == RECOMPUTE_ONLY ? g->peak_bytes : g->floor_bytes;
  out->over_bytes = out->floor_bytes > o->budget_bytes ? out->floor_bytes - o->budget_bytes : 0;
  if (out->over_bytes)
    return true;
  int64_t crossing_ns = bound_crossing (g, o->device, &op);
  out->bound_ns = crossing_ns > out->compute_ns ? crossing_ns : out->compute_ns;
  return true;
}

bool variant_look (const trace *t, const variant *v, const solve_options *o, arena *scratch,
                   variant_value *out, error *err) {
  arena_mark mark = arena_here (scratch);
  rewritten rw;
  gaps g;
  bool ok = look (t, v, o, scratch, &rw, &g, out, err);
  arena_back (scratch, mark);
  return ok;
}

bool variant_bound (const trace *t, const variant *v, const solve_options *o, arena *scratch,
                    variant_value *out, error *err) {
  arena_mark mark = arena_here (scratch);
  rewritten rw;
  gaps g;
  bound b;
  bound_options how = { .dev = o->device,
                        .host_bytes = o->host_bytes,
                        .any_units = true,
                        .classes = 1,
                        .limit_rounds = o->rough ? -1 : 0,
                        .log = o->log,
                        .stop = o->stop,
                        .stop_context = o->stop_context };
  bool ok = look (t, v, o, scratch, &rw, &g, out, err);
  if (ok && out->bound_ns != INT64_MAX) {
    error why = { 0 };
    bool fits = bound_of (&g, &how, scratch, &b, &why);
    if (!fits && why.code != ERR_infeasible)
      ok = error_set (err, why.code, "%s", why.text);
    out->bound_ns = fits ? b.lower_bound_ns : INT64_MAX; /* the host cannot hold what must leave */
    out->ticks = fits ? b.stats.ticks * solve_events_per_tick (out->n_ops) : 0;
  }
  arena_back (scratch, mark);
  return ok;
}

/* One greedy plan; *step_ns is INT64_MAX where it does not fit. */
static bool greedy_plan (const trace *t, const variant *v, const rewritten *rw,
                         const solve_options *o, const gaps *g, const int32_t *of,
                         round_start start, int64_t room_bytes, const schedule_options *how,
                         arena *a, int64_t *step_ns, int64_t *ticks, error *err) {
  rounding r;
  wish *wishes;
  int32_t count;
  error why = { 0 };
  predicted cost;
  bool ok = round_gaps (g, of, o->device, start, NULL, room_bytes, a, &r, &why) &&
            round_wishes (&r, a, &wishes, &count, &why);
  *step_ns = INT64_MAX;
  *ticks += g->count / 4 + 2 * (int64_t)g->n_ops + (ok ? 4 * (int64_t)count : 0);
  plan *p = ok ? schedule (t, rw, v->sections, v->n_sections, v->recomputes, v->n_recomputes, NULL,
                           0, o->device, wishes, count, how, a, NULL, &why)
               : NULL;
  if (p) {
    sim_job job = { t, rw, p };
    sim_options options = { .events = ticks };
    ok = simulate (&job, 1, &options, a, &cost, NULL, err);
    *step_ns = ok ? cost.step_ns : INT64_MAX;
    return ok;
  }
  if (why.code == ERR_infeasible)
    return true;
  if (err && !err->code)
    *err = why;
  return false;
}

bool variant_try (const trace *t, const variant *v, const solve_options *o, arena *scratch,
                  variant_value *out, error *err) {
  static const round_start starts[] = { ROUND_LONGEST, ROUND_DOA };
  static const int64_t early_ppm[] = { 40000, -1 };
  arena_mark mark = arena_here (scratch);
  rewritten rw;
  gaps rough, g;
  units u;
  schedule_options how = { .budget_bytes = o->budget_bytes,
                           .host_bytes = o->host_bytes,
                           .granule_bytes = o->device->granule_bytes,
                           .trace_digest = "",
                           .auto_clean = true,
                           .same_places = o->same_places };
  static const parts_rule blind = { .most = MOST_SECTIONS };
  int64_t pool_below_bytes = 0;
  int32_t *of = NULL;
  bool ok = look (t, v, o, scratch, &rw, &rough, out, err);
  if (!ok || out->bound_ns == INT64_MAX || (o->beat_ns && out->bound_ns >= o->beat_ns))
    goto out;
  ok =
      schedule_pool (rw.trace, NULL, 0, how.granule_bytes, scratch, &pool_below_bytes, NULL, err) &&
      units_of (rw.trace, NULL, 0, how.granule_bytes, pool_below_bytes, scratch, &u, err) &&
      gaps_of (&u, how.granule_bytes, o->budget_bytes, scratch, &g, err) &&
      (of = NEW (scratch, u.count, int32_t, err)) &&
      parts_choose (&g, o->device, NULL, &blind, scratch, of, err);
  if (!ok)
    goto out;
  int64_t least_bytes = o->recompute == RECOMPUTE_ONLY ? g.peak_bytes : g.floor_bytes;
  if (least_bytes > o->budget_bytes) { /* whole granules do not fit, though bytes would */
    out->over_bytes = least_bytes - o->budget_bytes;
    goto out;
  }
  how.pool_below_bytes = pool_below_bytes;
  if (g.peak_bytes <= o->budget_bytes) {
    out->step_ns = out->compute_ns;
    goto out;
  }
  int64_t room_bytes = units_scale (g.room_bytes, 990000, 1000000);
  for (int i = 0; ok && i < 4; i++) {
    arena_mark here = arena_here (scratch);
    int64_t step_ns;
    how.early_ppm = early_ppm[i % 2];
    ok = greedy_plan (t, v, &rw, o, &g, of, starts[i / 2], room_bytes, &how, scratch, &step_ns,
                      &out->ticks, err);
    if (ok && step_ns < out->step_ns)
      out->step_ns = step_ns;
    arena_back (scratch, here);
  }
out:
  arena_back (scratch, mark);
  return ok;
}
