/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of a plan: the machine model of docs/machine-model.md, and the only source of any figure
   that is shown as a prediction.  It trusts the plan's structure as far as simulate_plan has looked
   (indices, orders); whether a plan is legal is check's affair.  A plan that hangs is an error. */
#pragma once

#include "trace/host.h"
#include "trace/plan.h"
#include "trace/rewrite/rewrite.h"

typedef struct span {
  int64_t start_ns, end_ns; /* both -1: there is no such item */
} span;

typedef struct memory_change {
  int64_t at_ns, bytes; /* from here on, this much of the device is held (granules and pool) */
} memory_change;

/* One step in the steady state, relative to the start of its op 0. Copies may lie before 0 or after
   period_ns: a step's queues run on into the next. */
typedef struct timeline {
  int32_t step;          /* which of the simulated steps this is */
  int64_t period_ns;     /* to the start of op 0 of the next step */
  int64_t late_ns;       /* of ranks: how long after op 0 of the first rank */
  span *ops;             /* one an op */
  span *outs, *ins;      /* one a move */
  memory_change *memory; /* over [0, period_ns), repeating */
  int32_t n_memory;
  span *stays;                 /* one a stay of the plan, repeating; both -1: held always */
  int64_t peak_ns, peak_bytes; /* the first moment of greatest use */
  int32_t *holders;            /* stays held at that moment, largest first */
  int32_t n_holders;
} timeline;

typedef struct sim_job {
  const trace *original;
  const rewritten *rewritten;
  const plan *plan;
} sim_job;

typedef struct sim_options {
  bool turns;            /* several jobs: take turns op by op instead of sharing the speed */
  const gpu_host *host;  /* job i is the rank on its card i; NULL: all jobs are on one card */
  bool apart;            /* on a host: jobs of their own, whose steps do not wait for each other */
  arena *timeline_arena; /* NULL: no timeline */
  int64_t *events;       /* counted up where not NULL: starts and ends of ops and copies */
  int64_t most_events;   /* of several jobs; 0: 2^28, which take half a minute */
} sim_options;

/* jobs[i] to out[i]; timelines[i] where options ask for them. One job is the ordinary case. Ranks
   that pin more of a host than may be pinned are ERR_infeasible. */
bool simulate (const sim_job *jobs, int32_t n_jobs, const sim_options *options, arena *scratch,
               predicted *out, timeline *timelines, error *err) MUST_CHECK;

/* One trace under one plan, rewriting included. */
bool simulate_plan (const trace *t, const plan *p, arena *scratch, predicted *out,
                    error *err) MUST_CHECK;
