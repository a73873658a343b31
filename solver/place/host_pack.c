/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/host_pack.h"

#include <assert.h>
#include <stdlib.h>

#include "base/order.h"

enum { PLACE = 512, FEW = 4000 };

static int64_t rounded (int64_t bytes) {
  return (bytes + PLACE - 1) / PLACE * PLACE;
}

/* ---- spans that end within the step: a sweep over ops with a list of free blocks ---- */

typedef struct hole {
  int64_t first, end;
} hole;

typedef struct holes { /* sorted, never touching; the last one has no end */
  hole *at;
  int64_t count, room;
} holes;

static int64_t hole_take (holes *h, int64_t bytes) {
  int64_t best = h->count - 1;
  for (int64_t i = 0; i + 1 < h->count; i++) {
    int64_t size = h->at[i].end - h->at[i].first;
    if (size >= bytes && (best == h->count - 1 || size < h->at[best].end - h->at[best].first))
      best = i;
  }
  int64_t offset = h->at[best].first;
  h->at[best].first += bytes;
  if (best + 1 < h->count && h->at[best].first == h->at[best].end) {
    for (int64_t i = best; i + 1 < h->count; i++)
      h->at[i] = h->at[i + 1];
    h->count--;
  }
  return offset;
}

static bool hole_give (holes *h, hole x, arena *a, error *err) {
  int64_t i = 0;
  while (h->at[i].first < x.first)
    i++;
  bool left = i > 0 && h->at[i - 1].end == x.first, right = h->at[i].first == x.end;
  if (left && right) {
    h->at[i - 1].end = h->at[i].end;
    for (h->count--; i < h->count; i++)
      h->at[i] = h->at[i + 1];
    return true;
  }
  if (left || right) {
    if (left)
      h->at[i - 1].end = x.end;
    else
      h->at[i].first = x.first;
    return true;
  }
  hole *moved = arena_grow (a, h->at, &h->room, h->count + 1, sizeof *h->at, err);
  if (!moved)
    return false;
  h->at = moved;
  for (int64_t j = h->count++; j > i; j--)
    h->at[j] = h->at[j - 1];
  h->at[i] = x;
  return true;
}

static int by_from (const void *a, const void *b, void *context) {
  const host_span *s = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return ORDER (s[i].from, s[j].from) ?: ORDER (s[j].bytes, s[i].bytes) ?: ORDER (i, j);
}

static int by_to (const void *a, const void *b, void *context) {
  const host_span *s = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return ORDER (s[i].to, s[j].to) ?: ORDER (i, j);
}

static int by_size (const void *a, const void *b, void *context) {
  const host_span *s = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return ORDER (s[j].bytes, s[i].bytes) ?: ORDER (i, j);
}

static int64_t pack_by_time (host_span *s, int32_t *order, int32_t n, int64_t first, arena *a,
                             error *err) {
  int32_t *leaving = NEW (a, n, int32_t, err);
  holes h = { .at = NEW (a, 8, hole, err), .count = 1, .room = 8 };
  int64_t top = first;
  if (!leaving || !h.at)
    return -1;
  h.at[0] = (hole){ first, INT64_MAX };
  for (int32_t i = 0; i < n; i++)
    leaving[i] = order[i];
  qsort_r (order, (size_t)n, sizeof *order, by_from, s);
  qsort_r (leaving, (size_t)n, sizeof *leaving, by_to, s);
  for (int32_t i = 0, gone = 0; i < n; i++) {
    host_span *x = &s[order[i]];
    for (; gone < n && s[leaving[gone]].to <= x->from; gone++) {
      const host_span *y = &s[leaving[gone]];
      if (!hole_give (&h, (hole){ y->offset, y->offset + rounded (y->bytes) }, a, err))
        return -1;
    }
    x->offset = hole_take (&h, rounded (x->bytes));
    if (x->offset + rounded (x->bytes) > top)
      top = x->offset + rounded (x->bytes);
  }
  return top;
}

/* Largest first, each at the lowest place that is free over its whole span: a little tighter, and
   quadratic. */
static int64_t pack_by_size (host_span *s, int32_t *order, int32_t n, int64_t first, arena *a,
                             error *err) {
  int32_t *placed = NEW (a, n, int32_t, err); /* in order of offset */
  int64_t top = first;
  if (!placed)
    return -1;
  qsort_r (order, (size_t)n, sizeof *order, by_size, s);
  for (int32_t i = 0; i < n; i++) {
    host_span *x = &s[order[i]];
    int64_t at = first, bytes = rounded (x->bytes);
    int32_t j = 0;
    for (; j < i; j++) {
      const host_span *y = &s[placed[j]];
      if (y->from >= x->to || x->from >= y->to)
        continue;
      if (y->offset >= at + bytes)
        break;
      int64_t end = y->offset + rounded (y->bytes);
      if (end > at)
        at = end;
    }
    x->offset = at;
    if (at + bytes > top)
      top = at + bytes;
    for (j = i; j > 0 && s[placed[j - 1]].offset > at; j--)
      placed[j] = placed[j - 1];
    placed[j] = order[i];
  }
  return top;
}

/* The tighter of the two; -1 on failure. */
static int64_t better_by_size (host_span *s, int32_t *order, int32_t n, int64_t first, int64_t top,
                               arena *a, error *err) {
  int64_t *kept = NEW (a, n, int64_t, err);
  int32_t *same = NEW (a, n, int32_t, err);
  if (!kept || !same)
    return -1;
  for (int32_t i = 0; i < n; i++) {
    same[i] = order[i];
    kept[i] = s[order[i]].offset;
  }
  int64_t other = pack_by_size (s, order, n, first, a, err);
  if (other < top)
    return other;
  for (int32_t i = 0; i < n; i++)
    s[same[i]].offset = kept[i];
  return top;
}

int64_t host_pack (host_span *s, int32_t count, arena *scratch, error *err) {
  assert (count >= 0 && (s || count == 0));
  arena_mark mark = arena_here (scratch);
  int32_t *order = NEW (scratch, count, int32_t, err);
  if (!order)
    return -1;
  int32_t n = 0;
  int64_t first = 0;
  /* Bytes held over the end of the step, or always, have a place that nobody shares. */
  for (int32_t i = 0; i < count; i++)
    if (s[i].from < 0 || s[i].to <= s[i].from) {
      s[i].offset = first;
      first += rounded (s[i].bytes);
    } else
      order[n++] = i;
  int64_t top = pack_by_time (s, order, n, first, scratch, err);
  if (top >= 0 && n <= FEW)
    top = better_by_size (s, order, n, first, top, scratch, err);
  arena_back (scratch, mark);
  return top;
}
