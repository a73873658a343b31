#include "solver/search.h"

#include <string.h>

#include "base/units.h"
#include "trace/simulate.h"

/* Air for the scheduler: at the edge of the budget a granule's former owner is waited for. */
static const int32_t rooms_ppm[] = { 997000, 1000000, 990000, 980000, 960000 };

static const int64_t early_ppm[] = { 0, 10000, 40000, -1, 120000 };

static bool candidate_new (search *s, candidate *c, error *err) {
  c->parts = NEW (s->arena, s->gaps->count, int32_t, err);
  c->not_before = NEW (s->arena, s->gaps->count, int32_t, err);
  c->step_ns = INT64_MAX;
  for (int32_t i = 0; c->not_before && i < s->gaps->count; i++)
    c->not_before[i] = NO_WAIT;
  return c->parts && c->not_before;
}

static void candidate_copy (const search *s, candidate *to, const candidate *from) {
  size_t size = (size_t)s->gaps->count * sizeof (int32_t);
  memcpy (to->parts, from->parts, size);
  memcpy (to->not_before, from->not_before, size);
  to->early_ppm = from->early_ppm;
  to->step_ns = from->step_ns;
  to->found_by = from->found_by;
}

bool search_begin (search *s, error *err) {
  s->random = random_seed (s->options->seed);
  s->ticks = s->tried = 0;
  s->stopped = false;
  return trace_digest (s->trace, s->digest, err) && candidate_new (s, &s->best, err) &&
         candidate_new (s, &s->trial, err);
}

static bool make_wishes (search *s, const candidate *c, arena *a, wish **out, int32_t *count,
                         error *err) {
  rounding r = { .gaps = s->gaps, .of = s->of, .parts = c->parts };
  if (!round_wishes (&r, a, out, count, err))
    return false;
  int32_t at = 0;
  for (int32_t i = 0; i < s->gaps->count; i++)
    for (int32_t part = 0; part < c->parts[i]; part++)
      (*out)[at++].in_not_before = c->not_before[i];
  return true;
}

bool search_cost (search *s, candidate *c, plan **made, error *err) {
  arena *a = made ? s->arena : s->scratch;
  arena_mark mark = arena_here (s->scratch);
  wish *wishes;
  int32_t count;
  error why = { 0 };
  c->step_ns = INT64_MAX;
  s->schedule.early_ppm = c->early_ppm;
  if (!make_wishes (s, c, s->scratch, &wishes, &count, err))
    return false;
  const variant *v = s->variant;
  plan *p =
      schedule (s->trace, s->rewritten, v->sections, v->n_sections, v->recomputes, v->n_recomputes,
                s->groups, s->n_groups, s->options->device, wishes, count, &s->schedule, a, NULL,
                &why);
  s->tried++;
  s->ticks += 2 * (int64_t)s->gaps->n_ops + 4 * (int64_t)count;
  bool ok = true;
  if (p) {
    sim_job job = { s->trace, s->rewritten, p };
    sim_options o = { .events = &s->ticks };
    ok = simulate (&job, 1, &o, s->scratch, &p->predicted, NULL, err);
    p->has_predicted = ok;
    c->step_ns = ok ? p->predicted.step_ns : INT64_MAX;
  } else if (why.code != ERR_infeasible) {
    if (err && !err->code)
      *err = why;
    ok = false;
  }
  if (made)
    *made = p;
  arena_back (s->scratch, mark);
  return ok;
}

bool search_is_over (search *s) {
  if (s->options->stop && s->options->stop (s->options->stop_context))
    s->stopped = true;
  /* no limit is met before there is any plan: "none" is said only where every start has failed */
  return s->best.step_ns < INT64_MAX &&
         (s->stopped || s->best.step_ns <= s->enough_ns || s->ticks >= s->limit_ticks);
}

/* Keeps the trial where it is better. */
bool search_keep (search *s) {
  if (s->trial.step_ns >= s->best.step_ns)
    return false;
  candidate_copy (s, &s->best, &s->trial);
  char step[UNITS_TEXT], least[UNITS_TEXT];
  log_say (
      s->options->log, LOG_PROGRESS, "plan %s by %s, bound %s, gap %.2f %%",
      units_time (step, s->best.step_ns), s->best.found_by, units_time (least, s->lower_bound_ns),
      s->lower_bound_ns ? 100.0 * (double)s->best.step_ns / (double)s->lower_bound_ns - 100 : 0);
  return true;
}

/* One rounding, with each of the timings. */
static bool start_from (search *s, round_start start, const double *shares, int64_t room_bytes,
                        error *err) {
  error why = { 0 };
  rounding r;
  arena_mark mark = arena_here (s->scratch);
  if (!round_gaps (s->gaps, s->of, s->options->device, start, shares, room_bytes, s->scratch, &r,
                   &why)) {
    arena_back (s->scratch, mark);
    return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
  }
  memcpy (s->trial.parts, r.parts, (size_t)s->gaps->count * sizeof *r.parts);
  for (int32_t g = 0; g < s->gaps->count; g++)
    s->trial.not_before[g] = NO_WAIT;
  arena_back (s->scratch, mark);
  s->trial.found_by = round_names[start];
  for (size_t j = 0; j < sizeof early_ppm / sizeof *early_ppm && !search_is_over (s); j++) {
    s->trial.early_ppm = early_ppm[j];
    if (!search_cost (s, &s->trial, NULL, err))
      return false;
    search_keep (s);
  }
  return true;
}

bool search_starts (search *s, const double *const shares[SEARCH_GUIDES], error *err) {
  static const round_start guided[] = { ROUND_NEAREST, ROUND_UP };
  static const round_start greedy[] = { ROUND_LONGEST, ROUND_DOA };
  for (size_t i = 0; i < sizeof rooms_ppm / sizeof *rooms_ppm; i++) {
    int64_t room = units_scale (s->gaps->room_bytes, rooms_ppm[i], 1000000);
    for (int g = 0; g < 2 * SEARCH_GUIDES; g++)
      if (shares[g / 2] && !search_is_over (s) &&
          !start_from (s, guided[g % 2], shares[g / 2], room, err))
        return false;
    for (int g = 0; g < 2; g++)
      if (!search_is_over (s) && !start_from (s, greedy[g], NULL, room, err))
        return false;
  }
  return true;
}
