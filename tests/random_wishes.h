/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random moves that `schedule` should find a plan for: gaps between uses, some of them,
   in parts or whole, with triggers. */
#pragma once

#include "base/random.h"
#include "solver/place/schedule.h"

/* move_ppm: so many of the gaps are taken. Units smaller than pool_below_bytes have none. */
bool random_wishes (const units *u, random_state *r, int64_t move_ppm, arena *a, wish **out,
                    int32_t *count, error *err) MUST_CHECK;
