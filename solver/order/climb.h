/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops moved where less lies over the budget, one at a time, as far as their dependences allow. */
#pragma once

#include "trace/plan.h"

typedef struct climb_options {
  int64_t budget_bytes;
  int64_t limit_ticks;          /* each place that is tried for an op counts as many as it passes */
  bool (*stop) (void *context); /* or NULL */
  void *stop_context;
} climb_options;

/* From the order of `t`; no runs where no move is worth anything. Adds what it took to *ticks. */
bool order_climb (const trace *t, const climb_options *o, arena *a, op_run **runs, int32_t *n_runs,
                  int64_t *ticks, error *err) MUST_CHECK;
