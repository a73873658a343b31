/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The best plan of a tiny trace, by trying all: every choice of parts of every idle time, every
   order of the copies out and of those in, and every point between two ops at which a copy in may
   take its memory.  Each choice runs as early as it can, which is the best that its triggers can
   do.  It shares nothing with the planner.

   Two figures come out.  The first counts granules only, so no plan is below it; for the second,
   granules were given out and a whole plan was written down, which passes check and is simulated.
 */
#pragma once

#include "tests/tiny_case.h"

typedef struct best_plan {
  int64_t counted_ns; /* the least that a count of granules allows */
  int64_t step_ns;    /* the least of the plans written down; below it none was found */
  plan *plan;         /* that plan, or NULL */
  int64_t tried;
  bool complete; /* all choices were tried */
} best_plan;

enum { BEST_TRIED = 3000000 };

/* Looks only below `below_ns`: where nothing is found both figures are that. Runs no more than
   most_tried times. */
bool best_search (const tiny_case *c, int64_t below_ns, int64_t most_tried, arena *a,
                  best_plan *out, error *err) MUST_CHECK;
