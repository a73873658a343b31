/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step cut into slots, the time steps of the flow program.  A slot of one op is exact; a slot
   of several ("run") stands for them with no memory row, which is a relaxation. */
#pragma once

#include "solver/flow/gaps.h"

typedef struct slots {
  int32_t count;
  int32_t *first;       /* count + 1: slot j is the ops [first[j], first[j + 1]) */
  int32_t *of_op;       /* per op its slot */
  const uint8_t *loose; /* per op, or NULL; inside a run of loose ops slots begin at seams alone */
} slots;

/* One op, one slot. */
bool slots_each (const gaps *g, arena *a, slots *out, error *err) MUST_CHECK;

/* About `blocks` blocks of equal time.  The op of a block that is furthest over the budget has a
   slot of its own, and so has an op that releases or waits for more than the link carries in one
   block of the step; step_ns is what the step takes at least, stalls included, as far as is known.
 */
bool slots_blocks (const gaps *g, const device *dev, int32_t blocks, int64_t step_ns, arena *a,
                   slots *out, error *err) MUST_CHECK;

/* The `splits` runs of highest score (none of score 0) are split at their largest op over the
   budget, or in half by time where there is none.  False without an error: nothing to split. */
bool slots_split (const gaps *g, const slots *from, const double *score, int32_t splits, arena *a,
                  slots *out, error *err) MUST_CHECK;

/* From the first op of each slot; false where it is no partition of the ops. */
bool slots_from (const int32_t *first, int32_t count, int32_t n_ops, arena *a, slots *out,
                 error *err) MUST_CHECK;

static inline bool slots_is_run (const slots *s, int32_t j) {
  return s->first[j + 1] - s->first[j] > 1 || (s->loose && s->loose[s->first[j]]);
}

/* True if a slot could begin inside slot j. */
bool slots_can_split (const slots *s, int32_t j);
