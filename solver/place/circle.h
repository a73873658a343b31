/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The moments at which the stays of one step begin and end, as ranks on a circle: a step repeats,
   so what ends in the next one ends at the same rank. */
#pragma once

#include "solver/place/stays.h"

typedef struct circle {
  int64_t ranks;
  int64_t *birth, *end; /* per stay; of those that never end 0 */
  int32_t *at;          /* per rank: the stay that is born; -1 - the stay that ends */
} circle;

bool circle_of (const stays *l, moment period, moment start, arena *a, circle *out,
                error *err) MUST_CHECK;

static inline int64_t circle_ahead (const circle *c, int64_t rank, int64_t from) {
  return rank >= from ? rank - from : rank - from + c->ranks;
}

/* The same moment of the step that begins at `start`. */
moment circle_moment (moment m, moment start, moment period);
