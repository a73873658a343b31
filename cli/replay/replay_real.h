/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry replay --compute real`: the steps train, and what they learn is printed. */
#pragma once

#include "cli/call/call.h"
#include "executor/replay/replay.h"

/* Reads --data, --times and --compare beside `o`, runs, prints; an exit status. */
int replay_real (call *c, const replay_options *o, int64_t spoiled_copy, trace *t, const plan *p);

/* The part that replay prints of every kind of run. */
void replay_print (const replay_result *r);
/* EXIT_NO where a byte was wrong or an order missing. */
int replay_verdict (const replay_options *o, const replay_result *r);
bool replay_write_chrome (call *c, const sim_job *jobs, const replay_result *r,
                          int32_t ranks) MUST_CHECK;
