/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One simulated step of a plan as figures: who holds the device's memory when, who is busy when,
   and what is away on the host.  The picture of `ferry plot` and the slices of `ferry export`. */
#pragma once

#include "plot/figure.h"
#include "trace/simulate/simulate.h"

enum { LANE_COMPUTE, LANE_OUT, LANE_IN, PLAN_LANES };
enum { FIGURE_MEMORY, FIGURE_LANES, FIGURE_HOST, PLAN_FIGURES };

/* All of it in the arena; `line` must have been filled. The figures' order is the enum's. */
bool plan_figure (const sim_job *job, const predicted *costs, const timeline *line, arena *a,
                  figure_page *out, error *err) MUST_CHECK;

/* Bytes over time, one point a change, over [0, period): all that is held, and all that is away. */
bool plan_away (const sim_job *job, const timeline *line, arena *a, figure_point **points,
                int32_t *count, error *err) MUST_CHECK;

/* One a move. */
int64_t *plan_move_bytes (const sim_job *job, arena *a, error *err) MUST_CHECK;
/* A move's load: the tensor's name, and which part of it. */
const char *plan_move_name (const sim_job *job, int32_t i, arena *a, error *err) MUST_CHECK;
/* For qsort: spans by their start. */
int plan_compare_spans (const void *a, const void *b);
