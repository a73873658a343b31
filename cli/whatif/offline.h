/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the commands that plan without a card: options, progress, one row a budget. */
#pragma once

#include <stdio.h>

#include "cli/inputs/effort.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/rewriting.h"
#include "solver/fleet/curve.h"

/* clang-format off */
#define OPTION_THREADS { 'j', "jobs", "N", "threads that plan side by side, to the same answer; " \
  "default: as many as there are processors", { UNITS_COUNT, 1, 256 } }
/* clang-format on */

/* --host, the effort, what is allowed, the trace's reserve, threads, interrupts, and progress.
 * `d` and `c` must outlive *out. */
bool offline_options (call *c, const trace *t, const device *d, curve_options *out) MUST_CHECK;
/* The trace, which must be plannable, as its executor can carry it out; *given, unless NULL, is the
   one of the file. */
const trace *offline_trace (call *c, const char *path, const trace **given) MUST_CHECK;

/* For curve_options, with the call as its context; shown on a terminal, and gone in the end. */
void offline_progress (void *context, int32_t done, int32_t all, int64_t step_ns);
/* Its `stop`: an interrupt, or the seconds are over. */
bool offline_stop (void *context);
/* That of OPTION_THREADS. */
bool offline_threads (call *c, curve_options *out) MUST_CHECK;

/* The same network of the zoo on another card, with `times` the batch. */
trace *offline_rebuild (call *c, const trace *t, const device *d, int64_t times) MUST_CHECK;

/* A line where budgets go beyond the card: what is asked about then is not that card. */
void offline_tell_beyond (FILE *to, const device *d, int64_t most_bytes);

bool offline_is_wide (int64_t step_ns, int64_t lower_bound_ns);
double offline_slower (int64_t step_ns, int64_t baseline_ns); /* in percent */
