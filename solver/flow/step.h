/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step counted: its trace, the units of it that are placed and moved, and the gaps in which they
   could leave.  Made in one go, since each of the three points into the one before; so it stays
   where it was made. */
#pragma once

#include "solver/flow/gaps.h"

typedef struct counted_step {
  const trace *trace;
  int64_t pool_below_bytes; /* as it was counted with */
  units units;
  gaps gaps;
} counted_step;

typedef struct count_rule {
  int64_t budget_bytes, granule_bytes;
  int64_t pool_below_bytes; /* tensors below it live in the pool */
  const index_list *groups; /* NULL: none */
  int32_t n_groups;
} count_rule;

bool step_count (const trace *t, const count_rule *how, arena *a, counted_step *out,
                 error *err) MUST_CHECK;
/* Counts the step as any plan may: bytes for granules, no groups, no pool. */
bool step_count_bytes (const trace *t, int64_t budget_bytes, arena *a, counted_step *out,
                       error *err) MUST_CHECK;
