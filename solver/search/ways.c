/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/search/ways.h"

#include <assert.h>
#include <stdio.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/options/allowed.h"
#include "solver/search/ways_inner.h"
#include "trace/summary.h"

/* A plan that is slower than what it is to beat by at most 1/NEARLY may still become faster in
   other places. */
enum { NEARLY = 16 };

/* ---- shared by its files ---- */

int64_t ways_best_ns (const ways *m) {
  if (m->best.plan)
    return m->best.plan->predicted.step_ns;
  return m->effort.beat_ns ? m->effort.beat_ns : INT64_MAX;
}

bool ways_near (const ways *m, int64_t step_ns) {
  return step_ns != INT64_MAX && step_ns <= solve_enough_of (&m->effort, m->least_ns);
}

/* The best is good enough in any case, the caller said: nothing comes behind it. */
static bool is_granted (const ways *m) {
  return ways_best_ns (m) <= m->effort.enough_ns;
}

bool ways_is_over (const ways *m) {
  return m->best.plan && (ways_near (m, ways_best_ns (m)) || solve_stops (m->o));
}

int64_t ways_share (const ways *m, int64_t part) {
  assert (part > 0);
  int64_t left = (m->limit_ticks - m->ticks) / part;
  int64_t least = m->limit_ticks / tuned (m->o->tuning, TUNE_search_least_part);
  return (left > least ? left : least) + 1;
}

bool ways_take (ways *m, const variant *v, const effort *how, bool ok, const error *why,
                error *err) {
  const solution *s = &m->last;
  if (!ok && why->code != ERR_infeasible)
    return error_set (err, why->code, "%s", why->text);
  m->ticks += ok ? s->ticks / m->events : 0;
  m->ticks += how->guide || (ok && !s->plan) ? 0 : s->bound.stats.ticks;
  m->tried += s->candidates;
  if (!ok)
    m->last.plan = NULL;
  if (!v) {
    m->plain_ns = !ok ? INT64_MAX : s->plan ? s->plan->predicted.step_ns : 0;
    if (ok) /* else none was found, which rules none out */
      m->plain_bound_ns = s->bound.lower_bound_ns;
  }
  if (s->plan && s->plan->predicted.step_ns < ways_best_ns (m)) {
    m->best = *s;
    m->taken = v;
  }
  return true;
}

bool ways_try (ways *m, const variant *v, const variant_value *known, effort how, error *err) {
  error why = { 0 };
  how.beat_ns = ways_best_ns (m);
  solve_request q = { .trace = m->t, .variant = v, .options = m->o, .effort = how, .known = known };
  bool ok = attempt_solve (&q, m->arena, &m->last, &why);
  return ways_take (m, v, &how, ok, &why, err);
}

/* ---- the certificate ---- */

/* The bound that the program for drops proves, of the trace as it is. With sections allowed the
   caller knows a bound of every cut. */
static const char *bound_by (const ways *m, int64_t ns) {
  if (ns == m->compute_ns)
    return "compute";
  return m->program.bound.dropped ? "drops-lp" : m->program.bound.by;
}

bool ways_keeps (ways_source from) {
  return from == FROM_KEEPING || from == FROM_KEPT;
}

bool ways_widen (ways *m, error *err) {
  if (m->has_wide)
    return true;
  m->has_wide = true;
  return recompute_solve_program (m->t, NULL, m->o, NULL, false, m->arena, &m->wide, err);
}

/* The tighter program says nothing of a plan that keeps what nothing reads any more. */
static bool widen (ways *m, bool *keeps, error *err) {
  *keeps = m->taken == &m->small && m->small_keeps;
  for (int32_t i = 0; i < m->count; i++)
    *keeps |= m->taken == &m->at[i].v && ways_keeps (m->at[i].from);
  if (!*keeps || m->o->sections)
    return true;
  if (!ways_widen (m, err))
    return false;
  m->program = m->wide;
  return true;
}

static cover cover_of (const ways *m, bool by_compute, bool keeps) {
  cover c = by_compute ? cover_every : allowed_cover (m->o);
  if (!by_compute)
    c.sections = COVER_SECTIONS_NONE;
  c.kept &= by_compute || keeps;
  return c;
}

/* A proof of compute where no program was needed. */
static bool prove (ways *m, bool drops, const char **proof, error *err) {
  const solve_options *o = m->o;
  flow_drops how = o->recompute == RECOMPUTE_ONLY ? DROPS_ONLY : DROPS_ALLOWED;
  *proof = drops ? m->program.bound.proof : NULL;
  return !o->keep_proof || o->sections || drops ||
         (*proof = bound_cheap_proof ("compute", NO_OP, true, how, NULL, m->arena, err));
}

static bool certify (ways *m, solution *s, error *err) {
  const certificate *had = &s->plan->certificate;
  int64_t ns = m->compute_ns;
  bool keeps;
  if (!widen (m, &keeps, err))
    return false;
  bool drops = !m->o->sections && m->program.fits;
  if (drops && m->program.bound.lower_bound_ns > ns)
    ns = m->program.bound.lower_bound_ns;
  if (m->program.fits)
    s->bound.stats = m->program.bound.stats;
  s->bound.by = bound_by (m, ns);
  s->bound.lower_bound_ns = m->least_ns = ns;
  certified c = { .lower_bound_ns = ns,
                  .bound_by = s->bound.by,
                  .cover = cover_of (m, ns == m->compute_ns, keeps),
                  .found_by = had->found_by,
                  .enough_ns = solve_enough_of (&m->effort, ns),
                  .limit_met = had->limit_met ? had->limit_met : "ticks" };
  if (!prove (m, drops, &s->bound.proof, err))
    return false;
  c.proof = s->bound.proof;
  solve_write_certificate (s->plan, &c);
  return true;
}

/* ---- why ---- */

static bool say_why (ways *m, solution *s, error *err) {
  char plain[UNITS_TEXT], step[UNITS_TEXT], cut[128] = "";
  if (m->plain_ns == INT64_MAX || !m->plain_ns)
    snprintf (plain, sizeof plain, "%s",
              m->plain_ns      ? "does not fit"
              : is_granted (m) ? "was not needed"
                               : "cannot be as fast");
  else
    units_time (plain, m->plain_ns);
  if (m->o->sections)
    snprintf (cut, sizeof cut, "; %d cuts compared, %d too large, %d refused", m->family.proposed,
              m->family.too_large, m->family.refused);
  s->why = arena_format (
      m->arena, err,
      "%s: %s, %d sections, %d recompute entries; as it is, the step %s%s; %d sets of drops",
      m->taken ? m->taken->name : "as it is", units_time (step, s->plan->predicted.step_ns),
      s->plan->n_sections, s->plan->n_recomputes, plain, cut, m->drops_tried);
  if (s->why)
    log_say (m->o->log, LOG_PROGRESS, "%s", s->why);
  return s->why;
}

/* The part of the budget that a plan can take. */
static int64_t whole_granules (const solve_options *o) {
  int64_t granule = o->arena_granule_bytes ? o->arena_granule_bytes : o->device->granule_bytes;
  return o->budget_bytes / granule * granule;
}

/* Only what is proved is called impossible: that the program has no solution, or that some op needs
   more, in whatever parts. */
static bool nothing_fits (ways *m, error *err) {
  summary s;
  int64_t least_bytes;
  char budget[UNITS_TEXT], host[UNITS_TEXT], floor[UNITS_TEXT], least[UNITS_TEXT];
  char cut[UNITS_TEXT + 64] = "";
  const solve_options *o = m->o;
  if (m->effort.beat_ns)
    return error_set (err, ERR_limit, "no plan so fast was found, and none is ruled out");
  if (!summary_of (m->t, m->scratch, &s, err) ||
      !sections_floor (m->t, o, m->scratch, &least_bytes, err))
    return false;
  units_bytes (budget, o->budget_bytes);
  units_bytes (host, o->host_bytes + o->resting_bytes);
  units_bytes (floor, s.floor_bytes);
  if (s.floor_sections_bytes < s.floor_bytes)
    snprintf (cut, sizeof cut, ", and with the most sections op %d %s", s.floor_sections_op,
              units_bytes (least, s.floor_sections_bytes));
  int64_t room_bytes = whole_granules (o);
  bool open =
      o->sections ? room_bytes >= least_bytes : m->program.fits && room_bytes >= s.floor_bytes;
  if (o->recompute == RECOMPUTE_ONLY && open)
    return error_set (err, ERR_limit,
                      "no set of drops was found that fits in %s without swapping%s, and none is "
                      "ruled out; allow swapping, or give more",
                      budget, o->sections ? ", in whatever sections" : "");
  if (open)
    return error_set (
        err, ERR_limit,
        "no plan was found in %s with %s of the host's memory, and none is ruled out; "
        "op %d alone needs %s%s; give more of either, or a higher limit",
        budget, host, s.floor_op, floor, cut);
  if (o->recompute == RECOMPUTE_ONLY && o->budget_bytes >= s.floor_bytes)
    return error_set (err, ERR_infeasible,
                      "nothing fits in %s without swapping, whatever is made again%s; allow it, or "
                      "give more",
                      budget, o->sections ? "" : " (no sections)");
  return error_set (err, ERR_infeasible, "nothing fits in %s; op %d alone needs %s%s; give more%s",
                    budget, s.floor_op, floor, cut,
                    *cut && !o->sections ? " or allow sections" : "");
}

/* ---- when the strategies apply ---- */

static bool always (const ways *m) {
  return m != NULL;
}

static bool not_granted (const ways *m) {
  return !is_granted (m);
}

static bool is_easy (const ways *m) {
  return m->easy;
}

static bool not_easy (const ways *m) {
  return !m->easy && !is_granted (m);
}

static bool may_cut (const ways *m) {
  return m->o->sections != SECTIONS_OFF && !ways_is_over (m);
}

static bool may_drop (const ways *m) {
  return m->o->recompute != RECOMPUTE_OFF && !ways_is_over (m);
}

/* A drop recomputes a tensor after its last use. A plan that keeps some inputs longer may be
   faster, even than the bound of plans that keep nothing. Its search solves one more program, so it
   needs at least half of the ticks. */
static bool may_keep (const ways *m) {
  int64_t best_ns = ways_best_ns (m);
  return m->remakes_dead && m->ticks / 2 < m->limit_ticks && !is_granted (m) &&
         !solve_stops (m->o) &&
         (!m->best.plan || best_ns > solve_enough_of (&m->effort, m->compute_ns));
}

/* The program's drops are asked for to a smaller gap than what comes behind. */
static bool pays (const ways *m) {
  return m->pays_alone;
}

static bool pays_alone (const ways *m) {
  return m->pays_alone && !ways_is_over (m);
}

/* Drops beside copies, and the best is not as near as the program's own sets would be. */
static bool may_rank (const ways *m) {
  int64_t gap_ppm = max_of (m->effort.gap_ppm, tuned (m->o->tuning, TUNE_program_sets_gap_ppm));
  int64_t near_ns = m->program.bound.lower_bound_ns;
  return pays_alone (m) && m->o->recompute != RECOMPUTE_ONLY &&
         ways_best_ns (m) > near_ns + units_scale (near_ns, gap_ppm, 1000000);
}

/* ---- the program ---- */

/* The worth of drops on the trace as it is, and so the reason to look at them or not. */
static bool ways_program (ways *m, error *err) {
  const solve_options *o = m->o;
  effort how = { .dear_ticks = m->limit_ticks / tuned (o->tuning, TUNE_search_dear_part) + 1 };
  if (!recompute_solve_program (m->t, NULL, o, &how, true, m->arena, &m->program, err))
    return false;
  /* it has to be, so it leaves half of any limit to the rest */
  int64_t took = m->program.bound.stats.ticks, half = m->limit_ticks / 2;
  m->ticks += took < half ? took : half;
  if (!o->sections && m->program.fits && m->program.bound.lower_bound_ns > m->least_ns)
    m->least_ns = m->program.bound.lower_bound_ns;
  m->pays_alone = m->program.fits && m->program.bound.lower_bound_ns < ways_best_ns (m);
  return true;
}

/* ---- the search ---- */

static search_place place_of (const ways *m) {
  return (search_place){ ways_best_ns (m), m->tried + m->drops_tried, m->ticks * m->events };
}

#define RULE_SEARCH(name, applies, part) { STRATEGY_SEARCH_##name, applies, ways_##name, part },
#define STAGE_RUN run_strategies
#define STAGE_SEARCH ways
#define STAGE_ASKED const ways
#define STAGE_OPTIONS o
#define STAGE_GRANT(m, parts) (m)->part = (parts)
#include "solver/tuning/stage.def"

/* About 15 seconds, and up to a minute for the largest. */
int64_t ways_default_ticks (const trace *t, const tuning *by) {
  int64_t least = tuned (by, TUNE_search_ticks), most = least * tuned (by, TUNE_search_most_times);
  int64_t ticks = units_scale (least, t->n_ops, tuned (by, TUNE_search_few_ops));
  return ticks < least ? least : ticks < most ? ticks : most;
}

int64_t ways_swaps_ticks (const trace *t, const tuning *by) {
  return tuned (by, TUNE_search_swaps_ticks) * solve_events_per_tick (t->n_ops);
}

int64_t ways_plain_ticks (const trace *t, const tuning *by, int64_t limit_ticks) {
  int64_t usual = ways_default_ticks (t, by), alone = ways_swaps_ticks (t, by);
  return alone > usual ? units_scale (limit_ticks, alone, usual) : limit_ticks;
}

bool ways_solve (const solve_request *q, arena *a, solution *out, error *err) {
  assert (q->trace && q->options->device);
  const trace *t = q->trace;
  const solve_options *o = q->options;
  ways *m = NEW (a, 1, ways, err);
  *out = (solution){ 0 };
  if (!m)
    return false;
  assert (o->sections != SECTIONS_OFF || o->recompute != RECOMPUTE_OFF);
  *m = (ways){ .t = t, .o = o, .effort = q->effort, .arena = a, .compute_ns = trace_total_ns (t) };
  m->effort.beat_ns += m->effort.beat_ns / NEARLY;
  m->least_ns = q->least_ns > m->compute_ns ? q->least_ns : m->compute_ns;
  m->limit_ticks =
      q->effort.limit_ticks ? q->effort.limit_ticks : ways_default_ticks (t, o->tuning);
  m->events = solve_events_per_tick (t->n_ops);
  m->scratch = arena_made (err);
  bool ok = m->scratch && run_strategies (m, err) && (m->best.plan || nothing_fits (m, err));
  if (ok) {
    *out = m->best;
    out->plain_bound_ns = m->plain_bound_ns;
    ok = certify (m, out, err) && say_why (m, out, err);
  }
  out->ticks = m->ticks;
  assert (!ok || out->plan->certificate.lower_bound_ns == out->bound.lower_bound_ns);
  lane_drop (&m->beside.lane);
  arena_free (m->scratch);
  return ok;
}
