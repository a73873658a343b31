/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A binary tree over the stretches between bounds. A node whose whole stretch has one holder says
   so and its children are not looked at; so n takings cost n log n, however long the stretches are.
 */
#include "trace/check/line.h"

#include <assert.h>
#include <stdlib.h>

#include "base/order.h"

enum { NOBODY = -1, SEVERAL = -2, FEW = 1024 };

struct line {
  int64_t *bounds;
  int64_t count; /* of stretches, between bounds[i] and bounds[i + 1] */
  int32_t *holder;
};

static void sort_bounds (line_bounds *b) {
  int64_t kept = 0;
  qsort (b->at, (size_t)b->count, sizeof *b->at, order_int64);
  for (int64_t i = 0; i < b->count; i++)
    if (kept == 0 || b->at[i] != b->at[kept - 1])
      b->at[kept++] = b->at[i];
  b->count = kept;
}

bool line_bound (line_bounds *b, arena *a, int64_t first, int64_t end, error *err) {
  assert (first < end);
  if (b->count + 2 > b->room) {
    if (b->count)
      sort_bounds (b);
    if (b->count + 2 > b->room / 2 &&
        !(b->at = arena_grow (a, b->at, &b->room, b->room + FEW, sizeof *b->at, err)))
      return false;
  }
  b->at[b->count++] = first;
  b->at[b->count++] = end;
  return true;
}

line *line_new (arena *a, line_bounds *bounds, error *err) {
  line *l = NEW (a, 1, line, err);
  if (!l)
    return NULL;
  if (bounds->count)
    sort_bounds (bounds);
  l->bounds = bounds->at;
  l->count = bounds->count > 0 ? bounds->count - 1 : 0;
  int64_t nodes = 2;
  while (nodes < 2 * l->count)
    nodes *= 2;
  if (!(l->holder = NEW (a, nodes + 1, int32_t, err)))
    return NULL;
  for (int64_t i = 0; i <= nodes; i++)
    l->holder[i] = NOBODY;
  return l;
}

static int64_t place_of (const line *l, int64_t bound) {
  const int64_t *at =
      bsearch (&bound, l->bounds, (size_t)l->count + 1, sizeof *l->bounds, order_int64);
  assert (at);
  return at - l->bounds;
}

typedef struct taking {
  int64_t first, end;
  int32_t who;
  line_met *met;
  void *context;
} taking;

/* Node `node` stands for stretches [first, end). */
static bool take (line *l, int64_t node, int64_t first, int64_t end, const taking *x) {
  int32_t *mine = &l->holder[node];
  if (x->end <= first || end <= x->first)
    return true;
  bool covered = x->first <= first && end <= x->end;
  if (covered && *mine != SEVERAL) {
    bool on = *mine == NOBODY || x->met (x->context, *mine);
    *mine = x->who;
    return on;
  }
  if (*mine != SEVERAL)
    l->holder[2 * node] = l->holder[2 * node + 1] = *mine;
  int64_t middle = first + (end - first) / 2;
  if (!take (l, 2 * node, first, middle, x) || !take (l, 2 * node + 1, middle, end, x))
    return false;
  *mine = covered || l->holder[2 * node] == l->holder[2 * node + 1] ? l->holder[2 * node] : SEVERAL;
  return true;
}

bool line_take (line *l, int64_t first, int64_t end, int32_t who, line_met *met, void *context) {
  assert (met);
  taking x = { place_of (l, first), place_of (l, end), who, met, context };
  return first >= end || take (l, 1, 0, l->count, &x);
}
