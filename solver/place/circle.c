/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/circle.h"

#include <assert.h>
#include <stdlib.h>

#include "base/order.h"

typedef struct point {
  moment at;
  int32_t what; /* as circle.at */
} point;

static int compare_moments (moment x, moment y) {
  int order = order_int64 (&x.at_ns, &y.at_ns);
  return order ? order : order_int64 (&x.order, &y.order);
}

static int compare_points (const void *a, const void *b) {
  return compare_moments (((const point *)a)->at, ((const point *)b)->at);
}

/* The same moment of the step that begins at `start`. */
static moment in_step (moment m, moment start, moment period) {
  moment end = { start.at_ns + period.at_ns, start.order + period.order };
  while (compare_moments (m, end) >= 0) {
    m.at_ns -= period.at_ns;
    m.order -= period.order;
  }
  while (compare_moments (m, start) < 0) {
    m.at_ns += period.at_ns;
    m.order += period.order;
  }
  return m;
}

bool circle_of (const stays *l, moment period, moment start, arena *a, circle *out, error *err) {
  assert (l->count >= 0 && out);
  *out = (circle){ .birth = NEW (a, l->count, int64_t, err),
                   .end = NEW (a, l->count, int64_t, err),
                   .at = NEW (a, 2 * (int64_t)l->count, int32_t, err) };
  if (!out->birth || !out->end || !out->at)
    return false;
  arena_mark here = arena_here (a);
  point *points = NEW (a, 2 * (int64_t)l->count, point, err);
  if (!points)
    return false;
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always) {
      points[out->ranks++] = (point){ in_step (l->at[i].from, start, period), i };
      points[out->ranks++] = (point){ in_step (l->at[i].to, start, period), -1 - i };
    }
  qsort (points, (size_t)out->ranks, sizeof *points, compare_points);
  for (int64_t i = 0; i < out->ranks; i++) {
    int32_t what = out->at[i] = points[i].what;
    *(what < 0 ? &out->end[-1 - what] : &out->birth[what]) = i;
  }
  arena_back (a, here);
  return true;
}
