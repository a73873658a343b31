/* A bound of every cut at once, and what solve does where cuts and drops are both allowed. */
#ifndef FERRY_SOLVER_SEARCH_SECTIONS_BOUND_H
#define FERRY_SOLVER_SEARCH_SECTIONS_BOUND_H

#include "solver/solve.h"

/* The flow program of the loosened step (trace/rewrite/loosen.h), with drops where those are
   allowed: true of every plan that the options allow, in whatever parts. ERR_infeasible, with the
   op named, where no cut fits. */
bool sections_bound (const trace *t, const solve_options *o, arena *a, bound *out,
                     error *err) MUST_CHECK;

/* solve() where sections are allowed: the best of what each option reaches alone and of both
   together, under that bound. So allowing the one beside the other makes a plan worse by no more
   than the gap that was asked for. */
bool sections_solve (const trace *t, const solve_options *o, arena *a, solution *out,
                     error *err) MUST_CHECK;

#endif
