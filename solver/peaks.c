#include "solver/peaks.h"

bool peaks_build (peaks *p, const int64_t *values, int32_t count, arena *a, error *err) {
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

static void add (peaks *p, int32_t node, int32_t low, int32_t high, int32_t first, int32_t end,
                 int64_t value) {
  if (first >= high || end <= low)
    return;
  if (first <= low && high <= end) {
    p->most[node] += value;
    p->add[node] += value;
    return;
  }
  int32_t middle = (low + high) / 2;
  add (p, 2 * node, low, middle, first, end, value);
  add (p, 2 * node + 1, middle, high, first, end, value);
  int64_t a = p->most[2 * node], b = p->most[2 * node + 1];
  p->most[node] = (a > b ? a : b) + p->add[node];
}

static int64_t most (const peaks *p, int32_t node, int32_t low, int32_t high, int32_t first,
                     int32_t end) {
  if (first >= high || end <= low)
    return INT64_MIN / 2;
  if (first <= low && high <= end)
    return p->most[node];
  int32_t middle = (low + high) / 2;
  int64_t a = most (p, 2 * node, low, middle, first, end);
  int64_t b = most (p, 2 * node + 1, middle, high, first, end);
  return (a > b ? a : b) + p->add[node];
}

void peaks_add (peaks *p, int32_t first, int32_t end, int64_t value) {
  if (first < end)
    add (p, 1, 0, p->leaves, first, end, value);
}

int64_t peaks_most (const peaks *p, int32_t first, int32_t end) {
  return first < end ? most (p, 1, 0, p->leaves, first, end) : INT64_MIN / 2;
}
