/* Where there are few ways to cut and to drop, all of them: every cut of a trace of few ops, every
   set of a few drops of each, as many as the ticks allow, the shortest first.  The search of large
   traces guesses what sets cost; where all can be looked at, no guess is needed. */
#ifndef FERRY_SOLVER_MIX_SMALL_H
#define FERRY_SOLVER_MIX_SMALL_H

#include "solver/variant.h"

/* A better plan than out's, or one at all where that has none. Where one was found, *taken is how
   it rewrites the step, in `a`; *keeps becomes true where it keeps what nothing reads any more. */
bool mix_small (const trace *t, const solve_options *o, int64_t enough_ns, arena *a, solution *out,
                const variant **taken, bool *keeps, error *err) MUST_CHECK;

#endif
