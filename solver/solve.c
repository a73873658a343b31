#include "solver/solve.h"

#include <string.h>

#include "base/units.h"
#include "solver/search.h"
#include "trace/check.h"

enum { GAP_PPM = 5000 };
#define LIMIT_TICKS ((int64_t)60000000)

/* The bound's own view of memory: any granules, groups and pool that a plan may choose. */
bool solve_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  units u;
  gaps g;
  bound_options b = { .dev = o->device,
                      .host_bytes = o->host_bytes,
                      .any_units = true,
                      .keep_proof = o->keep_proof,
                      .log = o->log };
  return units_of (t, NULL, 0, 1, 0, a, &u, err) &&
         gaps_of (&u, 1, o->budget_bytes, a, &g, err) && bound_of (&g, &b, a, out, err);
}

bool solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  *out = (solution){ 0 };
  rewritten rw;
  units u, fine;
  gaps g, fine_gaps;
  arena *scratch = arena_new (0);
  bool ok = scratch || error_set (err, ERR_memory, "out of memory");
  search s = { .trace = t,
               .rewritten = &rw,
               .options = o,
               .gaps = &g,
               .arena = a,
               .scratch = scratch,
               .limit_ticks = o->limit_ticks ? o->limit_ticks : LIMIT_TICKS,
               .schedule = { .budget_bytes = o->budget_bytes,
                             .host_bytes = o->host_bytes,
                             .granule_bytes = o->device->granule_bytes,
                             .auto_clean = true } };
  s.schedule.pool_below_bytes = 0;
  ok = ok && trace_rewrite (t, NULL, 0, NULL, 0, 0, a, &rw, err) &&
       solve_bound (t, o, a, &out->bound, err) &&
       schedule_pool (t, NULL, 0, o->device->granule_bytes, a, &s.schedule.pool_below_bytes, NULL,
                      err) &&
       units_of (t, NULL, 0, o->device->granule_bytes, s.schedule.pool_below_bytes, a, &u, err) &&
       gaps_of (&u, o->device->granule_bytes, o->budget_bytes, a, &g, err);
  int32_t *of = ok ? NEW (a, u.count, int32_t, err) : NULL;
  double *share = NULL;
  ok = of != NULL;
  if (ok) {
    bound_options b = { .dev = o->device, .host_bytes = o->host_bytes, .log = o->log };
    bound guide;
    round_sections (&g, o->device, of);
    s.of = of;
    ok = units_of (t, NULL, 0, 1, s.schedule.pool_below_bytes, a, &fine, err) &&
         gaps_of (&fine, 1, o->budget_bytes, a, &fine_gaps, err) &&
         bound_of (&fine_gaps, &b, a, &guide, err);
    share = ok ? guide.share : NULL;
  }
  if (ok) {
    int64_t gap_ppm = o->gap_ppm ? o->gap_ppm : GAP_PPM;
    s.enough_ns = out->bound.lower_bound_ns +
                  units_scale (out->bound.lower_bound_ns, gap_ppm, 1000000);
    s.lower_bound_ns = out->bound.lower_bound_ns;
    s.schedule.trace_digest = s.digest;
    ok = search_begin (&s, err) && search_starts (&s, share, err) && search_improve (&s, err);
  }
  if (ok && s.best.step_ns == INT64_MAX)
    ok = gaps_too_small (&g, o->budget_bytes, err);
  ok = ok && search_cost (&s, &s.best, &out->plan, err);
  if (ok && !out->plan)
    ok = error_set (err, ERR_internal, "the best candidate has no plan");
  if (ok) {
    plan *p = out->plan;
    p->has_certificate = true;
    p->certificate = (certificate){
      .lower_bound_ns = out->bound.lower_bound_ns,
      .gap = (double)p->predicted.step_ns / (double)out->bound.lower_bound_ns - 1,
      .bound_by = out->bound.by,
      .covers = "every plan without sections and recompute",
      .found_by = s.best.found_by,
      .limit_met = s.best.step_ns <= s.enough_ns ? NULL : s.stopped ? "stopped" : "ticks",
      .proof = out->bound.proof,
    };
    out->ticks = s.ticks;
    out->candidates = s.tried;
    ok = check_plan (t, p, scratch, NULL, err);
  }
  arena_free (scratch);
  return ok;
}
