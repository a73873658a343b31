/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All plans that only swap of tiny traces with two streams: every choice of idle times, every order
   of the copies out and of those in, every way to give granules out.  Which waits a plan then needs
   follows from who had a granule before; more waits make nothing earlier while no rate is shared.
   Each is written down, held against check and simulated.  It shares nothing with the planner. */
#pragma once

#include "tests/tiny_case.h"

/* Two streams, every tensor of one granule, no shared rate. False: nothing has to move. */
bool beside_make (uint64_t seed, arena *a, tiny_case *out, error *err) MUST_CHECK;

typedef struct every_beside {
  int64_t step_ns, tried; /* of the best; INT64_MAX: there is none */
  plan **plans;           /* legal ones, no two with the same orders and waits */
  int32_t n_plans;
  bool complete; /* none was left out */
} every_beside;

bool every_beside_search (const tiny_case *c, arena *a, every_beside *out, error *err) MUST_CHECK;
