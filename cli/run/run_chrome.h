/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last planned step of a run for chrome://tracing and Perfetto. */
#pragma once

#include "cli/run/program.h"

/* Nothing where the program has left no step. */
bool run_chrome (call *c, const program_run *r, const char *output) MUST_CHECK;
