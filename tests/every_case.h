/* SPDX-License-Identifier: GPL-3.0-or-later */
/* solve beside the best of all plans of one tiny trace. */
#pragma once

#include "base/error.h"

#include <stdint.h>

typedef struct every_kind {
  const char *name;
  bool parts, drops;
  int32_t most_ops;
} every_kind;

enum { EVERY_KINDS = 4 };
extern const every_kind every_kinds[EVERY_KINDS];

typedef struct every_tally {
  int tried;             /* solve has a plan, or there is one */
  int refused;           /* solve has none */
  int whole;             /* of the others: all plans were tried */
  int best, near;        /* of these: ours is the best; or at most 1 % longer */
  int at_bound;          /* of these: the bound is the best plan's step */
  int cut, again, moved; /* our plan has sections; entries; moves */
  int64_t ways, runs;
  double solve_s, all_s; /* of the processor: solve's, and all plans' */
  double worst_percent;
  int worst_seed;
  int worst[2][2]; /* sections and entries of our plan there, and of the best */
} every_tally;

/* Adds one case. An error: a bound above what is possible, a plan below it, or one that is better
   than all plans there are said to be. */
bool every_case_try (const every_kind *kind, int seed, int64_t ticks, int64_t most_runs,
                     every_tally *n, error *err) MUST_CHECK;
