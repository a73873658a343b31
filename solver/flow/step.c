/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/step.h"

#include <assert.h>

bool step_count (const trace *t, const count_rule *how, arena *a, counted_step *out, error *err) {
  assert (t && how->granule_bytes > 0);
  assert (how->groups || how->n_groups == 0);
  out->trace = t;
  out->pool_below_bytes = how->pool_below_bytes;
  bool ok = units_of (t, how->groups, how->n_groups, how->granule_bytes, how->pool_below_bytes, a,
                      &out->units, err) &&
            gaps_of (&out->units, how->granule_bytes, how->budget_bytes, a, &out->gaps, err);
  assert (!ok || (out->gaps.units == &out->units && out->gaps.n_ops == t->n_ops));
  return ok;
}

bool step_count_bytes (const trace *t, int64_t budget_bytes, arena *a, counted_step *out,
                       error *err) {
  count_rule bytes = { .budget_bytes = budget_bytes, .granule_bytes = 1 };
  return step_count (t, &bytes, a, out, err);
}
