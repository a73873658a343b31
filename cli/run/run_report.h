/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The story of a run: the lines behind it, and the file of --report. */
#pragma once

#include "cli/call/call.h"
#include "executor/shim/step/block.h"

/* The last line on a program that failed says so. */
void run_summary (const call *c, const shim_block *b, int status);
/* shared_high_bytes: -1 where nobody shares the card. */
bool run_report (call *c, const shim_block *const *ranks, int32_t n, int status,
                 int64_t shared_high_bytes) MUST_CHECK;
