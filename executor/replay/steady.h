/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of a repeated step, from the starts and ends that were seen: the machine model's sixth
   rule, written from docs/formats.md and sharing nothing with the simulator. */
#pragma once

#include "base/arena.h"

enum { STEADY_STEPS = 32 };

/* Row n of `times`: every start and end of step n's items. Row n's op 0 started at starts[n]. */
typedef struct steady_input {
  const int64_t *times, *starts;
  int32_t steps, width;
} steady_input;

/* in: one a rank, all of as many steps. *settled: the state of a step, that of all ranks relative
   to the start of the first one's, equalled an earlier one's. */
int64_t steady_step_ns (const steady_input *in, int32_t ranks, bool *settled);
