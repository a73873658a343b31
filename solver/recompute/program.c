/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program with drops of one cut: a bound, its proof, and what it would drop. */
#include <assert.h>

#include "base/units.h"
#include "solver/recompute/recompute.h"

bool recompute_may_drop (const trace *t, const solve_options *o, arena *a, uint8_t **again,
                         error *err) {
  assert (t && again);
  policy_view view;
  *again = NULL;
  if (o->recompute != RECOMPUTE_CHEAP)
    return true;
  *again = NEW (a, t->n_ops, uint8_t, err);
  if (!*again || !policy_view_build (t, o->device, o->budget_bytes, o->host_bytes, a, &view, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++)
    (*again)[k] = recompute_is_cheap (&view, k);
  return true;
}

static bool solve_program (const trace *t, const variant *cut, const solve_options *o,
                           const bound_options *wish, arena *a, recompute_program *out,
                           error *err) {
  static const variant nothing = { .name = "swap" };
  uint8_t *again;
  error why = { 0 };
  *out = (recompute_program){ .fits = true };
  rewritten_step *step = NEW (a, 1, rewritten_step, err);
  if (!step || !variant_rewrite (t, cut ? cut : &nothing, o, a, step, err) ||
      !recompute_may_drop (step->rw.trace, o, a, &again, err))
    return false;
  bound_options how = *wish;
  how.limit_rounds = -1; /* on GPT-2 XL no round gained anything */
  how.drops = o->recompute == RECOMPUTE_ONLY ? DROPS_ONLY : DROPS_ALLOWED;
  how.again = again;
  out->step = step;
  if (bound_of (&step->step.gaps, &how, a, &out->bound, &why))
    return true;
  out->fits = false;
  return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
}

bool recompute_solve_program (const trace *t, const variant *cut, const solve_options *o,
                              const effort *e, bool fresh, arena *a, recompute_program *out,
                              error *err) {
  assert (o->recompute != RECOMPUTE_OFF && out);
  bound_options how = solve_bound_options (o);
  how.fresh = fresh;
  how.dear_ticks = e ? e->dear_ticks : 0;
  return solve_program (t, cut, o, &how, a, out, err);
}

bool recompute_solve_guide (const trace *t, const variant *cut, const solve_options *o,
                            int64_t budget_bytes, arena *a, recompute_program *out, error *err) {
  assert (budget_bytes >= 0 && out);
  bound_options how = solve_bound_options (o);
  how.fresh = how.shares_only = true;
  how.keep_proof = false;
  solve_options less = *o;
  less.budget_bytes = budget_bytes;
  return solve_program (t, cut, &less, &how, a, out, err);
}
