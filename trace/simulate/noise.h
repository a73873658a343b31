/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step of a plan when ops take a little more or less than the trace says. A day is one draw:
   each op's time is multiplied by 1 + x, x uniform between -percent and percent, and stays so for
   all steps of the day. */
#pragma once

#include "trace/plan.h"

enum { NOISE_MOST_PERCENT = 100, NOISE_MOST_DAYS = 10000 };

typedef struct noise_options {
  int32_t percent, days;
  uint64_t seed;
} noise_options;

/* A step's time over the sum of its ops on that day, in millionths of the sum; by nearest
   rank. */
typedef struct noise_spread {
  int64_t least_ppm, median_ppm, p95_ppm, most_ppm;
} noise_spread;

/* The trace on one of those days; all but the ops' times is shared with t. */
bool noise_day (const trace *t, const noise_options *o, int32_t day, arena *a, trace *out,
                error *err) MUST_CHECK;

/* The plan is one that check accepts. */
bool noise_of_plan (const trace *t, const plan *p, const noise_options *o, arena *scratch,
                    noise_spread *out, error *err) MUST_CHECK;
