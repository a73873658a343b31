/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/common/launches.h"

#include <assert.h>
#include <stdlib.h>

static int by_launch (const void *a, const void *b) {
  const launched *x = a, *y = b;
  if (x->thread != y->thread)
    return x->thread < y->thread ? -1 : 1;
  if (x->at_ns != y->at_ns)
    return x->at_ns < y->at_ns ? -1 : 1;
  return x->run < y->run ? -1 : x->run > y->run;
}

void launches_sort (launched *rows, int32_t n) {
  if (n > 0)
    qsort (rows, (size_t)n, sizeof *rows, by_launch);
}

void launches_soonest (launched *rows, int32_t n) {
  for (int32_t i = n - 2; i >= 0; i--)
    if (rows[i].thread == rows[i + 1].thread && rows[i + 1].run < rows[i].run)
      rows[i].run = rows[i + 1].run;
}

int32_t launches_first (const launched *rows, int32_t n, int32_t thread, int64_t at_ns) {
  assert (n >= 0 && (rows || n == 0));
  int32_t low = 0, high = n;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    const launched *r = &rows[middle];
    if (r->thread < thread || (r->thread == thread && r->at_ns < at_ns))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
