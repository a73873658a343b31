/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace with its times carried over to another card: all by one share, or each op by the two
   cards' rooflines. An op that does not say what it calculates is placed by its own time: if moving
   its bytes takes half of that or more, it scales as memory does, else as arithmetic. */
#pragma once

#include "trace/device.h"

typedef struct scaled {
  const trace *trace;
  int32_t ops;                /* ops that say what they calculate */
  int64_t guessed_ns, all_ns; /* of the others, and of all */
} scaled;

/* Recorded steps are left out: their ratios would be made up. */
bool scale_share (const trace *t, int64_t ppm, arena *a, scaled *out, error *err) MUST_CHECK;
/* Both cards tell a roofline. Gaps belong to the host, and stay. */
bool scale_roofline (const trace *t, const device *from, const device *to, arena *a, scaled *out,
                     error *err) MUST_CHECK;
