/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums over the rows of what is stored row after row: a team takes some columns side by side, its
   threads take every eighth row, and what they find is added up in their order. */
#pragma once

#include "executor/gpu/device.h"

enum { COLUMN_SUMS = 2, COLUMNS_WIDE = 32, COLUMNS_HIGH = TEAM / COLUMNS_WIDE };

/* The number-th term of a row and column. */
typedef float column_term (const void *context, int64_t row, int64_t column, int number);

/* to[number][column] += the sum; those that are 0 are left out. */
FN void column_sums (int64_t rows, int64_t columns, column_term *term, const void *context,
                     element *const to[COLUMN_SUMS]) {
  SHARED float found[COLUMN_SUMS][TEAM];
  TEAMS (t, (columns + COLUMNS_WIDE - 1) / COLUMNS_WIDE) {
    TEAM_SYNC;
    EVERY_LANE (l) {
      int64_t column = t * COLUMNS_WIDE + l % COLUMNS_WIDE;
      for (int n = 0; n < COLUMN_SUMS; n++) {
        float sum = 0;
        if (to[n] != 0 && column < columns)
          for (int64_t r = l / COLUMNS_WIDE; r < rows; r += COLUMNS_HIGH)
            sum += term (context, r, column, n);
        found[n][l] = sum;
      }
    }
    TEAM_SYNC;
    EVERY_LANE (l) {
      int64_t column = t * COLUMNS_WIDE + l % COLUMNS_WIDE;
      int n = l / COLUMNS_WIDE;
      if (n >= COLUMN_SUMS || to[n] == 0 || column >= columns)
        continue;
      float sum = 0;
      for (int i = 0; i < COLUMNS_HIGH; i++)
        sum += found[n][i * COLUMNS_WIDE + l % COLUMNS_WIDE];
      put (to[n], column, get (to[n], column) + sum);
    }
  }
}
