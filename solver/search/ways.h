/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ways to rewrite a step: which ops are cut, which tensors are dropped and made again, together
   with what is left to swap.  The plain plan stays a candidate, so allowing more never makes a plan
   worse. */
#pragma once

#include "solver/attempt/attempt.h"

/* For questions where sections or recompute are allowed; of the effort, with limit_ticks, gap_ppm,
   enough_ns, beat_ns and place_bytes. The certificate is that of drops; of one with sections the
   caller knows the bound. */
bool ways_solve (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;

/* The limits where none is given: of such a question, and in events, of one that only swaps. */
int64_t ways_default_ticks (const trace *t, const tuning *by);
int64_t ways_swaps_ticks (const trace *t, const tuning *by);
/* Events that the step as it is gets from a question of `limit_ticks`: as many as it has alone. */
int64_t ways_plain_ticks (const trace *t, const tuning *by, int64_t limit_ticks);
