/* Cuts and drops on top of swapping: which of the two are worth their time, together with what is
   left to swap.  The plain plan stays a candidate, so allowing more never makes a plan worse. */
#ifndef FERRY_SOLVER_SEARCH_MIX_H
#define FERRY_SOLVER_SEARCH_MIX_H

#include "solver/attempt/variant.h"

/* solve() where sections or recompute are allowed. least_ns: no plan is faster; 0: by compute. The
   certificate is that of drops; of one with sections the caller knows the bound. */
bool mix_solve (const trace *t, const solve_options *o, int64_t least_ns, arena *a, solution *out,
                error *err) MUST_CHECK;

/* The limit where none is given. */
int64_t mix_default_ticks (const trace *t);

#endif
