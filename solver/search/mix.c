#include "solver/search/mix.h"

#include <stdio.h>

#include "base/units.h"
#include "solver/search/mix_inner.h"
#include "trace/summary.h"

static const variant as_it_is = { .name = "as it is" };

/* ---- what its files share ---- */

int64_t mix_best_ns (const mixing *m) {
  return m->best.plan ? m->best.plan->predicted.step_ns : INT64_MAX;
}

static bool near (const mixing *m, int64_t step_ns, int64_t bound_ns) {
  return step_ns <= solve_enough_ns (m->o, bound_ns);
}

bool mix_near (const mixing *m, int64_t step_ns) {
  return step_ns != INT64_MAX && near (m, step_ns, m->least_ns);
}

bool mix_is_over (const mixing *m) {
  return m->best.plan &&
         (mix_near (m, mix_best_ns (m)) || (m->o->stop && m->o->stop (m->o->stop_context)));
}

int64_t mix_share (const mixing *m, int64_t part) {
  enum { LEAST = 8 };
  int64_t left = (m->limit_ticks - m->ticks) / part, least = m->limit_ticks / LEAST;
  return (left > least ? left : least) + 1;
}

bool mix_try (mixing *m, const variant *v, const variant_value *known, solve_options how,
              error *err) {
  solution *s = &m->last;
  error why = { 0 };
  how.beat_ns = mix_best_ns (m);
  bool ok = variant_solve (m->t, v, &how, known, m->arena, s, &why);
  if (!ok && why.code != ERR_infeasible)
    return error_set (err, why.code, "%s", why.text);
  m->ticks += s->ticks / m->events + (how.guide ? 0 : s->bound.stats.ticks);
  if (!ok)
    s->plan = NULL;
  if (!v) {
    m->plain_ns = !ok ? INT64_MAX : s->plan ? s->plan->predicted.step_ns : 0;
    m->plain_bound_ns = !ok ? INT64_MAX : s->bound.lower_bound_ns;
  }
  if (s->plan && s->plan->predicted.step_ns < mix_best_ns (m)) {
    m->best = *s;
    m->taken = v;
  }
  return true;
}

/* ---- the plan without any of it ---- */

/* Whether the step as it is comes near compute anyway, so that nothing else is worth a look. */
static bool is_easy (mixing *m, bool *easy, error *err) {
  variant_value value;
  if (!variant_try (m->t, &as_it_is, m->o, m->scratch, &value, err))
    return false;
  *easy = value.step_ns != INT64_MAX && near (m, value.step_ns, m->compute_ns);
  return true;
}

/* With the limit that it has alone: a plan is not to be worse because something else was allowed.
   It comes last, since mostly its bound is above what was found by then. */
static bool solve_plain (mixing *m, error *err) {
  enum { MANY_OPS = 5000 }; /* then refining its program takes a minute */
  const solve_options *o = m->o;
  variant_value value;
  bool only = o->recompute == RECOMPUTE_ONLY;
  if (only && m->best.plan)
    return true;
  bool ok = only ? variant_try (m->t, &as_it_is, o, m->scratch, &value, err)
                 : variant_look (m->t, &as_it_is, o, m->scratch, &value, err);
  if (!ok)
    return false;
  int64_t least_ns = only ? value.step_ns : value.bound_ns; /* where nothing moves, all must fit */
  m->plain_ns = least_ns == INT64_MAX ? INT64_MAX : 0;
  m->plain_bound_ns = value.bound_ns;
  solve_options how = *o;
  if (least_ns < mix_best_ns (m) && m->best.plan && m->t->n_ops <= MANY_OPS) {
    how.rough = true;
    if (!variant_bound (m->t, &as_it_is, &how, m->scratch, &value, err))
      return false;
    m->ticks += value.ticks / m->events;
    least_ns = m->plain_bound_ns = value.bound_ns;
  }
  how.rough = m->t->n_ops > MANY_OPS;
  return least_ns >= mix_best_ns (m) || mix_try (m, NULL, NULL, how, err);
}

/* ---- the certificate ---- */

/* The bound that the program for drops proves, of the trace as it is. With sections allowed the
   caller knows a bound of every cut. */
static const char *bound_by (const mixing *m, int64_t ns) {
  if (ns == m->compute_ns)
    return "compute";
  return m->program.bound.dropped ? "drops-lp" : m->program.bound.by;
}

/* The tighter program says nothing of a plan that keeps what nothing reads any more. */
static bool widen (mixing *m, bool *keeps, error *err) {
  *keeps = m->taken == &m->small && m->small_keeps;
  for (int32_t i = 0; i < m->count; i++)
    *keeps |= m->taken == &m->at[i].v && m->at[i].from == FROM_KEEPING;
  return !*keeps || m->o->sections ||
         recompute_solve_program (m->t, NULL, m->o, false, m->arena, &m->program, err);
}

static bool certify (mixing *m, solution *s, error *err) {
  static const char *const allowed[] = { "without recompute entries",
                                         "with any cheap op made again", "with any op made again",
                                         "with any op made again" };
  const solve_options *o = m->o;
  plan *p = s->plan;
  certificate *c = &p->certificate;
  int64_t ns = m->compute_ns;
  bool keeps;
  if (!widen (m, &keeps, err))
    return false;
  bool drops = !o->sections && m->program.fits;
  if (drops && m->program.bound.lower_bound_ns > ns)
    ns = m->program.bound.lower_bound_ns;
  c->covers = ns == m->compute_ns
                  ? "every plan, with whatever sections and recompute entries"
                  : arena_format (m->arena, err, "every plan %s%s%s and without sections",
                                  allowed[o->recompute], keeps ? "" : " from what lives anyway",
                                  o->recompute == RECOMPUTE_ONLY ? " and nothing swapped" : "");
  if (!c->covers)
    return false;
  if (m->program.fits)
    s->bound.stats = m->program.bound.stats;
  c->bound_by = s->bound.by = bound_by (m, ns);
  c->lower_bound_ns = s->bound.lower_bound_ns = m->least_ns = ns;
  c->proof = s->bound.proof = drops ? m->program.bound.proof : NULL;
  if (o->keep_proof && !o->sections && !drops &&
      !(c->proof = s->bound.proof = bound_cheap_proof (
            "compute", NO_OP, true, o->recompute == RECOMPUTE_ONLY ? DROPS_ONLY : DROPS_ALLOWED,
            NULL, m->arena, err)))
    return false;
  c->gap = (double)p->predicted.step_ns / (double)ns - 1;
  c->limit_met = mix_near (m, p->predicted.step_ns) ? NULL : c->limit_met ? c->limit_met : "ticks";
  return true;
}

/* ---- why ---- */

static bool say_why (mixing *m, solution *s, error *err) {
  char plain[UNITS_TEXT], step[UNITS_TEXT], cut[128] = "";
  if (m->plain_ns == INT64_MAX || !m->plain_ns)
    snprintf (plain, sizeof plain, m->plain_ns ? "does not fit" : "cannot be as fast");
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

/* Only what is proved is called impossible: that the program has no solution, or that some op needs
   more, in whatever parts. */
static bool nothing_fits (mixing *m, error *err) {
  summary s;
  int64_t least_bytes;
  char budget[UNITS_TEXT], host[UNITS_TEXT], floor[UNITS_TEXT], cut[UNITS_TEXT];
  const solve_options *o = m->o;
  if (!summary_of (m->t, m->scratch, &s, err) ||
      !sections_floor (m->t, o, m->scratch, &least_bytes, err))
    return false;
  units_bytes (budget, o->budget_bytes);
  units_bytes (host, o->host_bytes);
  units_bytes (floor, s.floor_bytes);
  units_bytes (cut, s.floor_sections_bytes);
  bool open = o->sections ? o->budget_bytes >= least_bytes : m->program.fits;
  if (o->recompute == RECOMPUTE_ONLY && open)
    return error_set (err, ERR_limit,
                      "no set of drops was found that fits in %s without swapping%s, and none is "
                      "ruled out; allow swapping, or give more",
                      budget, o->sections ? ", in whatever sections" : "");
  if (open)
    return error_set (
        err, ERR_limit,
        "no plan was found in %s with %s of the host's memory, and none is ruled out; "
        "op %d alone needs %s, and with the most sections op %d %s; give more of "
        "either, or a higher limit",
        budget, host, s.floor_op, floor, s.floor_sections_op, cut);
  if (o->recompute == RECOMPUTE_ONLY && o->budget_bytes >= s.floor_bytes)
    return error_set (err, ERR_infeasible,
                      "nothing fits in %s without swapping, whatever is made again%s; allow it, or "
                      "give more",
                      budget, o->sections ? "" : " (no sections)");
  return error_set (
      err, ERR_infeasible,
      "nothing fits in %s; op %d alone needs %s, and with the most sections op %d %s; "
      "give more%s",
      budget, s.floor_op, floor, s.floor_sections_op, cut, o->sections ? "" : " or allow sections");
}

/* ---- the whole ---- */

/* What drops can do on the trace as it is, and so whether they are worth a look. */
static bool solve_program (mixing *m, error *err) {
  enum { DEAR_PART = 8 };
  const solve_options *o = m->o;
  if (o->recompute == RECOMPUTE_OFF || mix_is_over (m))
    return true;
  solve_options how = *o;
  how.dear_ticks = m->limit_ticks / DEAR_PART + 1;
  if (!recompute_solve_program (m->t, NULL, &how, true, m->arena, &m->program, err))
    return false;
  /* it has to be, so it leaves half of any limit to the rest */
  int64_t took = m->program.bound.stats.ticks, half = m->limit_ticks / 2;
  m->ticks += took < half ? took : half;
  if (!o->sections && m->program.fits && m->program.bound.lower_bound_ns > m->least_ns)
    m->least_ns = m->program.bound.lower_bound_ns;
  return true;
}

static bool choose (mixing *m, error *err) {
  const solve_options *o = m->o;
  bool easy;
  if (!is_easy (m, &easy, err) || (easy && !solve_plain (m, err)) || !mix_cuts (m, err) ||
      !solve_program (m, err))
    return false;
  bool drops = o->recompute != RECOMPUTE_OFF;
  bool alone = drops && m->program.fits && m->program.bound.lower_bound_ns < mix_best_ns (m);
  return (!alone || mix_drops (m, err)) && (!drops || mix_both (m, err)) &&
         (easy || solve_plain (m, err)) && mix_small (m, err);
}

/* About 15 seconds, and up to a minute for the largest. */
int64_t mix_default_ticks (const trace *t) {
  enum { FEW_OPS = 1500, MOST_PART = 4, LIMIT_TICKS = 10000000 };
  int64_t most = (int64_t)LIMIT_TICKS * MOST_PART,
          ticks = (int64_t)LIMIT_TICKS * t->n_ops / FEW_OPS;
  return ticks < LIMIT_TICKS ? LIMIT_TICKS : ticks < most ? ticks : most;
}

bool mix_solve (const trace *t, const solve_options *o, int64_t least_ns, arena *a, solution *out,
                error *err) {
  mixing *m = NEW (a, 1, mixing, err);
  *out = (solution){ 0 };
  if (!m)
    return false;
  *m = (mixing){ .t = t, .o = o, .arena = a, .compute_ns = trace_total_ns (t) };
  m->least_ns = least_ns > m->compute_ns ? least_ns : m->compute_ns;
  m->limit_ticks = o->limit_ticks ? o->limit_ticks : mix_default_ticks (t);
  m->events = solve_events_per_tick (t->n_ops);
  m->scratch = arena_new (0);
  bool ok = m->scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok && choose (m, err) && (m->best.plan || nothing_fits (m, err));
  if (ok) {
    *out = m->best;
    out->ticks = m->ticks;
    out->plain_bound_ns = m->plain_bound_ns;
    ok = certify (m, out, err) && say_why (m, out, err);
  }
  arena_free (m->scratch);
  return ok;
}
