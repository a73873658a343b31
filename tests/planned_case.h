/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A random trace under a plan that some maker found, and what the simulator saw of it: a point that
   every lower bound must lie below.  Half the plans are random ones, half the scheduler's. */
#pragma once

#include "solver/flow/gaps.h"
#include "tests/random_case.h"
#include "trace/simulate/simulate.h"

typedef struct planned_case {
  random_case c;
  units units;
  predicted seen;
  int64_t *resident_bytes; /* per op: the most that was held while it ran, pool included; -1: an op
                              of no length */
  int64_t most_bytes;      /* of these */
} planned_case;

/* False without an error: this seed gives no plan, or one whose steps are not all alike. */
bool planned_make (uint64_t seed, unsigned features, arena *a, planned_case *out,
                   error *err) MUST_CHECK;

/* Gaps of which every one counts, and over each op just what the plan has away there: the program
   with its gaps fixed to the plan is then as tight as it can be. */
bool planned_gaps (const planned_case *p, arena *a, gaps *out, error *err) MUST_CHECK;
