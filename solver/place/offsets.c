/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/offsets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* ---- one round ---- */

/* A window that has its place. */
typedef struct held {
  int64_t bottom, top;
  int32_t from, end;
} held;

typedef struct ranked {
  int64_t rank; /* the larger the sooner */
  int64_t second;
  int32_t thing;
} ranked;

typedef struct rounds {
  const offset_problem *p;
  arena *arena;
  error *err;
  ranked *order, *under; /* under: blame's own */
  int64_t *offset, *best;
  int64_t best_bytes, ticks;
  held *held; /* by their bottoms */
  int32_t n_held;
  int32_t *seen;    /* of what is held, by each window of a thing */
  int64_t *fullest; /* per thing: the most bytes that are there while it is */
} rounds;

static int by_rank (const void *a, const void *b) {
  const ranked *x = a, *y = b;
  return ORDER (y->rank, x->rank) ?: ORDER (y->second, x->second) ?: ORDER (x->thing, y->thing);
}

/* All of it is there in every window, of which there are one or two. */
static bool is_plain (const offset_problem *p, const offset_thing *t) {
  for (int32_t i = t->first; i < t->first + t->count; i++)
    if (p->windows[i].low != 0 || p->windows[i].high != t->bytes)
      return false;
  return t->count == 1 || t->count == 2;
}

/* The first gap between what is held in those windows. */
static int64_t lowest_plain (rounds *r, const offset_thing *t) {
  const offset_window *w = &r->p->windows[t->first], *v = t->count > 1 ? w + 1 : w;
  int64_t offset = 0;
  int32_t i = 0;
  for (; i < r->n_held; i++) {
    const held *x = &r->held[i];
    if (!((x->from < w->end && w->from < x->end) || (x->from < v->end && v->from < x->end)))
      continue;
    if (x->bottom >= offset + t->bytes)
      break;
    offset = x->top > offset ? x->top : offset;
  }
  r->ticks += i + 1;
  return offset;
}

/* The offset that clears window `w` of what is held below its top; as it rises, more is. */
static int64_t raise (const rounds *r, const offset_window *w, int32_t *seen, int64_t offset) {
  for (; *seen < r->n_held && r->held[*seen].bottom < offset + w->high; ++*seen) {
    const held *x = &r->held[*seen];
    if (x->from < w->end && w->from < x->end && x->top - w->low > offset)
      offset = x->top - w->low;
  }
  return offset;
}

static int64_t lowest (rounds *r, const offset_thing *t) {
  if (is_plain (r->p, t))
    return lowest_plain (r, t);
  int64_t offset = -1, next = 0;
  memset (r->seen, 0, (size_t)t->count * sizeof *r->seen);
  while (next > offset) {
    offset = next;
    for (int32_t i = 0; i < t->count; i++)
      next = raise (r, &r->p->windows[t->first + i], &r->seen[i], next);
  }
  r->ticks += (int64_t)t->count * r->n_held;
  return offset;
}

static void put (rounds *r, int32_t thing) {
  const offset_thing *t = &r->p->things[thing];
  for (int32_t i = t->first; i < t->first + t->count; i++) {
    const offset_window *w = &r->p->windows[i];
    held new = { r->offset[thing] + w->low, r->offset[thing] + w->high, w->from, w->end };
    int32_t low = 0, high = r->n_held;
    while (low < high) {
      int32_t middle = (low + high) / 2;
      if (r->held[middle].bottom < new.bottom)
        low = middle + 1;
      else
        high = middle;
    }
    memmove (r->held + low + 1, r->held + low, (size_t)(r->n_held - low) * sizeof *r->held);
    r->held[low] = new;
    r->n_held++;
  }
}

static int64_t round_once (rounds *r) {
  int64_t height_bytes = 0;
  r->n_held = 0;
  for (int32_t i = 0; i < r->p->n_things; i++) {
    int32_t thing = r->order[i].thing;
    const offset_thing *t = &r->p->things[thing];
    r->offset[thing] = lowest (r, t);
    put (r, thing);
    int64_t top = r->offset[thing] + t->bytes;
    height_bytes = top > height_bytes ? top : height_bytes;
  }
  return height_bytes;
}

/* ---- rounds ---- */

typedef enum first_order {
  BY_LENGTH_STACKED,
  BY_CROWD,
  BY_AREA_STACKED,
  BY_BYTES,
  BY_TIME,
  BY_AREA,
  FIRST_ORDERS
} first_order;

static void sort_things (rounds *r) {
  qsort (r->order, (size_t)r->p->n_things, sizeof *r->order, by_rank);
}

/* From below. */
static bool rank_stacked (rounds *r, first_order by) {
  if (!offsets_skyline (r->p, by == BY_AREA_STACKED, r->arena, r->offset, &r->ticks, r->err))
    return false;
  for (int32_t i = 0; i < r->p->n_things; i++)
    r->order[i] = (ranked){ -r->offset[i], r->p->things[i].bytes, i };
  sort_things (r);
  return true;
}

static bool rank_things (rounds *r, first_order by) {
  if (by == BY_LENGTH_STACKED || by == BY_AREA_STACKED)
    return rank_stacked (r, by);
  for (int32_t i = 0; i < r->p->n_things; i++) {
    const offset_thing *t = &r->p->things[i];
    int64_t moments = 0;
    for (int32_t j = t->first; j < t->first + t->count; j++)
      moments += r->p->windows[j].end - r->p->windows[j].from;
    int64_t area = t->bytes > INT64_MAX / (moments + 1) ? INT64_MAX : t->bytes * moments;
    const int64_t rank[FIRST_ORDERS] = {
      [BY_CROWD] = r->fullest[i], [BY_BYTES] = t->bytes, [BY_TIME] = moments, [BY_AREA] = area
    };
    r->order[i] = (ranked){ rank[by], by == BY_TIME || by == BY_AREA ? t->bytes : moments, i };
  }
  sort_things (r);
  return true;
}

/* Those that lie over the capacity go a third of the way to the front: both kinds stay in their
   order, so they are merged, from behind. */
static void blame (rounds *r) {
  int32_t n = r->p->n_things, over = 0, under = 0;
  for (int32_t i = 0; i < n; i++) {
    ranked x = r->order[i];
    bool high = r->offset[x.thing] + r->p->things[x.thing].bytes > r->p->capacity_bytes;
    x.rank = high ? -2 * (int64_t)i + 1 : -3 * (int64_t)i;
    *(high ? &r->order[over++] : &r->under[under++]) = x;
  }
  for (int32_t i = n - 1; under > 0; i--) {
    bool later = over > 0 && by_rank (&r->order[over - 1], &r->under[under - 1]) > 0;
    r->order[i] = later ? r->order[--over] : r->under[--under];
  }
}

static bool keep_best (rounds *r, int64_t height_bytes) {
  if (height_bytes >= r->best_bytes)
    return false;
  r->best_bytes = height_bytes;
  memcpy (r->best, r->offset, (size_t)r->p->n_things * sizeof *r->best);
  return true;
}

static bool is_over (const rounds *r, int64_t limit_ticks) {
  return r->best_bytes <= r->p->capacity_bytes || r->ticks >= limit_ticks;
}

/* Others that follow from what lies too high. */
static void go_on (rounds *r, int64_t limit_ticks) {
  enum { PATIENCE = 12 };
  for (int idle = 0; idle < PATIENCE && !is_over (r, limit_ticks); idle++) {
    blame (r);
    if (keep_best (r, round_once (r)))
      idle = 0;
  }
}

static bool round_of (rounds *r, first_order by, int64_t *height) {
  if (!rank_things (r, by))
    return false;
  *height = round_once (r);
  keep_best (r, *height);
  return true;
}

/* The first orders once each, unless they take many times the ticks; the others as long as there
   are ticks; then from the best on, and from the others. */
static bool all_rounds (rounds *r, int64_t limit_ticks) {
  enum { FIRST = 3, TIMES = 8 };
  int64_t heights[FIRST_ORDERS], height;
  for (int by = 0; by < FIRST_ORDERS; by++)
    heights[by] = INT64_MAX;
  for (int by = 0; by < FIRST_ORDERS; by++) {
    if (by && is_over (r, by < FIRST ? TIMES * limit_ticks : limit_ticks))
      break;
    if (!round_of (r, (first_order)by, &heights[by]))
      return false;
  }
  for (int i = 0; i < FIRST_ORDERS && !is_over (r, limit_ticks); i++) {
    int by = 0;
    for (int j = 1; j < FIRST_ORDERS; j++)
      by = heights[j] < heights[by] ? j : by;
    heights[by] = INT64_MAX;
    if (!round_of (r, (first_order)by, &height))
      return false;
    go_on (r, limit_ticks);
  }
  return true;
}

/* The most bytes at any moment of each thing: a tree of maxima over the moments. */
static bool find_fullest (rounds *r) {
  const offset_problem *p = r->p;
  int64_t n = 0, held = 0, leaves = 1;
  for (int32_t i = 0; i < p->n_windows; i++)
    n = p->windows[i].end > n ? p->windows[i].end : n;
  while (leaves < n + 1)
    leaves *= 2;
  int64_t *most = NEW (r->arena, 2 * leaves, int64_t, r->err);
  if (!most)
    return false;
  for (int32_t i = 0; i < p->n_windows; i++) {
    most[leaves + p->windows[i].from] += p->windows[i].high - p->windows[i].low;
    most[leaves + p->windows[i].end] -= p->windows[i].high - p->windows[i].low;
  }
  for (int64_t i = 0; i < leaves; i++)
    most[leaves + i] = held += most[leaves + i];
  for (int64_t i = leaves - 1; i > 0; i--)
    most[i] = most[2 * i] > most[2 * i + 1] ? most[2 * i] : most[2 * i + 1];
  for (int32_t i = 0; i < p->n_things; i++)
    for (int32_t j = p->things[i].first; j < p->things[i].first + p->things[i].count; j++) {
      int64_t from = leaves + p->windows[j].from, end = leaves + p->windows[j].end;
      for (; from < end; from /= 2, end /= 2) {
        if (from & 1)
          r->fullest[i] = most[from] > r->fullest[i] ? most[from] : r->fullest[i], from++;
        if (end & 1)
          end--, r->fullest[i] = most[end] > r->fullest[i] ? most[end] : r->fullest[i];
      }
    }
  return true;
}

static bool start_rounds (rounds *r, error *err) {
  const offset_problem *p = r->p;
  if (!ALLOC (r->arena, r->order, p->n_things, err) ||
      !ALLOC (r->arena, r->under, p->n_things, err) ||
      !ALLOC (r->arena, r->offset, p->n_things, err) ||
      !ALLOC (r->arena, r->best, p->n_things, err) ||
      !ALLOC (r->arena, r->held, p->n_windows, err) ||
      !ALLOC (r->arena, r->seen, p->n_windows, err) ||
      !ALLOC (r->arena, r->fullest, p->n_things, err))
    return false;
  for (int32_t j = 0; j < p->n_windows; j++) {
    const offset_window *w = &p->windows[j];
    assert (w->from >= 0 && w->from < w->end && w->low >= 0 && w->low < w->high);
  }
  return find_fullest (r);
}

bool offsets_greedy (const offset_problem *p, int64_t limit_ticks, arena *a, offset_answer *out,
                     error *err) {
  rounds r = { .p = p, .arena = a, .err = err, .best_bytes = INT64_MAX };
  *out = (offset_answer){ 0 };
  if (!start_rounds (&r, err) || !all_rounds (&r, limit_ticks))
    return false;
  *out = (offset_answer){ r.best, p->n_things ? r.best_bytes : 0, r.ticks };
  return true;
}

bool offsets_find (const offset_problem *p, int64_t limit_ticks, arena *a, offset_answer *out,
                   error *err) {
  offset_answer exact = { 0 };
  bool found;
  if (!offsets_greedy (p, limit_ticks / 2, a, out, err))
    return false;
  if (out->height_bytes <= p->capacity_bytes || out->ticks >= limit_ticks)
    return true;
  if (!offsets_exact (p, limit_ticks - out->ticks, a, &exact, &found, err))
    return false;
  exact.ticks += out->ticks;
  if (found)
    *out = exact;
  else
    out->ticks = exact.ticks;
  return true;
}
