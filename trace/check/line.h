/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A line of places (granules, host bytes), of which each remembers who took it last. */
#pragma once

#include "base/arena.h"

typedef struct line line;

/* Called with the former holder of each piece that is taken; false stops. */
typedef bool line_met (void *context, int32_t former);

/* Every first and end that will be taken, in any order; begins empty. There are many more of them
   than places that differ, so those that are there already are forgotten now and then. */
typedef struct line_bounds {
  int64_t *at;
  int64_t count, room;
} line_bounds;

bool line_bound (line_bounds *b, arena *a, int64_t first, int64_t end, error *err) MUST_CHECK;

/* The bounds are its own then. */
line *line_new (arena *a, line_bounds *bounds, error *err) MUST_CHECK;
bool line_take (line *l, int64_t first, int64_t end, int32_t who, line_met *met,
                void *context) MUST_CHECK;
