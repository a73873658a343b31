/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The flow program with its gaps fixed to what a plan does. */
#pragma once

#include "solver/flow/flow.h"
#include "trace/plan.h"

/* Sets the limits of f's gap columns to the bytes that the plan's moves carry, and solves.
 *stall_ns is the program's optimum; negative where it says infeasible. */
bool fixed_solve (flow *f, const plan *p, arena *a, double *stall_ns, error *err) MUST_CHECK;

/* Solves it with the limits as they are. */
bool fixed_finish (const flow *f, arena *a, double *stall_ns, error *err) MUST_CHECK;
