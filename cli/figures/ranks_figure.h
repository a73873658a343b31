/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One step of all ranks of a host as figures: their lanes over each other, and under them what each
   group of cards carries. */
#pragma once

#include "plot/figure.h"
#include "trace/simulate/simulate.h"

/* All of it in the arena; costs and lines are those of simulate. */
bool ranks_figure (const gpu_host *h, const sim_job *jobs, int32_t ranks, const predicted *costs,
                   const timeline *lines, arena *a, figure_page *out, error *err) MUST_CHECK;
