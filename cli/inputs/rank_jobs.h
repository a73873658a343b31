/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces and plans of the command line as jobs, and as ranks on the cards of a host. */
#pragma once

#include "cli/call/call.h"
#include "trace/simulate/simulate.h"

typedef struct rank_jobs {
  gpu_host host;
  device card;
  int32_t ranks, pairs; /* rank r has pair r mod pairs of the operands */
  sim_job jobs[HOST_MOST_CARDS];
} rank_jobs;

/* The i-th TRACE and its PLAN, which is checked and may be for no other. */
bool job_read (call *c, int i, sim_job *job, rewritten *rw) MUST_CHECK;
/* The same; TRACE is that operand, and PLAN the next. */
bool job_read_at (call *c, int operand, sim_job *job, rewritten *rw) MUST_CHECK;
/* Those of --host and --ranks; without --ranks, as many as pairs, or one pair on all cards. */
bool rank_jobs_read (call *c, rank_jobs *out) MUST_CHECK;
