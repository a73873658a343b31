/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan of a step that a program repeats: made here, by a server or before, and told to the
   program. */
#pragma once

#include "cli/run/program.h"
#include "cli/run/share.h"

typedef struct run_planner {
  call *call;
  int32_t rank; /* files are named by it */
  program_run *run;
  share *share;   /* with --share */
  device *device; /* its granule becomes the program's */
} run_planner;

/* Unkept: the plan is there, but not where the options want a copy of it. */
typedef enum run_outcome { RUN_PLANNED, RUN_NO_PLAN, RUN_UNKEPT } run_outcome;

/* Plans the step of that number; c->err says why there is no plan, or why it was not kept. */
run_outcome run_step (run_planner *w, int number) MUST_CHECK;
