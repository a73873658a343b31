/* SPDX-License-Identifier: GPL-3.0-or-later */
/* State that no op uses and that a plan leaves on the host from step to step.  To all else in the
   plan such a tensor is nothing. */
#pragma once

#include "trace/plan.h"

/* *out is the trace itself where nothing rests. An error's place is a JSON pointer into a plan
   ("/resting/3"). */
bool trace_rest (const trace *t, const int32_t *resting, int32_t n_resting, arena *a,
                 const trace **out, error *err) MUST_CHECK;

/* The bytes of all of them on the host, each rounded up as copies are. */
int64_t resting_bytes (const trace *t, const plan *p);
