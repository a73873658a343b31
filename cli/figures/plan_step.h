/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace and its plan, checked and simulated, with their figures. */
#pragma once

#include "cli/inputs/inputs.h"
#include "cli/figures/plan_figure.h"

typedef struct plan_step {
  sim_job job;
  rewritten rewritten;
  predicted costs;
  timeline line;
  figure_page page;
} plan_step;

/* Not to be moved afterwards: the job points at the rewritten trace in it. */
bool plan_step_read (call *c, const char *trace_path, const char *plan_path,
                     plan_step *s) MUST_CHECK;
/* The same for a trace and a plan in memory; errors name `path`. */
bool plan_step_of (call *c, const trace *t, const plan *p, const char *path,
                   plan_step *s) MUST_CHECK;
/* Writes those of --svg, --html, --tsv and --timeline that the command has and was given; any:
   whether one was. */
bool plan_step_draw (call *c, plan_step *s, bool *any) MUST_CHECK;
/* The page's facts, by their keys. */
bool plan_step_json (call *c, const plan_step *s) MUST_CHECK;
