/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/robust.h"

#include <assert.h>

#include "base/units.h"
#include "trace/simulate/noise.h"

/* ---- plans that are kept ---- */

static int64_t most_ns (const search *s, int64_t least_ns) {
  int64_t apart_ppm = tuned (s->options->tuning, TUNE_noise_apart_ppm);
  return least_ns + units_scale (least_ns, apart_ppm, 1000000);
}

/* A plan too slow beside a new best goes; its memory stays, behind the others. */
static void sift (robust *k, const search *s, int64_t least_ns) {
  int32_t kept = 0;
  for (int32_t i = 0; i < k->count; i++)
    if (k->at[i].c.step_ns <= most_ns (s, least_ns)) {
      robust_entry out = k->at[kept];
      k->at[kept++] = k->at[i];
      k->at[i] = out;
    }
  k->count = kept;
}

static int32_t longest (const robust *k) {
  int32_t at = 0;
  for (int32_t i = 1; i < k->count; i++)
    if (k->at[i].c.step_ns >= k->at[at].c.step_ns)
      at = i;
  return at;
}

static int64_t least (const robust *k) {
  int64_t ns = INT64_MAX;
  for (int32_t i = 0; i < k->count; i++)
    ns = k->at[i].c.step_ns < ns ? k->at[i].c.step_ns : ns;
  return ns;
}

/* Other candidates may come to the same plan. */
static uint64_t hash_of (const plan *p) {
  uint64_t h = 1;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *m = &p->moves[i];
    int64_t what[] = { m->unit,      m->part,   m->of,      m->out_after,
                       m->in_before, m->in_ops, m->in_outs, m->clean };
    for (size_t j = 0; j < sizeof what / sizeof *what; j++)
      h = random_mix (h, what[j]);
  }
  for (int32_t i = 0; i < p->n_outs; i++)
    h = random_mix (h, p->out_order[i]);
  for (int32_t i = 0; i < p->n_ins; i++)
    h = random_mix (h, p->in_order[i]);
  for (int32_t i = 0; i < p->n_op_waits; i++)
    h = random_mix (random_mix (h, p->op_waits[i].op), p->op_waits[i].outs);
  return h;
}

static bool make_room (robust_entry *e, search *s, const layout *l, error *err) {
  int32_t gaps = l->step.gaps.count, units = l->step.units.count;
  if (e->c.of && e->gaps_room >= gaps && e->units_room >= units)
    return true;
  e->gaps_room = gaps;
  e->units_room = units;
  e->c.of = NEW (s->arena, units, int32_t, err);
  e->c.parts = NEW (s->arena, gaps, int32_t, err);
  e->c.heads = NEW (s->arena, gaps, int32_t, err);
  e->c.turn = NEW (s->arena, gaps, int32_t, err);
  e->c.not_before = NEW (s->arena, gaps, int32_t, err);
  return e->c.of && e->c.parts && e->c.heads && e->c.turn && e->c.not_before;
}

bool robust_offer (robust *k, search *s, const candidate *c, const plan *p, error *err) {
  assert (k->count >= 0 && k->count <= ROBUST_PLANS);
  int64_t least_ns = least (k);
  if (k->count && c->step_ns > most_ns (s, least_ns))
    return true;
  uint64_t hash = hash_of (p);
  for (int32_t i = 0; i < k->count; i++)
    if (k->at[i].hash == hash)
      return true;
  if (c->step_ns < least_ns)
    sift (k, s, c->step_ns);
  int32_t to = k->count;
  if (to == ROBUST_PLANS) {
    to = longest (k);
    if (c->step_ns >= k->at[to].c.step_ns)
      return true;
  }
  if (!make_room (&k->at[to], s, c->layout, err))
    return false;
  search_copy (&k->at[to].c, c);
  k->at[to].hash = hash;
  k->count += to == k->count;
  return true;
}

/* ---- the choice ---- */

static int32_t days_of (const solve_options *o) {
  return (int32_t)tuned (o->tuning, TUNE_noise_days);
}

static bool spread_of (const trace *t, const plan *p, const solve_options *o, arena *scratch,
                       noise_spread *out, error *err) {
  noise_options how = { o->noise_percent, days_of (o), o->seed };
  return noise_of_plan (t, p, &how, scratch, out, err);
}

bool robust_alone (const trace *t, const plan *p, const solve_options *o, arena *scratch,
                   robustness *out, error *err) {
  noise_spread spread;
  if (!spread_of (t, p, o, scratch, &spread, err))
    return false;
  *out = (robustness){ .p95_ppm = spread.p95_ppm, .fastest_p95_ppm = spread.p95_ppm };
  out->percent = o->noise_percent;
  out->days = days_of (o);
  out->plans = 1;
  return true;
}

/* Its plan lives only as long as it is judged. */
static bool judge (search *s, const candidate *c, int64_t *p95_ppm, error *err) {
  arena *kept = s->arena;
  candidate same = *c;
  plan *p = NULL;
  noise_spread spread;
  if (!(s->arena = arena_made (err))) {
    s->arena = kept;
    return false;
  }
  bool ok = search_cost (s, &same, &p, err) &&
            (p || error_set (err, ERR_internal, "a candidate has lost its plan")) &&
            spread_of (s->trace, p, s->options, s->scratch, &spread, err);
  arena_free (s->arena);
  s->arena = kept;
  *p95_ppm = ok ? spread.p95_ppm : 0;
  return ok;
}

/* With the same moves, copies in that start earlier cost nothing where the link has time, and then
   they are those that a longer copy or a shorter op does not harm. */
static bool try_timings (search *s, error *err) {
  enum { EARLIES = TUNE_noise_early_ppm_last - TUNE_noise_early_ppm + 1 };
  candidate best;
  if (!search_candidate (s, s->arena, &best, err))
    return false;
  search_copy (&best, &s->best);
  for (int order = 0; order < 2; order++)
    for (int i = 0; i < EARLIES; i++) {
      search_copy (&s->trial, &best);
      s->trial.early_ppm = tuned (s->options->tuning, TUNE_noise_early_ppm + (tuning_id)i);
      s->trial.by_release = best.by_release != (order == 1);
      if (!search_try (s, err))
        return false;
    }
  return true;
}

static void say (const search *s, const candidate *c, int64_t p95_ppm) {
  char step[UNITS_TEXT];
  log_say (s->options->log, LOG_PROGRESS, "plan %s by %s, on 95 of 100 days %.3f %% over compute",
           units_time (step, c->step_ns), c->found_by, (double)p95_ppm / 10000);
}

bool robust_choose (robust *k, search *s, robustness *out, error *err) {
  assert (s->options->noise_percent > 0);
  int64_t ticks = s->ticks, tried = s->tried, best_ppm = 0;
  if (!try_timings (s, err))
    return false;
  int64_t fastest_ns = s->best.step_ns;
  int64_t limit_ns = fastest_ns <= s->enough_ns ? s->enough_ns : INT64_MAX;
  const candidate *best = NULL;
  bool fastest_seen = false;
  *out = (robustness){ .percent = s->options->noise_percent, .days = days_of (s->options) };
  for (int32_t i = 0; i < k->count; i++) {
    const candidate *c = &k->at[i].c;
    int64_t ppm;
    if (c->step_ns > limit_ns)
      continue;
    if (!judge (s, c, &ppm, err))
      return false;
    say (s, c, ppm);
    if (c->step_ns == fastest_ns && !fastest_seen)
      out->fastest_p95_ppm = ppm;
    fastest_seen |= c->step_ns == fastest_ns;
    out->plans++;
    if (!best || ppm < best_ppm || (ppm == best_ppm && c->step_ns < best->step_ns)) {
      best = c;
      best_ppm = ppm;
    }
  }
  out->p95_ppm = best_ppm;
  if (best)
    search_copy (&s->best, best);
  s->ticks = ticks;
  s->tried = tried;
  return true;
}
