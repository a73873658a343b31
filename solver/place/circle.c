/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/circle.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"

typedef struct point {
  moment at;
  int32_t what; /* as circle.at */
} point;

static int compare_moments (moment x, moment y) {
  int order = order_int64 (&x.at_ns, &y.at_ns);
  return order ? order : order_int64 (&x.order, &y.order);
}

/* Moments of different steps may fall together: then stays in their order, births first. */
static bool is_before (const point *x, const point *y) {
  int order = compare_moments (x->at, y->at);
  int64_t a = x->what < 0 ? -2 * (int64_t)x->what - 1 : 2 * (int64_t)x->what;
  int64_t b = y->what < 0 ? -2 * (int64_t)y->what - 1 : 2 * (int64_t)y->what;
  return order ? order < 0 : a < b;
}

moment circle_moment (moment m, moment start, moment period) {
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

/* In the order of the forward run, in which each moment has a number of its own: into places by
   number, which is faster than sorting. */
static bool in_turn (const stays *l, arena *a, point *points, int64_t *count, error *err) {
  int64_t least = INT64_MAX, most = -1;
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always) {
      int64_t from = l->at[i].from.order, to = l->at[i].to.order;
      least = min_of (least, min_of (from, to));
      most = max_of (most, max_of (from, to));
    }
  *count = 0;
  if (most < 0)
    return true;
  int32_t *number = NEW (a, most - least + 1, int32_t, err); /* as points, but births from 1 on */
  if (!number)
    return false;
  for (int32_t i = 0; i < l->count; i++)
    if (!l->at[i].always) {
      number[l->at[i].from.order - least] = i + 1;
      number[l->at[i].to.order - least] = -1 - i;
    }
  for (int64_t i = 0; i <= most - least; i++)
    if (number[i] > 0)
      points[(*count)++] = (point){ l->at[number[i] - 1].from, number[i] - 1 };
    else if (number[i] < 0)
      points[(*count)++] = (point){ l->at[-1 - number[i]].to, number[i] };
  return true;
}

/* Sorts what is ascending but for a few places: as it is where steps are told apart. */
static void merge (point *points, point *room, int64_t count) {
  for (int64_t first = 1, end; first < count; first = end) {
    for (end = first; end < count && (end == first || !is_before (&points[end], &points[end - 1]));)
      end++;
    if (!is_before (&points[first], &points[first - 1]))
      continue;
    int64_t i = 0, j = first, n = 0;
    while (i < first && j < end)
      room[n++] = is_before (&points[j], &points[i]) ? points[j++] : points[i++];
    memcpy (room + n, points + i, (size_t)(first - i) * sizeof *room);
    memcpy (points, room, (size_t)(n + first - i) * sizeof *room);
  }
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
  point *room = NEW (a, 2 * (int64_t)l->count, point, err);
  if (!points || !room || !in_turn (l, a, points, &out->ranks, err))
    return false;
  for (int64_t i = 0; i < out->ranks; i++)
    points[i].at = circle_moment (points[i].at, start, period);
  merge (points, room, out->ranks);
  for (int64_t i = 0; i < out->ranks; i++) {
    int32_t what = out->at[i] = points[i].what;
    *(what < 0 ? &out->end[-1 - what] : &out->birth[what]) = i;
  }
  arena_back (a, here);
  return true;
}
