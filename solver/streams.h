/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans for steps of several streams.  The search plans their ops as one list, in which each takes
   the time that it adds to the step; the plan is then one of the step itself, timed by the
   simulator, with a bound of its longest path. */
#pragma once

#include "solver/options/options.h"

typedef bool streams_solver (const trace *t, const solve_options *o, const effort *e, arena *a,
                             solution *out, error *err);

/* solve_list plans traces of one stream. */
bool streams_solve (const trace *t, const solve_options *o, const effort *e,
                    streams_solver *solve_list, arena *a, solution *out, error *err) MUST_CHECK;
/* The same list, and the bytes of the places beside it, in granules of that size: a workspace has
   one of its stream where other ops may run before its own has ended. */
bool streams_list (const trace *t, int64_t granule_bytes, arena *a, const trace **out,
                   int64_t *apart_bytes, error *err) MUST_CHECK;
/* It covers plans that only swap, in the trace's order. */
bool streams_bound (const trace *t, const solve_options *o, arena *a, bound *out,
                    error *err) MUST_CHECK;
