/* SPDX-License-Identifier: GPL-3.0-or-later */
/* State that no op uses, as experts without a token or layers that are left out, rests on the host
   where the step needs more than the budget: no copy brings it back.  All else is solved as if the
   trace did not have it. */
#ifndef FERRY_SOLVER_RESTING_H
#define FERRY_SOLVER_RESTING_H

#include "solver/placements.h"

/* `one` finds the plan of what is left. */
bool resting_solve (const trace *t, const solve_options *o, const effort *e, solve_placed *one,
                    arena *a, solution *out, error *err) MUST_CHECK;

#endif
