/* The program with drops of one cut: a bound, its proof, and what it would drop. */
#include "base/units.h"
#include "solver/recompute/recompute.h"

bool recompute_may_drop (const trace *t, const solve_options *o, arena *a, uint8_t **again,
                         error *err) {
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

static bool solve_program (const trace *t, const variant *cut, const solve_options *o, bool fresh,
                           bool guide, arena *a, recompute_program *out, error *err) {
  static const variant nothing = { .name = "swap" };
  const variant *v = cut ? cut : &nothing;
  uint8_t *again;
  error why = { 0 };
  *out = (recompute_program){ .fits = true };
  if (!trace_rewrite (t, v->sections, v->n_sections, NULL, 0, o->device->section_ns, a, &out->rw,
                      err) ||
      !units_of (out->rw.trace, NULL, 0, 1, 0, a, &out->units, err) ||
      !gaps_of (&out->units, 1, o->budget_bytes, a, &out->gaps, err) ||
      !recompute_may_drop (out->rw.trace, o, a, &again, err))
    return false;
  bound_options how = { .dev = o->device,
                        .host_bytes = o->host_bytes,
                        .any_units = true,
                        .limit_rounds = -1, /* on GPT-2 XL no round gained anything */
                        .drops = o->recompute == RECOMPUTE_ONLY ? DROPS_ONLY : DROPS_ALLOWED,
                        .again = again,
                        .fresh = fresh,
                        .keep_proof = o->keep_proof && !guide,
                        .dear_ticks = o->dear_ticks,
                        .shares_only = guide,
                        .log = o->log,
                        .stop = o->stop,
                        .stop_context = o->stop_context };
  if (bound_of (&out->gaps, &how, a, &out->bound, &why))
    return true;
  out->fits = false;
  return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
}

bool recompute_solve_program (const trace *t, const variant *cut, const solve_options *o,
                              bool fresh, arena *a, recompute_program *out, error *err) {
  return solve_program (t, cut, o, fresh, false, a, out, err);
}

bool recompute_solve_guide (const trace *t, const solve_options *o, int64_t budget_bytes, arena *a,
                            recompute_program *out, error *err) {
  solve_options less = *o;
  less.budget_bytes = budget_bytes;
  return solve_program (t, NULL, &less, true, true, a, out, err);
}
