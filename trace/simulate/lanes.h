/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From plans to lanes: what each op and copy of a job waits for, as the event loop counts it. */
#pragma once

#include "trace/simulate/run.h"
#include "trace/simulate/simulate.h"

/* An error where an index of the plan leads nowhere; the rest is check's. */
bool lane_of_job (const sim_job *job, arena *a, sim_lane *lane, error *err) MUST_CHECK;

/* The collectives that ranks run together; their lanes are there. */
bool lanes_meet (sim_run *r, const sim_job *jobs, arena *a, error *err) MUST_CHECK;
