/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The machine model a second time: slow, obvious, written from docs/machine-model.md and
   docs/formats.md alone.  The oracle of trace/simulate/simulate; it shares its result struct and
   nothing else.  Every start and end of every item is kept, so that a test can compare to the
   nanosecond.
 */
#pragma once

#include "trace/plan.h"

#define NOT_YET ((int64_t)-1)

/* Absolute times of one step's items; outs and ins by move. NOT_YET: it has not, or there is none.
 */
typedef struct ref_step {
  int64_t *op_start, *op_end, *out_start, *out_end, *in_start, *in_end;
} ref_step;

typedef struct ref_run {
  ref_step **steps;
  int32_t n_steps;
  bool repeats; /* state `again` equals state `first` */
  int32_t first, again;
  int64_t figure_ns;
} ref_run;

typedef struct ref_job {
  const trace *original;
  const plan *plan;
} ref_job;

typedef struct ref_answer {
  const trace *rewritten;
  predicted predicted;
  ref_run runs[2]; /* the second one is laden */
  int32_t n_runs;
} ref_answer;

/* A plan that hangs is ERR_infeasible. */
bool ref_simulate (const ref_job *jobs, int32_t n_jobs, bool turns, arena *a, ref_answer *answers,
                   error *err) MUST_CHECK;
