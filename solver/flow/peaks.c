/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/peaks.h"

#include <assert.h>

bool peaks_build (peaks *p, const int64_t *values, int32_t count, arena *a, error *err) {
  assert (values && count >= 0);
  p->count = count;
  p->leaves = 1;
  while (p->leaves < count)
    p->leaves *= 2;
  p->most = NEW (a, 2 * (int64_t)p->leaves, int64_t, err);
  p->add = NEW (a, 2 * (int64_t)p->leaves, int64_t, err);
  if (!p->most || !p->add)
    return false;
  for (int32_t i = 0; i < p->leaves; i++)
    p->most[p->leaves + i] = i < count ? values[i] : INT64_MIN / 2;
  for (int32_t i = p->leaves - 1; i >= 1; i--)
    p->most[i] = p->most[2 * i] > p->most[2 * i + 1] ? p->most[2 * i] : p->most[2 * i + 1];
  return true;
}

static int64_t larger (int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* From the leaves upward, both ends at once: half of what a walk from the root looks at.  What is
   added to a node's whole range stays there; `most` of it is with that, without what its parents
   have. */
static void apply (peaks *p, int32_t node, int64_t value) {
  p->most[node] += value;
  p->add[node] += value;
}

static bool refresh (peaks *p, int32_t node) {
  int64_t before = p->most[node];
  p->most[node] = larger (p->most[2 * node], p->most[2 * node + 1]) + p->add[node];
  return p->most[node] != before;
}

void peaks_add (peaks *p, int32_t first, int32_t end, int64_t value) {
  assert (first >= 0 && end <= p->count);
  if (first >= end)
    return;
  int32_t left = first + p->leaves, right = end - 1 + p->leaves;
  apply (p, left, value);
  if (right != left)
    apply (p, right, value);
  for (; left >> 1 != right >> 1; refresh (p, left), refresh (p, right)) {
    if (!(left & 1))
      apply (p, left + 1, value);
    if (right & 1)
      apply (p, right - 1, value);
    left >>= 1;
    right >>= 1;
  }
  for (left >>= 1; left >= 1 && refresh (p, left); left >>= 1)
    ;
}

int64_t peaks_most (const peaks *p, int32_t first, int32_t end) {
  assert (first >= 0 && end <= p->count);
  if (first >= end)
    return INT64_MIN / 2;
  int32_t left = first + p->leaves, right = end - 1 + p->leaves;
  int64_t x = p->most[left], y = p->most[right];
  while (left >> 1 != right >> 1) {
    if (!(left & 1))
      x = larger (x, p->most[left + 1]);
    if (right & 1)
      y = larger (y, p->most[right - 1]);
    left >>= 1;
    right >>= 1;
    x += p->add[left];
    y += p->add[right];
  }
  x = larger (x, y);
  for (left >>= 1; left >= 1; left >>= 1)
    x += p->add[left];
  return x;
}

int32_t peaks_at (const peaks *p, int32_t first, int32_t end) {
  assert (first >= 0 && first < end && end <= p->count);
  int64_t most = peaks_most (p, first, end);
  while (end - first > 1) {
    int32_t middle = (first + end) / 2;
    if (peaks_most (p, first, middle) == most)
      end = middle;
    else
      first = middle;
  }
  return first;
}
