/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "None fits" is said only where it is proved. */
#pragma once

#include "solver/options/options.h"

/* The answer of a search without a plan: ERR_infeasible becomes ERR_limit, with other words, where
   neither the bytes of some op, nor those that live on, nor the program rule every plan out. */
void refusal_settle (const trace *t, const solve_options *o, arena *a, error *err);

/* The bytes that live on from step to step. */
int64_t refusal_living_bytes (const trace *t);
/* True if what lives on from step to step is more than both sides hold: then nothing fits, whatever
   is cut, made again or done earlier. */
bool refusal_outlives (const trace *t, int64_t budget_bytes, int64_t host_bytes);
