/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory that a plan takes beside the bytes that live: rounding, and places that stay empty
   while others are needed. */
#pragma once

#include "trace/simulate/simulate.h"

/* The bytes that live when the timeline's memory is at its peak, the pool's among them. */
bool lost_live (const sim_job *job, const timeline *line, arena *scratch, int64_t *live_bytes,
                error *err) MUST_CHECK;

/* The peak of a plan of `t` less what lives then. */
bool lost_bytes (const trace *t, const plan *p, arena *scratch, int64_t *bytes,
                 error *err) MUST_CHECK;
