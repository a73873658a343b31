#include "solver/solve.h"

#include <string.h>

#include "base/units.h"
#include "solver/group.h"
#include "solver/mix.h"
#include "solver/search.h"
#include "trace/check.h"

enum { LARGE = 5000 };

/* The bound's own view of memory: any granules, groups and pool that a plan may choose. */
bool solve_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  units u;
  gaps g;
  bound_options b = { .dev = o->device,
                      .host_bytes = o->host_bytes,
                      .any_units = true,
                      .keep_proof = o->keep_proof,
                      .program = o->program,
                      .log = o->log,
                      .stop = o->stop,
                      .stop_context = o->stop_context };
  return units_of (t, NULL, 0, 1, 0, a, &u, err) && gaps_of (&u, 1, o->budget_bytes, a, &g, err) &&
         bound_of (&g, &b, a, out, err);
}

/* A step with less of this is stuck to its few granules; with the air, their next owners wait less.
 */
#define GUIDE_ROOM_PPM 997000

/* What rounding starts from: the shares of a program that counts memory in bytes, where classes of
   size see what a copy costs. */
static bool guide_by_bytes (const solve_options *o, const search *s, arena *a, const double **share,
                            error *err) {
  bound_options b = { .dev = o->device,
                      .host_bytes = o->host_bytes,
                      .log = o->log,
                      .stop = o->stop,
                      .stop_context = o->stop_context };
  units u;
  gaps g;
  bound guide;
  if (!units_of (s->rewritten->trace, s->groups, s->n_groups, 1, s->schedule.pool_below_bytes, a,
                 &u, err) ||
      !gaps_of (&u, 1, o->budget_bytes, a, &g, err) || !bound_of (&g, &b, a, &guide, err))
    return false;
  *share = guide.share;
  return true;
}

/* Or those of one that counts whole granules, as the plan will, with a little air, but pays the
   link for the bytes of an average one.  No bound: only a guide. */
static bool guide_by_granules (const solve_options *o, const units *u, arena *a,
                               const double **share, error *err) {
  int64_t granule = o->device->granule_bytes;
  int64_t budget_bytes = units_scale (o->budget_bytes, GUIDE_ROOM_PPM, 1000000);
  int32_t n = u->trace->n_ops;
  trace t = *u->trace;
  units whole = *u;
  device dev = *o->device;
  gaps g;
  bound guide;
  t.ops = NEW (a, n, op, err);
  whole.at = NEW (a, u->count, unit_info, err);
  if (!t.ops || !whole.at)
    return false;
  memcpy (t.ops, u->trace->ops, (size_t)n * sizeof *t.ops);
  memcpy (whole.at, u->at, (size_t)u->count * sizeof *whole.at);
  for (int32_t k = 0; k < n; k++)
    t.ops[k].workspace_bytes = units_div_up (t.ops[k].workspace_bytes, granule) * granule;
  __int128 bytes = 1, rooms = 1;
  for (int32_t i = 0; i < u->count; i++) {
    int64_t room = u->at[i].granules * granule;
    bytes += u->at[i].bytes;
    rooms += room;
    whole.at[i].bytes = whole.at[i].granules = room;
  }
  whole.trace = &t;
  whole.pool_bytes = units_div_up (u->pool_bytes, granule) * granule;
  int64_t ppm = (int64_t)(rooms * 1000000 / bytes);
  int64_t *rates[] = { &dev.link.d2h_bytes_per_s, &dev.link.h2d_bytes_per_s,
                       &dev.link.both_bytes_per_s };
  for (int i = 0; i < 3; i++)
    *rates[i] = units_scale (*rates[i], ppm, 1000000);
  bound_options b = { .dev = &dev,
                      .host_bytes = o->host_bytes,
                      .log = o->log,
                      .stop = o->stop,
                      .stop_context = o->stop_context };
  error why = { 0 };
  if (!gaps_of (&whole, 1, budget_bytes, a, &g, err))
    return false;
  if (bound_of (&g, &b, a, &guide, &why))
    *share = guide.share;
  else if (why.code != ERR_infeasible) /* that close to the floor there is no air */
    return error_set (err, why.code, "%s", why.text);
  return true;
}

static bool worth_a_program (const solve_options *o, const variant_value *known) {
  enum { MOST_OPS = 1500 };
  int64_t gap_ppm = o->gap_ppm ? o->gap_ppm : SOLVE_GAP_PPM;
  return known->n_ops <= MOST_OPS &&
         known->step_ns > known->bound_ns + units_scale (known->bound_ns, gap_ppm, 1000000);
}

static bool take_bound (const variant_value *known, bound *out) {
  *out = (bound){ .lower_bound_ns = known->bound_ns,
                  .compute_ns = known->compute_ns,
                  .by = known->bound_ns > known->compute_ns ? "crossing" : "compute" };
  return true;
}

bool variant_solve (const trace *t, const variant *v, const solve_options *o,
                    const variant_value *known, arena *a, solution *out, error *err) {
  static const variant nothing = { 0 };
  v = v ? v : &nothing;
  *out = (solution){ 0 };
  rewritten rw;
  units u;
  gaps g;
  index_list *groups = NULL;
  arena *scratch = arena_new (0);
  bool ok = scratch || error_set (err, ERR_memory, "out of memory");
  search s = { .trace = t,
               .rewritten = &rw,
               .variant = v,
               .options = o,
               .gaps = &g,
               .arena = a,
               .scratch = scratch,
               .limit_ticks = o->limit_ticks ? o->limit_ticks : SOLVE_LIMIT_TICKS,
               .schedule = { .budget_bytes = o->place_bytes ? o->place_bytes : o->budget_bytes,
                             .host_bytes = o->host_bytes,
                             .granule_bytes = o->device->granule_bytes,
                             .auto_clean = true,
                             .same_places = o->same_places } };
  s.schedule.pool_below_bytes = 0;
  ok = ok &&
       trace_rewrite (t, v->sections, v->n_sections, v->recomputes, v->n_recomputes,
                      o->device->section_ns, a, &rw, err) &&
       (known && !worth_a_program (o, known) ? take_bound (known, &out->bound)
                                             : solve_bound (rw.trace, o, a, &out->bound, err)) &&
       group_choose (rw.trace, o->device->granule_bytes, a, &groups, &s.n_groups,
                     &s.schedule.pool_below_bytes, err) &&
       units_of (rw.trace, groups, s.n_groups, o->device->granule_bytes,
                 s.schedule.pool_below_bytes, a, &u, err) &&
       gaps_of (&u, o->device->granule_bytes, o->budget_bytes, a, &g, err);
  int32_t *of = ok ? NEW (a, u.count, int32_t, err) : NULL;
  const double *shares[SEARCH_GUIDES] = { NULL };
  ok = ok && of;
  if (ok) {
    round_sections (&g, o->device, of);
    s.of = of;
    s.groups = groups;
  }
  if (ok && !(known && !worth_a_program (o, known)))
    ok = guide_by_granules (o, &u, a, &shares[0], err) &&
         (rw.trace->n_ops > LARGE || guide_by_bytes (o, &s, a, &shares[1], err));
  if (ok) {
    int64_t gap_ppm = o->gap_ppm ? o->gap_ppm : SOLVE_GAP_PPM;
    s.enough_ns =
        out->bound.lower_bound_ns + units_scale (out->bound.lower_bound_ns, gap_ppm, 1000000);
    s.lower_bound_ns = out->bound.lower_bound_ns;
    s.schedule.trace_digest = s.digest;
    ok = search_begin (&s, err);
    if (ok && o->recompute == RECOMPUTE_ONLY) { /* nothing moves */
      s.best.found_by = "drops";
      s.best.early_ppm = -1;
      ok = search_cost (&s, &s.best, NULL, err);
    } else {
      ok = ok && search_starts (&s, shares, err) && search_improve (&s, err);
    }
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
      .covers = v->n_sections || v->n_recomputes
                    ? "every plan with this cut and these recompute entries"
                    : "every plan without sections and recompute",
      .found_by = s.best.found_by,
      .limit_met = s.best.step_ns <= s.enough_ns ? NULL
                   : s.stopped                   ? "stopped"
                                                 : "ticks",
      .proof = out->bound.proof,
    };
    out->ticks = s.ticks;
    out->candidates = s.tried;
    ok = check_plan (t, p, scratch, NULL, err);
  }
  arena_free (scratch);
  return ok;
}

bool solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  if (o->same_places && !o->place_bytes)
    return solve_same_places (t, o, a, out, err);
  return o->sections == SECTIONS_OFF && o->recompute == RECOMPUTE_OFF
             ? variant_solve (t, NULL, o, NULL, a, out, err)
             : mix_solve (t, o, a, out, err);
}
