/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One step in one order: its plan in granules, in an arena, or in whichever of the two it gains
   from. */
#pragma once

#include "solver/attempt/attempt.h"

/* In the places that the options allow. */
bool placed_solve (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;
/* By one search, in granules; in an arena, comparing shares of the budget, or with one that nearly
   always has places. With a variant nothing but copies is still to be chosen. */
bool placed_once (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;
bool placed_arena (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;
bool placed_arena_once (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;

/* Nothing that was asked for binds plans to granules; nor does the effort. */
bool placed_suits_arena (const solve_options *o);
bool placed_suits (const solve_request *q);
/* Too many ops to search for an arena where granules have a plan. */
bool placed_is_large (const solve_request *q);
bool placed_rewrites (const solve_options *o);
/* The plan is as near to the bound of all plans as was asked for. */
bool placed_is_enough (const solve_request *q, const solution *s);
/* That one search has no plan, or found none, does not rule out another. */
bool placed_may_go_on (const error *why);
