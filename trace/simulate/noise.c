/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/noise.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/random.h"
#include "base/units.h"
#include "trace/simulate/simulate.h"

enum { PPM = 1000000, PPM_A_PERCENT = 10000 };

bool noise_day (const trace *t, const noise_options *o, int32_t day, arena *a, trace *out,
                error *err) {
  assert (t && o && out && day >= 0);
  random_state days = random_seed (o->seed);
  for (int32_t i = 0; i < day; i++)
    (void)random_next (&days);
  random_state r = random_seed (random_next (&days));
  int64_t most_ppm = (int64_t)o->percent * PPM_A_PERCENT;
  *out = *t;
  if (!ALLOC (a, out->ops, t->n_ops, err))
    return false;
  memcpy (out->ops, t->ops, (size_t)t->n_ops * sizeof *t->ops);
  for (int32_t k = 0; k < t->n_ops; k++)
    out->ops[k].ns =
        units_scale (t->ops[k].ns, PPM + random_between (&r, -most_ppm, most_ppm), PPM);
  return true;
}

bool noise_of_plan (const trace *t, const plan *p, const noise_options *o, arena *scratch,
                    noise_spread *out, error *err) {
  assert (t && p && o && o->days > 0);
  arena_mark mark = arena_here (scratch);
  int64_t *over_ppm = NEW (scratch, o->days, int64_t, err);
  bool ok = over_ppm;
  for (int32_t i = 0; ok && i < o->days; i++) {
    arena_mark here = arena_here (scratch);
    trace day;
    predicted cost;
    ok = noise_day (t, o, i, scratch, &day, err) && simulate_plan (&day, p, scratch, &cost, err);
    int64_t sum_ns = ok ? trace_total_ns (&day) : 0;
    over_ppm[i] = sum_ns > 0 ? units_scale (cost.step_ns, PPM, sum_ns) - PPM : 0;
    arena_back (scratch, here);
  }
  if (ok) {
    int32_t n = o->days;
    qsort (over_ppm, (size_t)n, sizeof *over_ppm, order_int64);
    *out = (noise_spread){ over_ppm[0], over_ppm[(n - 1) / 2], over_ppm[(n * 95 + 99) / 100 - 1],
                           over_ppm[n - 1] };
  }
  arena_back (scratch, mark);
  return ok;
}
