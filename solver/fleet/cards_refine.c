/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans at the chosen point: once more with what was left over, and bound to their card. */
#include <assert.h>

#include "base/units.h"
#include "solver/fleet/cards_inner.h"
#include "solver/fleet/share.h"

/* A rewritten step on a part of the link: its certificate was about all of it. */
static void bound_by_compute (const trace *t, plan *p) {
  certified c = solve_by_compute (t, p);
  c.limit_met = p->certificate.limit_met;
  solve_write_certificate (p, &c);
}

bool cards_bind (placing *p, int32_t job, const plan *found, int32_t card, int64_t share_ppm,
                 const plan **out, error *err) {
  assert (found && share_ppm > 0 && out);
  plan *mine = NEW (p->a, 1, plan, err);
  bound b;
  error why = { 0 };
  if (!mine)
    return false;
  *mine = *found;
  mine->device = p->o->cards[card];
  mine->device.share_ppm = share_ppm;
  solve_options how = { .device = &mine->device,
                        .budget_bytes = mine->budget_bytes,
                        .host_bytes = mine->host_bytes,
                        .stop = p->o->sampling.stop,
                        .stop_context = p->o->sampling.stop_context };
  arena *scratch = arena_made (err);
  bool ok = scratch && simulate_plan (p->jobs[job].trace, mine, scratch, &mine->predicted, err);
  if (ok && (found->n_order || found->n_sections || found->n_recomputes)) {
    bound_by_compute (p->jobs[job].trace, mine);
  } else if (ok && solve_bound (p->jobs[job].trace, &how, scratch, &b, &why)) {
    certified c = { .lower_bound_ns = b.lower_bound_ns,
                    .bound_by = b.by,
                    .cover = cover_swaps,
                    .found_by = found->certificate.found_by,
                    .limit_met = found->certificate.limit_met };
    solve_write_certificate (mine, &c);
  } else {
    mine->has_certificate = false;
  }
  arena_free (scratch);
  *out = mine;
  return ok;
}

/* The sample's plan, or a better one with what was left over. */
static bool plan_place (placing *p, int32_t job, const plan *sample, int64_t link_ppm,
                        int64_t host_bytes, const cards_place *at, const plan **out, error *err) {
  *out = sample;
  device d = share_link (&p->o->cards[at->card], link_ppm);
  curve_options o = cards_sampling (p->o, &p->jobs[job]);
  curve again;
  predicted old;
  plan before = *sample;
  o.device = &d;
  o.host_bytes = host_bytes;
  o.progress = NULL;
  if (p->o->limit_ticks)
    o.limit_ticks = p->o->limit_ticks;
  before.device = d;
  arena *scratch = arena_made (err);
  bool ok = scratch && simulate_plan (p->jobs[job].trace, &before, scratch, &old, err) &&
            cards_curve (p, job, &o, &at->budget_bytes, 1, &again, err);
  arena_free (scratch);
  if (!ok)
    return false;
  if (again.points[0].plan && again.points[0].plan->predicted.step_ns < old.step_ns)
    *out = again.points[0].plan;
  return true;
}

/* True if x is the slower one, with all of them running. */
static bool slower_one (const cards_place *x, const cards_place *y) {
  return (__int128)x->together_ns * y->baseline_ns > (__int128)y->together_ns * x->baseline_ns;
}

/* Bytes that are left over go to the slowest first. */
static void share_out (cards_place **at, int32_t n, int64_t bytes, int64_t share_ppm,
                       int64_t granule) {
  bool given[CARDS_MOST_JOBS] = { false };
  for (int32_t i = 0; i < n; i++) {
    bytes -= at[i]->budget_bytes;
    share_ppm -= at[i]->share_ppm;
  }
  for (int32_t turn = 0; turn < n; turn++) {
    int32_t k = -1;
    for (int32_t i = 0; i < n; i++)
      if (!given[i] && (k < 0 || slower_one (at[i], at[k])))
        k = i;
    given[k] = true;
    int64_t wants = units_div_up (at[k]->peak_bytes, granule) * granule - at[k]->budget_bytes;
    int64_t gets = wants < bytes ? wants : bytes / granule * granule;
    at[k]->budget_bytes += gets > 0 ? gets : 0;
    bytes -= gets > 0 ? gets : 0;
    if (turn == 0)
      at[k]->share_ppm += share_ppm;
  }
}

bool cards_refine (placing *p, int32_t card, sharing *s, error *err) {
  sharing again = *s;
  int64_t host = cards_host_room (p->o, card);
  for (int32_t k = 0; k < s->n; k++) {
    s->at[k]->budget_bytes = cards_taken (p, s->jobs[k], s->plans[k]);
    s->at[k]->together_ns = s->step_ns[k];
    host -= s->plans[k]->predicted.host_peak_bytes;
  }
  share_out (s->at, s->n, cards_room (p->o, card, s->n), CARDS_ONE,
             p->o->cards[card].granule_bytes);
  for (int32_t k = 0; k < s->n; k++)
    if (!plan_place (p, s->jobs[k], s->plans[k], s->n * s->at[k]->share_ppm,
                     s->plans[k]->predicted.host_peak_bytes + host / s->n, s->at[k],
                     &again.plans[k], err))
      return false;
  if (!cards_judge (p, &again, err))
    return false;
  if (!cards_better (p, s, &again))
    *s = again;
  return true;
}
