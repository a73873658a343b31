/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What must hold of the curve of any trace, looked at from outside. */
#pragma once

#include "base/error.h"

#include <stdint.h>

typedef struct curve_seen {
  int32_t points, without_plan, stalled, reused, asked, solves, bounds;
} curve_seen;

/* One random trace: its curve, and its smallest memory at a slowdown. False: text says what does
   not hold. Counts go on top of *seen. */
bool curve_holds (uint64_t seed, curve_seen *seen, char *text, int size);
