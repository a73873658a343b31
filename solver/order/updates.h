/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step with each update moved up to where what it needs is final, so that weights, gradients
   and optimizer state do not all crowd the end of the step.  Every value stays what it is. */
#pragma once

#include "trace/plan.h"

/* No runs where that is the order as it is. */
bool order_updates (const trace *t, arena *a, op_run **runs, int32_t *n_runs,
                    error *err) MUST_CHECK;
