/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pictures of a trace and of a simulated plan, in the terminal. */
#pragma once

#include "cli/call/call.h"
#include "trace/simulate/simulate.h"

/* Bytes that live while each op runs, over the time of a step without a plan; budget_bytes < 0:
   none. */
bool picture_needs (call *c, const trace *t, const int64_t *bytes_at,
                    int64_t budget_bytes) MUST_CHECK;

/* One step of a plan: who is busy when, and the device's memory. */
bool picture_step (call *c, const sim_job *job, const timeline *line) MUST_CHECK;
