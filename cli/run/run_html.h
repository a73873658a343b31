/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last planned step as one page: as it was seen, and as the plan that was made last has it. */
#pragma once

#include "cli/run/program.h"

/* Files of the launcher's folder: the plan that was made last, and its trace. */
#define DRAWN_PLAN "drawn-plan"
#define DRAWN_TRACE "drawn-trace"

bool run_html (call *c, const program_run *r, const char *output) MUST_CHECK;
