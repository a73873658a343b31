/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The smaller and the larger of two numbers, and the order of two for qsort. */
#pragma once

#include <stdint.h>

static inline int64_t min_of (int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t max_of (int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* -1, 0 or 1, of numbers of any type. Where the first ones tie, the next decide:
   ORDER (x->at, y->at) ?: ORDER (x->index, y->index). */
#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

/* For int64_t: times, sizes. */
static inline int order_int64 (const void *a, const void *b) {
  return ORDER (*(const int64_t *)a, *(const int64_t *)b);
}

/* For int32_t: indices, ops. */
static inline int order_int32 (const void *a, const void *b) {
  return ORDER (*(const int32_t *)a, *(const int32_t *)b);
}

/* The first i in [from, to) for which `test` holds, by halving; `to` where it holds for none. Where
   it holds for one, it holds for all behind. */
#define FIRST_WHERE(i, from, to, test)                             \
  ({                                                               \
    __typeof__ ((from) + (to)) i##_low = (from), i##_high = (to);  \
    while (i##_low < i##_high) {                                   \
      __typeof__ (i##_low) i = i##_low + (i##_high - i##_low) / 2; \
      if (test)                                                    \
        i##_high = i;                                              \
      else                                                         \
        i##_low = i + 1;                                           \
    }                                                              \
    i##_low;                                                       \
  })
