/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a long command goes on: one line on a terminal that is written over, and with -v a line every
   ten seconds where standard error is none. */
#pragma once

#include "cli/call/call.h"

/* `done` of `all`; all 0: nobody knows. step_ns < 0: there is none. */
void progress_done (call *c, int32_t done, int32_t all, int64_t step_ns);
/* Shows the line where it is time for that. Cheap: it may be called very often. */
void progress_look (call *c);
