/* Plans in which every stay of a part has the same granules.  Such places waste some: between two
   stays of a part its granules serve only who fits there.  So plans that count on all the budget
   are often refused or wait; those that count on a little less of it, and are placed in all of it,
   are tried beside them. */
#include "base/units.h"
#include "solver/solve.h"

static const int32_t counted_ppm[] = { 1000000, 950000, 900000, 850000, 780000 };
enum { TRIES = sizeof counted_ppm / sizeof *counted_ppm };

/* The bound of the whole budget, for a plan that counted on less. */
static bool certify (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  rewritten rw;
  certificate *c = &out->plan->certificate;
  if (!plan_rewrite (t, out->plan, a, &rw, err) || !solve_bound (rw.trace, o, a, &out->bound, err))
    return false;
  bool as_given = !out->plan->n_sections && !out->plan->n_recomputes;
  c->lower_bound_ns = out->bound.lower_bound_ns;
  c->bound_by = out->bound.by;
  c->proof = out->bound.proof;
  c->covers = as_given ? "every plan without sections and recompute"
                       : "every plan with this cut and these recompute entries";
  c->gap = (double)out->plan->predicted.step_ns / (double)c->lower_bound_ns - 1;
  return true;
}

static bool is_enough (const solve_options *o, const solution *s) {
  return s->plan->predicted.step_ns <= solve_enough_ns (o, s->plan->certificate.lower_bound_ns);
}

bool solve_same_places (const trace *t, const solve_options *o, arena *a, solution *out,
                        error *err) {
  solution best = { 0 };
  int64_t ticks = 0, candidates = 0;
  int winner = -1;
  bool stopped = false;
  error open = { 0 };
  for (int i = 0; i < TRIES; i++) {
    solve_options less = *o;
    solution s;
    error why = { 0 };
    less.place_bytes = o->budget_bytes;
    less.budget_bytes = units_scale (o->budget_bytes, counted_ppm[i], 1000000);
    less.limit_ticks = o->limit_ticks ? o->limit_ticks / TRIES + 1 : SOLVE_LIMIT_TICKS / TRIES;
    if (!solve (t, &less, a, &s, &why)) {
      if (why.code != ERR_infeasible && why.code != ERR_limit)
        return error_set (err, why.code, "%s", why.text);
      if (why.code == ERR_limit && !open.code)
        open = why;
      continue;
    }
    ticks += s.ticks;
    candidates += s.candidates;
    if (winner < 0 || s.plan->predicted.step_ns < best.plan->predicted.step_ns) {
      best = s;
      winner = i;
    }
    if (o->stop && o->stop (o->stop_context))
      stopped = true;
    if (stopped || (i == 0 && is_enough (o, &s)))
      break;
  }
  if (winner < 0 && open.code)
    return error_set (err, open.code, "%s", open.text);
  if (winner < 0)
    return error_set (err, ERR_infeasible,
                      "no plan has the same granules for every stay of a part");
  *out = best;
  out->ticks = ticks;
  out->candidates = candidates;
  if (winner > 0 && !certify (t, o, a, out, err))
    return false;
  if (is_enough (o, out))
    out->plan->certificate.limit_met = NULL;
  else
    out->plan->certificate.limit_met = stopped ? "stopped" : "ticks";
  return true;
}
