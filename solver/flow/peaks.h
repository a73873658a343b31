/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A row of numbers with "add to a range" and "greatest of a range", each in logarithmic time. */
#pragma once

#include "base/arena.h"

typedef struct peaks {
  int32_t count, leaves;
  int64_t *most; /* of a node's range, without what its ancestors add */
  int64_t *add;
} peaks;

bool peaks_build (peaks *p, const int64_t *values, int32_t count, arena *a, error *err) MUST_CHECK;
/* [first, end); nothing happens where it is empty. */
void peaks_add (peaks *p, int32_t first, int32_t end, int64_t value);
int64_t peaks_most (const peaks *p, int32_t first, int32_t end); /* a very low number where empty */
int32_t peaks_at (const peaks *p, int32_t first, int32_t end); /* the first place of the greatest */
