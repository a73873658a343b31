/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry curve` and `ferry min-memory` of several traces: stages or shards of one job, a rank each
   on the cards of --host, which all have one share of what each needs. */
#pragma once

#include "cli/call/call.h"

/* The exit status. */
int stages_curve (call *c);
int stages_min_memory (call *c);
