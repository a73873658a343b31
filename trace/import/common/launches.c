/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/common/launches.h"

#include <assert.h>
#include <stdlib.h>

#include "base/order.h"

static int by_launch (const void *a, const void *b) {
  const launched *x = a, *y = b;
  return ORDER (x->thread, y->thread) ?: ORDER (x->at_ns, y->at_ns) ?: ORDER (x->run, y->run);
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
  return FIRST_WHERE (
      i, 0, n, rows[i].thread > thread || (rows[i].thread == thread && rows[i].at_ns >= at_ns));
}
