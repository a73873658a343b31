/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The smaller and the larger of two numbers, and the order of two for qsort. */
#ifndef FERRY_BASE_ORDER_H
#define FERRY_BASE_ORDER_H

#include <stdint.h>

static inline int64_t min_of (int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t max_of (int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* For int64_t: times, sizes. */
static inline int order_int64 (const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* For int32_t: indices, ops. */
static inline int order_int32 (const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

#endif
