/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The queues and engines of the reference: jobs that run on one card, from one instant to the
   next. */
#pragma once

#include "tests/ref_simulate.h"

/* Steps of a job by itself that are looked at, and of jobs that share a card. */
enum { LOOKED_AT = 32, FROM_STEP = 16, TO_STEP = 32 };

typedef enum ref_direction { OUT, IN } ref_direction;

/* One job, its three queues and all that it has done. */
typedef struct ref_worker {
  const trace *t;
  const plan *p;
  int64_t *move_bytes;
  ref_run *run;
  int64_t room;
  int64_t next_op, next_copy[2]; /* counted from the start of step 0 */
  bool op_runs;
  __int128 op_left;
} ref_worker;

/* A copy engine, of all jobs. */
typedef struct ref_engine {
  bool busy;
  int32_t job, move, step;
  int64_t carries_from;
  __int128 left;
} ref_engine;

typedef struct ref_machine {
  ref_worker *workers;
  int32_t n_workers;
  bool turns, outs_are_held;
  ref_engine engines[2];
  int64_t rate_alone[2], rate_both[2], copy_ns;
  int64_t now;
  arena *a;
  error *err;
} ref_machine;

ref_machine ref_machine_new (const device *d, ref_worker *workers, int32_t n, arena *a, error *err);
/* Until enough steps have been seen. A plan that hangs is ERR_infeasible. */
bool ref_machine_run (ref_machine *m) MUST_CHECK;
