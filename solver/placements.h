/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Granules, an arena, or whichever of the two the plan at hand gains from. */
#ifndef FERRY_SOLVER_PLACEMENTS_H
#define FERRY_SOLVER_PLACEMENTS_H

#include "solver/options/options.h"

typedef bool solve_placed (const trace *t, const solve_options *o, const effort *e, arena *a,
                           solution *out, error *err);

/* `one` finds the plans of one sort of places. */
bool placements_solve (const trace *t, const solve_options *o, const effort *e, solve_placed *one,
                       arena *a, solution *out, error *err) MUST_CHECK;

/* Nothing that was asked for binds plans to granules. */
bool placements_suit_arena (const solve_options *o);

/* Granules had no plan, and that is why: an arena may have one. */
bool placements_leave_arena (const trace *t, const solve_options *o, const effort *e, arena *a,
                             const error *why) MUST_CHECK;

/* The best plan's order is kept, and cuts and drops are chosen once more for an arena, where `auto`
   allows that and granules lose much. Then these are kept too, and what moves and where it lies is
   searched once more: for an arena, and with larger groups of weights and optimizer state, where
   those of the best make many small copies. The better plan is then in *best. */
bool placements_again (const trace *t, const solve_options *o, const effort *e, arena *a,
                       solution *best, error *err) MUST_CHECK;

#endif
