/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An interior point method for linear programs with many rows of few entries. */
#pragma once

#include "solver/flow/ilp.h"

/* The same as ilp_solve, by this method.  ILP_FAILED: it does not converge, or is no way to solve
   such a program. */
bool interior_solve (const ilp_problem *p, const ilp_options *o, arena *a, ilp_result *out,
                     error *err) MUST_CHECK;
