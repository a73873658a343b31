/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs on the GPU by when they were launched: sorted rows, and the first at or behind a time. */
#pragma once

#include <stdint.h>

/* `thread` is 0 in rows that are by time alone. */
typedef struct launched {
  int64_t at_ns;
  int32_t thread, run;
} launched;

void launches_sort (launched *rows, int32_t n); /* by thread, then time, then run */
/* Each row names the first run of those that its thread launches from then on: runs of several
   streams do not begin in the order of their launches. */
void launches_soonest (launched *rows, int32_t n);
/* The first row at or behind (thread, at_ns); n where there is none. */
int32_t launches_first (const launched *rows, int32_t n, int32_t thread, int64_t at_ns);
