#include "solver/place/offsets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct change {
  int32_t at;
  int64_t bytes;
} change;

static int by_moment (const void *a, const void *b) {
  const change *x = a, *y = b;
  if (x->at != y->at)
    return x->at < y->at ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

bool offsets_least (const offset_problem *p, arena *scratch, int64_t *bytes, error *err) {
  change *at = NEW (scratch, 2 * (int64_t)p->n_windows, change, err);
  int64_t held = 0;
  *bytes = 0;
  if (!at)
    return false;
  for (int32_t i = 0; i < p->n_windows; i++) {
    const offset_window *w = &p->windows[i];
    at[2 * i] = (change){ w->from, w->high - w->low };
    at[2 * i + 1] = (change){ w->end, w->low - w->high };
  }
  qsort (at, (size_t)p->n_windows * 2, sizeof *at, by_moment);
  for (int32_t i = 0; i < 2 * p->n_windows; i++) {
    held += at[i].bytes;
    *bytes = held > *bytes ? held : *bytes;
  }
  return true;
}

/* ---- one round ---- */

/* Offsets strictly between these two are taken. */
typedef struct taken {
  int64_t above, below;
} taken;

typedef struct ranked {
  int64_t rank; /* the larger the sooner */
  int64_t second;
  int32_t thing;
} ranked;

typedef struct rounds {
  const offset_problem *p;
  arena *arena;
  error *err;
  ranked *order;
  int64_t *offset, *best;
  int64_t best_bytes, ticks;
  taken *taken;
  int64_t taken_room;
  int32_t *windows; /* of what is placed, by their first moment */
  int32_t *thing_of;
  int32_t n_placed, longest; /* windows; the longest of all in moments */
} rounds;

static int by_rank (const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->rank != y->rank)
    return x->rank > y->rank ? -1 : 1;
  if (x->second != y->second)
    return x->second > y->second ? -1 : 1;
  return x->thing < y->thing ? -1 : 1;
}

static int by_above (const void *a, const void *b) {
  const taken *x = a, *y = b;
  if (x->above != y->above)
    return x->above < y->above ? -1 : 1;
  return x->below < y->below ? -1 : x->below > y->below;
}

/* The first placed window that starts at `moment` or later. */
static int32_t placed_from (const rounds *r, int32_t moment) {
  int32_t low = 0, high = r->n_placed;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (r->p->windows[r->windows[middle]].from < moment)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* What is placed and there at some moment of window `w` forbids offsets. */
static bool forbid (rounds *r, const offset_window *w, int64_t *n) {
  for (int32_t i = placed_from (r, w->from - r->longest); i < r->n_placed; i++) {
    int32_t other = r->windows[i];
    const offset_window *x = &r->p->windows[other];
    r->ticks++;
    if (x->from >= w->end)
      break;
    if (x->end <= w->from)
      continue;
    taken *room = arena_grow (r->arena, r->taken, &r->taken_room, *n + 1, sizeof *room, r->err);
    if (!room)
      return false;
    r->taken = room;
    int64_t offset = r->offset[r->thing_of[other]];
    r->taken[(*n)++] = (taken){ offset + x->low - w->high, offset + x->high - w->low };
  }
  return true;
}

static bool lowest (rounds *r, int32_t thing, int64_t *offset) {
  const offset_thing *t = &r->p->things[thing];
  int64_t n = 0;
  for (int32_t i = 0; i < t->count; i++)
    if (!forbid (r, &r->p->windows[t->first + i], &n))
      return false;
  qsort (r->taken, (size_t)n, sizeof *r->taken, by_above);
  *offset = 0;
  for (int64_t i = 0; i < n && r->taken[i].above < *offset; i++)
    if (r->taken[i].below > *offset)
      *offset = r->taken[i].below;
  return true;
}

static void put (rounds *r, int32_t thing) {
  const offset_thing *t = &r->p->things[thing];
  for (int32_t i = t->first; i < t->first + t->count; i++) {
    int32_t at = placed_from (r, r->p->windows[i].from);
    memmove (r->windows + at + 1, r->windows + at, (size_t)(r->n_placed - at) * sizeof *r->windows);
    r->windows[at] = i;
    r->n_placed++;
  }
}

static bool round_once (rounds *r, int64_t *height_bytes) {
  *height_bytes = 0;
  r->n_placed = 0;
  for (int32_t i = 0; i < r->p->n_things; i++) {
    int32_t thing = r->order[i].thing;
    if (!lowest (r, thing, &r->offset[thing]))
      return false;
    put (r, thing);
    int64_t top = r->offset[thing] + r->p->things[thing].bytes;
    *height_bytes = top > *height_bytes ? top : *height_bytes;
  }
  return true;
}

/* ---- rounds ---- */

typedef enum first_order { BY_BYTES, BY_TIME, BY_AREA, FIRST_ORDERS } first_order;

static void rank_things (rounds *r, first_order by) {
  for (int32_t i = 0; i < r->p->n_things; i++) {
    const offset_thing *t = &r->p->things[i];
    int64_t moments = 0;
    for (int32_t j = t->first; j < t->first + t->count; j++)
      moments += r->p->windows[j].end - r->p->windows[j].from;
    int64_t area = t->bytes > INT64_MAX / (moments + 1) ? INT64_MAX : t->bytes * moments;
    int64_t rank = by == BY_BYTES ? t->bytes : by == BY_TIME ? moments : area;
    r->order[i] = (ranked){ rank, by == BY_BYTES ? moments : t->bytes, i };
  }
  qsort (r->order, (size_t)r->p->n_things, sizeof *r->order, by_rank);
}

/* Those that lie over the capacity go a third of the way to the front. */
static void blame (rounds *r) {
  int32_t n = r->p->n_things;
  for (int32_t i = 0; i < n; i++)
    r->order[i].rank = -3 * (int64_t)i;
  for (int32_t i = 0; i < n; i++) {
    int32_t thing = r->order[i].thing;
    if (r->offset[thing] + r->p->things[thing].bytes > r->p->capacity_bytes)
      r->order[i].rank = -2 * (int64_t)i + 1;
  }
  qsort (r->order, (size_t)n, sizeof *r->order, by_rank);
}

static bool keep_best (rounds *r, int64_t height_bytes) {
  if (height_bytes >= r->best_bytes)
    return false;
  r->best_bytes = height_bytes;
  memcpy (r->best, r->offset, (size_t)r->p->n_things * sizeof *r->best);
  return true;
}

static bool all_rounds (rounds *r, int64_t limit_ticks) {
  enum { PATIENCE = 12 };
  for (int by = 0; by < FIRST_ORDERS && r->best_bytes > r->p->capacity_bytes; by++) {
    int64_t height;
    rank_things (r, (first_order)by);
    if (!round_once (r, &height))
      return false;
    keep_best (r, height);
    for (int idle = 0; idle < PATIENCE && r->best_bytes > r->p->capacity_bytes; idle++) {
      if (r->ticks >= limit_ticks)
        return true;
      blame (r);
      if (!round_once (r, &height))
        return false;
      if (keep_best (r, height))
        idle = 0;
    }
  }
  return true;
}

static bool begin (rounds *r, error *err) {
  const offset_problem *p = r->p;
  r->order = NEW (r->arena, p->n_things, ranked, err);
  r->offset = NEW (r->arena, p->n_things, int64_t, err);
  r->best = NEW (r->arena, p->n_things, int64_t, err);
  r->windows = NEW (r->arena, p->n_windows, int32_t, err);
  r->thing_of = NEW (r->arena, p->n_windows, int32_t, err);
  if (!r->order || !r->offset || !r->best || !r->windows || !r->thing_of)
    return false;
  for (int32_t i = 0; i < p->n_things; i++)
    for (int32_t j = p->things[i].first; j < p->things[i].first + p->things[i].count; j++) {
      const offset_window *w = &p->windows[j];
      assert (w->from < w->end && w->low >= 0 && w->low < w->high);
      r->thing_of[j] = i;
      r->longest = w->end - w->from > r->longest ? w->end - w->from : r->longest;
    }
  return true;
}

bool offsets_greedy (const offset_problem *p, int64_t limit_ticks, arena *a, offset_answer *out,
                     error *err) {
  rounds r = { .p = p, .arena = a, .err = err, .best_bytes = INT64_MAX };
  *out = (offset_answer){ 0 };
  if (!begin (&r, err) || !all_rounds (&r, limit_ticks))
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
