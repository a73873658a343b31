/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Findings of the published policies, for our own search: their moves as candidates, and the
   fastest of their complete plans, so that ours is never slower than any of theirs. */
#ifndef FERRY_SOLVER_ATTEMPT_SEARCH_POLICIES_H
#define FERRY_SOLVER_ATTEMPT_SEARCH_POLICIES_H

#include "solver/attempt/search.h"
#include "solver/policy/policy.h"

/* If that plan is faster than the search's best, it is made again in s->arena and named; else *out
   is left alone. It is the plan of the search's trace, cut and recompute entries included. */
bool search_policies_plan (search *s, const policies_found *found, plan **out,
                           const char **found_by, error *err) MUST_CHECK;

/* The fastest complete plan of any policy whose drops the options allow, on the trace as it is.
   out->plan is NULL where none fits. */
bool policies_fastest (const trace *t, const solve_options *o, arena *a, policy_answer *out,
                       error *err) MUST_CHECK;

/* If such a plan is faster than the solution's, it takes its place under the same bound. */
bool policies_take (const trace *t, const solve_options *o, int64_t gap_ppm, arena *a, solution *s,
                    error *err) MUST_CHECK;

#endif
