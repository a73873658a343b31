/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One trace, one budget: the best plan that was found, the bound that no plan can beat, and who
   found it.  The top of the solver: everything here calls downward only (solver/README.md). */
#pragma once

#include "solver/options/options.h"
#include "solver/search/search.h"
#include "trace/rewrite/rewrite.h"

/* The bound alone, with its proof where that is kept; of a rewritten trace too. */
bool solve_bound (const trace *t, const solve_options *o, arena *a, bound *out,
                  error *err) MUST_CHECK;

/* Below the floor: ERR_infeasible, and the message names the floor and the op that sets it. */
bool solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) MUST_CHECK;
/* The same with less to spend, or with what is known of budgets near this one. */
bool solve_with (const trace *t, const solve_options *o, const effort *e, arena *a, solution *out,
                 error *err) MUST_CHECK;
