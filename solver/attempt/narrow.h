/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A variant that does less: each further part of an op and each op that runs again takes its time,
   so stretches of a cut are left whole again, or recompute entries are left out, many at once first,
   while quick plans of what is left get faster. */
#ifndef FERRY_SOLVER_ATTEMPT_NARROW_H
#define FERRY_SOLVER_ATTEMPT_NARROW_H

#include "solver/attempt/variant.h"

typedef struct narrowed {
  variant v;
  variant_value value; /* its quick plans' */
  int64_t ticks;       /* as those of searches for cuts and drops */
  int32_t tried;
} narrowed;

/* Ops of its sections that stay cut; or its entries that stay. Until that many ticks were taken, or
   what is left to try saves next to nothing. The sections, or the entries, are in `a`. */
bool narrow_cut (const trace *t, const solve_options *o, int64_t limit_ticks, arena *a,
                 arena *scratch, narrowed *of, error *err) MUST_CHECK;
bool narrow_drops (const trace *t, const solve_options *o, int64_t limit_ticks, arena *a,
                   arena *scratch, narrowed *of, error *err) MUST_CHECK;

#endif
