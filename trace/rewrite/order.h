/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ops of a step in another order, with every value what it was: no op passes one that writes
   what it reads or writes, or reads what it writes.  What else a plan does is done to the trace in
   that order. */
#pragma once

#include "trace/plan.h"

/* *out is the trace itself and *order NULL where there are no runs; else the op of `t` that runs at
   each place. An error's place is a JSON pointer into a plan ("/order/3"). */
bool trace_reorder (const trace *t, const op_run *runs, int32_t n_runs, arena *a, const trace **out,
                    int32_t **order, error *err) MUST_CHECK;

/* Makes a plan of the trace in an order one of the trace as it is; without runs it is one. */
bool plan_set_order (plan *p, const trace *t, op_run *runs, int32_t n_runs, arena *a,
                     error *err) MUST_CHECK;

/* The runs that say this order; none where it is the trace's own. */
bool order_runs (const int32_t *order, int32_t n_ops, arena *a, op_run **runs, int32_t *n_runs,
                 error *err) MUST_CHECK;
