/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/circle.h"

#include <assert.h>
#include <stdlib.h>

typedef struct point {
  moment at;
  int32_t what; /* as circle.at */
} point;

static int compare_points (const void *a, const void *b) {
  const point *x = a, *y = b;
  if (x->at.at_ns != y->at.at_ns)
    return x->at.at_ns < y->at.at_ns ? -1 : 1;
  return x->at.order < y->at.order ? -1 : x->at.order > y->at.order;
}

/* The same moment of the step that begins at `start`. */
static moment in_step (moment m, moment start, moment period) {
  while (m.at_ns > start.at_ns + period.at_ns ||
         (m.at_ns == start.at_ns + period.at_ns && m.order >= start.order + period.order)) {
    m.at_ns -= period.at_ns;
    m.order -= period.order;
  }
  while (m.at_ns < start.at_ns || (m.at_ns == start.at_ns && m.order < start.order)) {
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
