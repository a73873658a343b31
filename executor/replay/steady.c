/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/replay/steady.h"

#include <assert.h>

#include "base/units.h"

static bool is_same (const steady_input *in, int32_t a, int32_t b) {
  const int64_t *x = in->times + (int64_t)a * in->width, *y = in->times + (int64_t)b * in->width;
  int64_t shift = in->starts[b] - in->starts[a];
  for (int32_t i = 0; i < in->width; i++)
    if (y[i] - x[i] != shift)
      return false;
  return true;
}

int64_t steady_step_ns (const steady_input *in, bool *settled) {
  assert (in->times && in->starts && in->steps > 0 && in->width >= 0);
  *settled = true;
  for (int32_t n = 1; n < in->steps; n++)
    for (int32_t j = 0; j < n; j++)
      if (is_same (in, j, n))
        return units_div_up (in->starts[n] - in->starts[j], n - j);
  *settled = false;
  int64_t worst = 0;
  for (int32_t n = in->steps > 9 ? in->steps - 8 : 1; n < in->steps; n++) {
    int64_t ns = in->starts[n] - in->starts[n - 1];
    worst = ns > worst ? ns : worst;
  }
  return worst;
}
