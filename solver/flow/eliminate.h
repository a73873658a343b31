/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An order in which to eliminate the rows of a symmetric sparse matrix, such that its factor has
   few entries. */
#pragma once

#include "base/arena.h"

/* Which rows meet: those of row i are next[start[i]] up to next[start[i + 1]], each pair from both
   sides, none with itself. */
typedef struct meetings {
  int32_t n;
  const int64_t *start;
  const int32_t *next;
} meetings;

/* order[k]: the row that is eliminated as the k-th. */
bool order_rows (const meetings *g, arena *a, int32_t *order, error *err) MUST_CHECK;
