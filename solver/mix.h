/* Cuts and drops on top of swapping: which of the two are worth their time, together with what is
   left to swap.  The plain plan stays a candidate, so allowing more never makes a plan worse. */
#ifndef FERRY_SOLVER_MIX_H
#define FERRY_SOLVER_MIX_H

#include "solver/variant.h"

/* solve() where sections or recompute are allowed. */
bool mix_solve (const trace *t, const solve_options *o, arena *a, solution *out,
                error *err) MUST_CHECK;

#endif
