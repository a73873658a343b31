#include "solver/solve.h"

#include <string.h>

#include "base/units.h"
#include "solver/orders.h"
#include "solver/search/mix.h"
#include "solver/attempt/search_policies.h"
#include "solver/search/sections_bound.h"
#include "solver/attempt/steady.h"
#include "trace/check/check.h"

int64_t solve_enough_ns (const solve_options *o, int64_t bound_ns) {
  int64_t gap_ppm = o->gap_ppm ? o->gap_ppm : SOLVE_GAP_PPM;
  return bound_ns + units_scale (bound_ns, gap_ppm, 1000000);
}

/* The bound's own view of memory: any granules, groups and pool that a plan may choose. */
static bool bound_with (const trace *t, const solve_options *o, arena *a, units *u, gaps *g,
                        bound *out, error *err) {
  if (o->guide) {
    *out = *o->guide;
    return units_of (t, NULL, 0, 1, 0, a, u, err) && gaps_of (u, 1, o->budget_bytes, a, g, err);
  }
  bound_options b = { .dev = o->device,
                      .host_bytes = o->host_bytes,
                      .any_units = true,
                      .limit_rounds = o->rough ? -1 : 0,
                      .keep_proof = o->keep_proof,
                      .program = o->program,
                      .log = o->log,
                      .stop = o->stop,
                      .stop_context = o->stop_context };
  return units_of (t, NULL, 0, 1, 0, a, u, err) && gaps_of (u, 1, o->budget_bytes, a, g, err) &&
         bound_of (g, &b, a, out, err);
}

bool solve_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  units u;
  gaps g;
  return bound_with (t, o, a, &u, &g, out, err);
}

/* Of the kinds [from, end), the layouts that differ; the last of all is the one with the lowest
   floor where all are too large. */
static bool make_layouts (search *s, layout_kind from, layout_kind end, const gaps *singles,
                          const double *share, error *err) {
  if (!s->layouts && !(s->layouts = NEW (s->arena, LAYOUTS, layout, err)))
    return false;
  for (layout_kind kind = from; kind < end; kind++) {
    layout *l = &s->layouts[s->n_layouts];
    if (s->options->follow && kind != (layout_kind)s->options->follow->layout)
      continue;
    if (!layout_make (s->rewritten->trace, kind, s->options->device, s->options->budget_bytes,
                      singles, share, s->arena, l, err))
      return false;
    if (s->n_layouts == 0 || l->n_groups > 0 || kind >= LAYOUT_MANY)
      s->n_layouts++;
  }
  return true;
}

static bool too_small (const search *s, error *err) {
  const gaps *least = &s->layouts[0].gaps;
  for (int32_t i = 1; i < s->n_layouts; i++)
    if (s->layouts[i].gaps.floor_bytes < least->floor_bytes)
      least = &s->layouts[i].gaps;
  return gaps_too_small (least, s->options->budget_bytes, err);
}

static bool worth_a_program (const solve_options *o, const variant_value *known) {
  enum { MOST_OPS = 5000 };
  return known->n_ops <= MOST_OPS && known->step_ns > solve_enough_ns (o, known->bound_ns);
}

static bool take_bound (const variant_value *known, bound *out) {
  *out = (bound){ .lower_bound_ns = known->bound_ns,
                  .compute_ns = known->compute_ns,
                  .by = known->bound_ns > known->compute_ns ? "crossing" : "compute" };
  return true;
}

/* Nothing moves, so all that fit take as long; groups and granules may be why one does not. */
static bool keep_still (search *s, error *err) {
  bool ok = true;
  for (int32_t i = 0; ok && i < s->n_layouts && s->best.step_ns == INT64_MAX; i++) {
    search_clear (&s->trial, &s->layouts[i]);
    s->trial.found_by = "drops";
    s->trial.early_ppm = -1;
    ok = search_try (s, err);
  }
  return ok;
}

bool variant_solve (const trace *t, const variant *v, const solve_options *o,
                    const variant_value *known, arena *a, solution *out, error *err) {
  static const variant nothing = { 0 };
  v = v ? v : &nothing;
  *out = (solution){ 0 };
  rewritten rw;
  units u;
  gaps singles;
  arena *scratch = arena_new (0);
  bool ok = scratch || error_set (err, ERR_memory, "out of memory");
  bool program = !known || worth_a_program (o, known);
  steady near = { 0 };
  search s = { .trace = t,
               .rewritten = &rw,
               .variant = v,
               .options = o,
               .arena = a,
               .scratch = scratch,
               .steady = o->noise_percent ? &near : NULL,
               .limit_ticks = o->limit_ticks ? o->limit_ticks : SOLVE_LIMIT_TICKS,
               .schedule = { .budget_bytes = o->place_bytes ? o->place_bytes : o->budget_bytes,
                             .host_bytes = o->host_bytes,
                             .granule_bytes = o->device->granule_bytes,
                             .auto_clean = true,
                             .same_places = o->same_places } };
  ok = ok &&
       trace_rewrite (t, v->sections, v->n_sections, v->recomputes, v->n_recomputes,
                      o->device->section_ns, a, &rw, err) &&
       (program ? bound_with (rw.trace, o, a, &u, &singles, &out->bound, err)
                : take_bound (known, &out->bound));
  if (ok && o->beat_ns && out->bound.lower_bound_ns >= o->beat_ns)
    goto out;
  const gaps *guide = program ? &singles : NULL;
  const double *share = program ? out->bound.share : NULL;
  layout_kind first = o->follow || o->recompute == RECOMPUTE_ONLY ? LAYOUTS : LAYOUT_MIDDLE + 1;
  ok = ok && make_layouts (&s, LAYOUT_MIDDLE, first, guide, share, err);
  policies_found policies = { .which = -1, .step_ns = INT64_MAX };
  if (ok) {
    s.enough_ns = solve_enough_ns (o, out->bound.lower_bound_ns);
    s.enough_ns = s.enough_ns > o->enough_ns ? s.enough_ns : o->enough_ns;
    s.lower_bound_ns = out->bound.lower_bound_ns;
    s.schedule.trace_digest = s.digest;
    ok = search_begin (&s, err);
    if (ok && o->recompute == RECOMPUTE_ONLY) {
      ok = keep_still (&s, err);
    } else if (o->follow) {
      ok = ok && search_follow (&s, o->follow, err);
    } else {
      ok = ok && search_first (&s, err) &&
           (search_is_over (&s) ||
            (make_layouts (&s, first, LAYOUTS, guide, share, err) && search_widen (&s, err) &&
             search_every (&s, err) && search_starts (&s, err))) &&
           (o->own_only || search_policies (&s, &policies, err)) && search_improve (&s, err);
    }
  }
  /* their own plans know nothing of places */
  bool theirs = policies.step_ns < s.best.step_ns && !o->same_places;
  if (ok && s.best.step_ns == INT64_MAX && !theirs)
    ok = too_small (&s, err);
  if (ok && s.steady && !theirs)
    ok = steady_choose (s.steady, &s, &out->steady, err);
  ok = ok && (theirs ? search_policies_plan (&s, &policies, &out->plan, &s.best.found_by, err)
                     : search_cost (&s, &s.best, &out->plan, err));
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
      .limit_met = p->predicted.step_ns <= s.enough_ns ? NULL
                   : s.stopped                         ? "stopped"
                                                       : "ticks",
      .proof = out->bound.proof,
    };
    out->ticks = s.ticks;
    out->candidates = s.tried;
    out->recipe = (recipe){ s.best.layout->kind, s.best.early_ppm, s.best.by_release };
    ok = check_plan (t, p, scratch, NULL, err);
  }
out:
  arena_free (scratch);
  return ok;
}

static bool solve_in_order (const trace *t, const solve_options *o, arena *a, solution *out,
                            error *err) {
  if (o->same_places && !o->place_bytes)
    return solve_same_places (t, o, a, out, err);
  if (o->sections == SECTIONS_OFF && o->recompute == RECOMPUTE_OFF)
    return variant_solve (t, NULL, o, NULL, a, out, err);
  return (o->sections ? sections_solve (t, o, a, out, err) : mix_solve (t, o, 0, a, out, err)) &&
         (o->same_places || policies_take (t, o, a, out, err));
}

bool solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  return o->order == ORDER_AS_IS ? solve_in_order (t, o, a, out, err)
                                 : orders_solve (t, o, solve_in_order, a, out, err);
}
