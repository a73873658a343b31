/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time that jobs on one card cost each other, by the machine model of all of them together
   (docs/machine-model.md, "Several jobs on one card"). */
#pragma once

#include "trace/simulate/simulate.h"

typedef struct share_job {
  const trace *trace;
  const plan *plan;
} share_job;

/* Steps when all run at once; the plans' devices have one name. `plenty`: the card is thought large
   enough for all budgets. */
bool share_simulate (const share_job *jobs, int32_t n_jobs, bool plenty, arena *scratch,
                     int64_t *step_ns, error *err) MUST_CHECK;

/* The device with that share of its link; the latency of a copy stays. */
device share_link (const device *d, int64_t ppm);
