/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/replay/steady.h"

#include <assert.h>

#include "base/units.h"

static bool is_same (const steady_input *in, int32_t a, int32_t b, int64_t shift) {
  const int64_t *x = in->times + (int64_t)a * in->width, *y = in->times + (int64_t)b * in->width;
  for (int32_t i = 0; i < in->width; i++)
    if (y[i] - x[i] != shift)
      return false;
  return true;
}

static bool are_same (const steady_input *in, int32_t ranks, int32_t a, int32_t b) {
  for (int32_t r = 0; r < ranks; r++)
    if (!is_same (&in[r], a, b, in->starts[b] - in->starts[a]))
      return false;
  return true;
}

int64_t steady_step_ns (const steady_input *in, int32_t ranks, bool *settled) {
  assert (in->times && in->starts && in->steps > 0 && in->width >= 0);
  *settled = true;
  for (int32_t n = 1; n < in->steps; n++)
    for (int32_t j = 0; j < n; j++)
      if (are_same (in, ranks, j, n))
        return units_div_up (in->starts[n] - in->starts[j], n - j);
  *settled = false;
  int64_t worst = 0;
  for (int32_t n = in->steps > 9 ? in->steps - 8 : 1; n < in->steps; n++) {
    int64_t ns = in->starts[n] - in->starts[n - 1];
    worst = ns > worst ? ns : worst;
  }
  return worst;
}
