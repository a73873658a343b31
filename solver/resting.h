/* SPDX-License-Identifier: GPL-3.0-or-later */
/* State that no op uses, as experts without a token or layers that are left out, rests on the host
   where the step needs more than the budget: no copy brings it back.  All else is solved as if the
   trace did not have it. */
#pragma once

#include "solver/attempt/attempt.h"

/* The question that is left, where `like` has what rests. */
typedef struct rested {
  plan like;
  solve_request left; /* of `options` */
  solve_options options;
  bool limited; /* a bound may ask for the host */
} rested;

bool resting_take (const solve_request *q, arena *a, rested *out, error *err) MUST_CHECK;
/* The plan of what is left becomes one of the whole trace. */
bool resting_give_back (const solve_request *q, const rested *r, arena *a, solution *s,
                        error *err) MUST_CHECK;
