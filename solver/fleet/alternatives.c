/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/alternatives.h"
#include "solver/fleet/cards_inner.h"

#include "base/units.h"
#include "solver/policy/policy.h"
#include "solver/fleet/share.h"
#include "solver/fleet/transition.h"

#define ONE ((int64_t)1000000)

typedef struct contest {
  cards_job jobs[CARDS_MOST_JOBS];
  const cards_place *places[CARDS_MOST_JOBS];
  int32_t n;
  const cards_options *o;
  const device *card;
  int64_t host_bytes;
  arena *a;
} contest;

/* A plan with this memory and all of the link; where there is none, *out is NULL. */
static bool plan_at (const contest *c, int32_t job, int64_t budget_bytes, int64_t host_bytes,
                     const plan **out, error *err) {
  curve_options o = cards_sampling (c->o, &c->jobs[job]);
  curve v;
  o.device = c->card;
  o.host_bytes = host_bytes;
  o.progress = NULL;
  if (c->o->limit_ticks)
    o.limit_ticks = c->o->limit_ticks;
  int64_t granule = c->card->granule_bytes, peak = c->places[job]->peak_bytes;
  int64_t most = units_div_up (peak, granule) * granule;
  int64_t budget = (budget_bytes < most ? budget_bytes : most) / granule * granule;
  if (!curve_of (c->jobs[job].trace, &o, &budget, 1, c->a, &v, err))
    return false;
  *out = v.points[0].plan;
  return true;
}

/* All at once, or one after the other. */
static bool run (const contest *c, const plan *const *plans, bool plenty, bool turns,
                 alternative *r, error *err) {
  share_job together[CARDS_MOST_JOBS];
  int64_t sum_ns = 0;
  r->fits = true;
  for (int32_t i = 0; i < c->n; i++) {
    together[i] = (share_job){ c->jobs[i].trace, plans[i] };
    r->peak_bytes[i] = plans[i]->predicted.peak_bytes;
    sum_ns += plans[i]->predicted.step_ns;
    if (turns && c->n > 1) { /* the tensors that it keeps come before its step and go after it */
      transition enters;
      const device_link *l = &c->card->link;
      if (!transition_between (c->jobs[i].trace, NULL, plans[i], c->a, &enters, err))
        return false;
      sum_ns += enters.in_ns + units_scale (enters.in_bytes, 1000000000, l->d2h_bytes_per_s);
    }
  }
  if (!turns && !share_simulate (together, c->n, plenty, c->a, r->step_ns, err))
    return false;
  for (int32_t i = 0; turns && i < c->n; i++)
    r->step_ns[i] = sum_ns;
  for (int32_t i = 0; i < c->n; i++) {
    int64_t slow = units_scale (r->step_ns[i], ONE, c->places[i]->baseline_ns);
    r->total_ppm += slow;
    r->worst_ppm = slow > r->worst_ppm ? slow : r->worst_ppm;
  }
  return true;
}

/* Plans at a budget each; the first job without one is the reason. */
static bool try_budgets (const contest *c, const int64_t *budgets, int64_t host_bytes, bool turns,
                         bool plenty, alternative *r, error *err) {
  const plan *plans[CARDS_MOST_JOBS];
  for (int32_t i = 0; i < c->n; i++) {
    char text[UNITS_TEXT];
    if (!plan_at (c, i, budgets[i], host_bytes, &plans[i], err))
      return false;
    if (!plans[i]) {
      r->note = arena_format (c->a, err, "%s has no plan in %s", c->jobs[i].name,
                              units_bytes (text, budgets[i]));
      return r->note;
    }
  }
  return run (c, plans, plenty, turns, r, err);
}

static bool tensile (const contest *c, alternative *r, error *err) {
  policy_view views[CARDS_MOST_JOBS];
  policy_choice choices[CARDS_MOST_JOBS] = { 0 };
  const plan *plans[CARDS_MOST_JOBS];
  int64_t peaks[CARDS_MOST_JOBS], room = cards_room (c->o, 0, c->n), left = room;
  char text[UNITS_TEXT];
  for (int32_t i = 0; i < c->n; i++)
    if (!policy_view_build (c->jobs[i].trace, c->card, room, c->host_bytes, c->a, &views[i], err))
      return false;
  if (!policy_tensile_jobs (views, c->n, room, c->a, choices, peaks, err))
    return false;
  for (int32_t i = 0; i < c->n; i++)
    left -= peaks[i];
  if (left < 0) {
    r->note = arena_format (c->a, err, "%s too much, and %s", units_bytes (text, -left),
                            choices[0].note ? choices[0].note : "its rounds end");
    return r->note;
  }
  for (int32_t i = 0; i < c->n; i++) {
    policy_answer got;
    policy_request request = { .trace = c->jobs[i].trace,
                               .device = c->card,
                               .budget_bytes = peaks[i] + left / c->n,
                               .host_bytes = c->host_bytes / c->n,
                               .choice = &choices[i] };
    if (!policy_run (POLICY_tensile, &request, c->a, &got, err))
      return false;
    if (!got.fits) {
      r->note = arena_format (c->a, err, "%s would need %s, with places and late copies",
                              c->jobs[i].name, units_bytes (text, got.reached_bytes));
      return r->note;
    }
    plans[i] = got.plan;
  }
  return run (c, plans, false, false, r, err);
}

static void measure (const contest *c, const alternative *plain, bool turns, alternative *r) {
  int64_t peak = 0, plain_peak = 0, time = 0, plain_time = 0;
  for (int32_t i = 0; i < c->n; i++) {
    peak = !turns ? peak + r->peak_bytes[i] : r->peak_bytes[i] > peak ? r->peak_bytes[i] : peak;
    plain_peak += plain->peak_bytes[i];
    time += r->step_ns[i];
    plain_time += plain->step_ns[i];
  }
  if (plain_peak <= 0 || plain_time <= 0)
    return;
  r->msr_ppm = ONE - units_scale (peak, ONE, plain_peak);
  r->eor_ppm = units_scale (time, ONE, plain_time) - ONE;
  r->has_cbr = r->eor_ppm > 0 && r->msr_ppm > 0;
  if (r->has_cbr)
    r->cbr_ppm = units_scale (r->msr_ppm, ONE, r->eor_ppm);
}

static bool contend (contest *c, alternative out[ALTERNATIVES], error *err) {
  int64_t whole[CARDS_MOST_JOBS], even[CARDS_MOST_JOBS], peaks[CARDS_MOST_JOBS];
  const plan *ours[CARDS_MOST_JOBS];
  for (int32_t i = 0; i < c->n; i++) {
    whole[i] = cards_room (c->o, 0, 1);
    even[i] = cards_room (c->o, 0, c->n) / c->n;
    peaks[i] = INT64_MAX / 2;
    ours[i] = c->places[i]->plan;
  }
  if (!run (c, ours, false, false, &out[ALTERNATIVE_OURS], err) ||
      !try_budgets (c, peaks, c->card->host_bytes, false, true, &out[ALTERNATIVE_PLAIN], err) ||
      !try_budgets (c, whole, c->host_bytes / c->n, true, false, &out[ALTERNATIVE_TURNS], err) ||
      !try_budgets (c, even, c->host_bytes / c->n, false, false, &out[ALTERNATIVE_EVEN], err) ||
      !tensile (c, &out[ALTERNATIVE_TENSILE], err))
    return false;
  for (int i = 0; i < ALTERNATIVES; i++)
    if (out[i].fits && out[ALTERNATIVE_PLAIN].fits)
      measure (c, &out[ALTERNATIVE_PLAIN], i == ALTERNATIVE_TURNS, &out[i]);
  return true;
}

bool alternatives_of (const cards_job *jobs, int32_t n_jobs, const cards_options *o,
                      const cards_answer *ours, arena *a, alternative out[ALTERNATIVES],
                      error *err) {
  static const char *const names[ALTERNATIVES] = { "ferry", "nothing moves", "in turn",
                                                   "even split", "tensile" };
  contest c = { .o = o, .card = &o->cards[0], .a = a };
  c.host_bytes = cards_host_room (o, 0);
  for (int i = 0; i < ALTERNATIVES; i++)
    out[i] = (alternative){ .name = names[i] };
  for (int32_t i = 0; i < n_jobs; i++)
    if (ours->places[i].card == 0) {
      c.jobs[c.n] = jobs[i];
      c.places[c.n++] = &ours->places[i];
    }
  return c.n == 0 || contend (&c, out, err);
}
