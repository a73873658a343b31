/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time that has passed since some moment: it does not jump when the time of day is set. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t monotonic_ns (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
