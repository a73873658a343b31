/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fastest plan of any published policy, on the trace as it is: taken at the end of a search, so
   that ours is never slower than any of theirs. */
#pragma once

#include "solver/attempt/attempt.h"
#include "solver/policy/policy.h"

/* Asks the policies whose drops the options allow. out->plan is NULL where none fits. */
bool published_fastest (const trace *t, const solve_options *o, arena *a, policy_answer *out,
                        error *err) MUST_CHECK;

/* If such a plan is faster than the solution's, it takes its place under the same bound. */
bool published_take (const solve_request *q, solution *s, arena *a, error *err) MUST_CHECK;

/* The answer where our own search has none; s->plan is NULL where they have none either. */
bool published_alone (const trace *t, const solve_options *o, arena *a, solution *s,
                      error *err) MUST_CHECK;
