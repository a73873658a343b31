/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several jobs on one card: one sampled point of each job's curves, so that budgets, link shares
   and host memory suffice for all and the worst or the total slowdown is smallest.  Exact over the
   samples. */
#pragma once

#include "base/arena.h"

typedef struct pack_choice {
  int64_t budget_bytes, host_bytes, share_ppm;
  int64_t slowdown_ppm; /* of the step with the card to itself; lower is better */
} pack_choice;

typedef struct pack_job {
  const pack_choice *choices;
  int32_t count;
} pack_job;

typedef enum pack_objective { PACK_WORST, PACK_TOTAL, PACK_OBJECTIVES } pack_objective;
extern const char *const pack_objective_names[PACK_OBJECTIVES + 1]; /* NULL at the end */

typedef struct pack_limits {
  int64_t memory_bytes, host_bytes, share_ppm;
  pack_objective objective;
} pack_limits;

enum { PACK_MOST_JOBS = 16 };

typedef struct pack_answer {
  bool fits;
  int32_t chosen[PACK_MOST_JOBS]; /* of each job's choices */
  int64_t worst_ppm, total_ppm;
  int64_t visited; /* nodes of the search */
} pack_answer;

/* By the objective, ties by the other one and then by the first in order of choices. */
bool pack_choose (const pack_job *jobs, int32_t n_jobs, const pack_limits *limits, arena *a,
                  pack_answer *out, error *err) MUST_CHECK;
