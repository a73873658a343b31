/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For whom a plan is made: --for torch, replay or run. */
#ifndef FERRY_CLI_INPUTS_EXECUTORS_H
#define FERRY_CLI_INPUTS_EXECUTORS_H

#include "cli/call/call.h"
#include "solver/options/allowed.h"
#include "trace/plan.h"

/* The trace as that executor can carry it out: `t` itself, or one with the same ops and tensors of
   which less may move. Options that it cannot follow are refused. NULL: it is said why. */
const trace *executor_trace (call *c, const trace *t) MUST_CHECK;

/* Without all that it cannot follow; ferry_torch recomputes only where --recompute asks it to,
   since its copies of ops cost time that no trace knows. */
bool executor_allows (call *c, solve_options *o) MUST_CHECK;

/* The most that may be asked of that executor. */
allowed executor_most (call *c, const trace *t);

/* Does --for ask for places that stay the same? */
bool executor_keeps_places (call *c);

/* A plan of that trace is one of `t`: it gets the digest, and is checked. */
bool executor_plan (call *c, const trace *t, const trace *planned, plan *p) MUST_CHECK;

#endif
