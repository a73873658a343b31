/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Among plans that take as long, finds the one that bears other durations best.  The search offers
   what it costs; a few different candidates near the best are kept, and in the end each is tried on
   the same days, on which ops take a little more or less. */
#pragma once

#include "solver/attempt/search.h"

enum { ROBUST_PLANS = 16 };

typedef struct robust_entry {
  candidate c;
  uint64_t hash; /* of its plan's moves, orders and waits */
  int32_t gaps_room, units_room;
} robust_entry;

/* All zero: none yet. */
typedef struct robust {
  robust_entry at[ROBUST_PLANS];
  int32_t count;
} robust;

/* A candidate and its plan. Kept where no plan like it is, it is within noise_apart_ppm of the
   best so far, and, where there is no more room, shorter than the longest that is kept. Lives in
   s->arena. */
bool robust_offer (robust *k, search *s, const candidate *c, const plan *p, error *err) MUST_CHECK;

/* Other timings of the best are costed too; then s->best becomes the one with the least 95th
   percentile, of those that are as near to the bound as was asked for where the best is. Ties go to
   the shorter step, then to the one that was met first. The search's ticks are not touched. */
bool robust_choose (robust *k, search *s, robustness *out, error *err) MUST_CHECK;

/* The same of a plan that nobody chose from others. */
bool robust_alone (const trace *t, const plan *p, const solve_options *o, arena *scratch,
                   robustness *out, error *err) MUST_CHECK;
