/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times at which a copy engine is taken, for policies that reserve them.  The step repeats, so a
   time taken is taken in the steps before and behind too. */
#pragma once

#include "base/arena.h"

typedef struct link_time {
  int64_t from_ns, to_ns;
} link_time;

typedef struct link_times {
  link_time *at; /* sorted, disjoint */
  int64_t count, room, step_ns;
} link_times;

#define NO_TIME INT64_MIN

/* The earliest start at or after from_ns of a free time that ends by end_ns; NO_TIME: none. */
int64_t link_earliest (const link_times *l, int64_t from_ns, int64_t end_ns, int64_t length_ns);
/* The latest start of one. */
int64_t link_latest (const link_times *l, int64_t from_ns, int64_t end_ns, int64_t length_ns);
bool link_take (link_times *l, int64_t start_ns, int64_t length_ns, arena *a,
                error *err) MUST_CHECK;
