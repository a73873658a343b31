/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bound, and what should leave, at many budgets from few programs.  The program is built once,
   for the smallest budget, and solved at a few: their duals prove a bound at every other budget (a
   tangent of a convex function), and their points mix to one for each budget between (a chord).
   Where tangents and chord are near to each other, nothing is left to solve. */
#pragma once

#include "solver/flow/bound.h"

typedef struct bound_range bound_range;

typedef struct bound_range_stats {
  int32_t programs; /* solved, those of the refinement too */
} bound_range_stats;

/* For budgets of which none is below the first of these that has any plan; they rise. Programs are
   solved until at each of them chord and tangents differ by no more than apart_ppm of the step. The
   answer lives in `a`. any_units must be set in the options, and no proof is kept. */
bool bound_range_new (const trace *t, const bound_options *o, const int64_t *budgets, int32_t count,
                      int64_t apart_ppm, arena *a, bound_range **out, error *err) MUST_CHECK;

/* Without solving anything; only limits of the program change. ERR_infeasible where memory alone
   allows no plan. The shares are of the gaps of the trace's tensors one by one, in granules of 1.
 */
bool bound_range_at (bound_range *r, int64_t budget_bytes, arena *a, bound *out,
                     error *err) MUST_CHECK;

bound_range_stats bound_range_seen (const bound_range *r);
