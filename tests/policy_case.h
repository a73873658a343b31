/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A random trace on which policies and ferry's planner can be held against each other: what has to
   be true of all of them together, in one place for the test and for the longer count of the bench.
 */
#pragma once

#include "solver/policy/policy.h"
#include "tests/random_case.h"

typedef struct policy_case {
  arena *arena;
  trace *trace;     /* of even seeds anything that a trace may hold, of odd ones a network */
  random_case made; /* even seeds only */
  device device;
  int64_t peak_bytes, floor_bytes; /* with everything there; of the largest op */
} policy_case;

bool policy_case_make (uint64_t seed, policy_case *out, error *err) MUST_CHECK;
/* So many percent of the way from the largest op's need to the peak. */
int64_t policy_case_budget (const policy_case *x, int percent);

typedef struct policy_tally {
  int64_t answers, fits, ours, dropped;
} policy_tally;

/* Every policy's answer is legal or says that it does not fit; no plan is below the bound, no
   policy's plan is faster than ours, and a second run says the same. What does not hold goes to
   *why (in the arena); NULL: all does. */
bool policy_case_judge (policy_case *x, int percent, int64_t ticks, policy_tally *tally,
                        const char **why, error *err) MUST_CHECK;
