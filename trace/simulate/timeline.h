/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One simulated step as a picture: absolute times to times of the step, and memory over time from
   the births and ends of the plan's stays. */
#pragma once

#include "trace/simulate/simulate.h"
#include "trace/unit.h"

/* Room for the spans, all -1. */
bool timeline_begin (const sim_job *job, arena *a, timeline *out, error *err) MUST_CHECK;
/* Spans are absolute still; op 0 started at start_ns. */
bool timeline_finish (const sim_job *job, const units *u, int64_t start_ns, int64_t period_ns,
                      arena *a, timeline *out, error *err) MUST_CHECK;
