/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Things are placed from the bottom up, each on what is below it, so an order of things is a
   placement, and every placement that cannot be pressed down further is met.  Of orders that differ
   only in what does not touch, one is tried: offsets never fall, and nothing is placed so high that
   another thing fits under it.  An order is given up where, in some section of time, what is left
   does not fit over what is there.  Where no thing that is left spans a section, both sides are
   searched apart. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "solver/place/offsets.h"

/* Sections are between two moments at which something begins or ends. */
typedef struct span {
  int32_t from, end;
  int64_t low, high;
} span;

typedef struct exact {
  const offset_problem *p;
  int32_t n_sections;
  span *spans;                 /* per window, in sections */
  int32_t *first_at, *end_at;  /* per thing: the sections that it lies in */
  int64_t *next;               /* per section: scratch */
  int64_t *floor, *left_bytes; /* per section: the height reached, and what is still to come */
  int64_t *offset;             /* per thing */
  int32_t *rank;               /* per thing: when it is tried, among others */
  int64_t *floors;             /* those that placed things covered: a stack */
  int64_t n_floors;
  int32_t *placed, n_placed; /* things: a stack */
  int64_t ticks, limit_ticks, until_ticks;
  arena *scratch;
  error *err;
  bool failed; /* no memory */
} exact;

/* ---- sections ---- */

static int32_t section_of (const int32_t *moments, int32_t n, int32_t moment) {
  int32_t low = 0, high = n;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (moments[middle] < moment)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool make_sections (exact *x, arena *a, error *err) {
  const offset_problem *p = x->p;
  int32_t n = 0, *moments = NEW (a, 2 * (int64_t)p->n_windows, int32_t, err);
  if (!ALLOC (a, x->spans, p->n_windows, err) || !moments)
    return false;
  for (int32_t i = 0; i < p->n_windows; i++) {
    moments[2 * i] = p->windows[i].from;
    moments[2 * i + 1] = p->windows[i].end;
  }
  qsort (moments, (size_t)p->n_windows * 2, sizeof *moments, order_int32);
  for (int32_t i = 0; i < 2 * p->n_windows; i++)
    if (n == 0 || moments[i] != moments[n - 1])
      moments[n++] = moments[i];
  for (int32_t i = 0; i < p->n_windows; i++) {
    const offset_window *w = &p->windows[i];
    x->spans[i] = (span){ section_of (moments, n, w->from), section_of (moments, n, w->end), w->low,
                          w->high };
  }
  x->n_sections = n > 0 ? n - 1 : 0;
  return true;
}

static bool start_exact (exact *x, arena *a, error *err) {
  const offset_problem *p = x->p;
  if (!make_sections (x, a, err))
    return false;
  int64_t depth = 0;
  x->first_at = NEW (a, p->n_things, int32_t, err);
  x->end_at = NEW (a, p->n_things, int32_t, err);
  x->floor = NEW (a, x->n_sections, int64_t, err);
  x->left_bytes = NEW (a, x->n_sections, int64_t, err);
  x->next = NEW (a, x->n_sections, int64_t, err);
  x->offset = NEW (a, p->n_things, int64_t, err);
  x->rank = NEW (a, p->n_things, int32_t, err);
  x->placed = NEW (a, p->n_things, int32_t, err);
  if (!x->first_at || !x->end_at || !x->floor || !x->left_bytes || !x->offset || !x->rank ||
      !x->placed)
    return false;
  for (int32_t i = 0; i < p->n_things; i++) {
    const offset_thing *t = &p->things[i];
    x->first_at[i] = x->n_sections;
    for (int32_t j = t->first; j < t->first + t->count; j++) {
      const span *w = &x->spans[j];
      depth += w->end - w->from;
      x->first_at[i] = w->from < x->first_at[i] ? w->from : x->first_at[i];
      x->end_at[i] = w->end > x->end_at[i] ? w->end : x->end_at[i];
      for (int32_t s = w->from; s < w->end; s++)
        x->left_bytes[s] += w->high - w->low;
    }
  }
  return ALLOC (a, x->floors, depth, err);
}

/* ---- one thing ---- */

static int64_t lowest (exact *x, int32_t thing) {
  const offset_thing *t = &x->p->things[thing];
  int64_t offset = 0;
  for (int32_t j = t->first; j < t->first + t->count; j++) {
    const span *w = &x->spans[j];
    x->ticks += w->end - w->from;
    for (int32_t s = w->from; s < w->end; s++)
      offset = x->floor[s] - w->low > offset ? x->floor[s] - w->low : offset;
  }
  return offset;
}

static void put (exact *x, int32_t thing, int64_t offset) {
  const offset_thing *t = &x->p->things[thing];
  x->offset[thing] = offset;
  x->placed[x->n_placed++] = thing;
  for (int32_t j = t->first; j < t->first + t->count; j++) {
    const span *w = &x->spans[j];
    for (int32_t s = w->from; s < w->end; s++) {
      x->floors[x->n_floors++] = x->floor[s];
      x->floor[s] = offset + w->high;
      x->left_bytes[s] -= w->high - w->low;
    }
  }
}

static void take_back (exact *x) {
  const offset_thing *t = &x->p->things[x->placed[--x->n_placed]];
  for (int32_t j = t->first + t->count - 1; j >= t->first; j--) {
    const span *w = &x->spans[j];
    for (int32_t s = w->end - 1; s >= w->from; s--) {
      x->floor[s] = x->floors[--x->n_floors];
      x->left_bytes[s] += w->high - w->low;
    }
  }
}

/* All that is still to come lies at `least` or above. */
static bool fits (exact *x, int32_t from, int32_t end, int64_t least) {
  x->ticks += end - from;
  for (int32_t s = from; s < end; s++) {
    int64_t floor = x->floor[s] > least ? x->floor[s] : least;
    if (x->left_bytes[s] && floor + x->left_bytes[s] > x->p->capacity_bytes)
      return false;
  }
  return true;
}

/* ---- the search ---- */

/* Things that are left in sections [from, end), in the order in which they are tried; none may lie
   lower than `least`, and at that very height only those of a later rank. */
typedef struct rest {
  const int32_t *things;
  int32_t count, from, end, rank;
  int64_t least;
} rest;

static bool search (exact *x, const rest *r);

/* The stretch of sections that the first things span together. */
static void first_stretch (exact *x, const int32_t *things, int32_t count, int32_t *from,
                           int32_t *end) {
  *from = x->n_sections;
  *end = 0;
  for (int32_t i = 0; i < count; i++)
    if (x->first_at[things[i]] < *from) {
      *from = x->first_at[things[i]];
      *end = x->end_at[things[i]];
    }
  for (bool grown = true; grown;) {
    grown = false;
    x->ticks += count;
    for (int32_t i = 0; i < count; i++)
      if (x->first_at[things[i]] < *end && x->end_at[things[i]] > *end) {
        *end = x->end_at[things[i]];
        grown = true;
      }
  }
}

/* Each stretch for itself; `things` is used up. */
static bool search_apart (exact *x, int32_t *things, int32_t count, int32_t rank, int64_t least) {
  bool ok = true;
  arena_mark mark = arena_here (x->scratch);
  int32_t *these = NEW (x->scratch, count, int32_t, x->err);
  x->failed |= !these;
  while (ok && these && count > 0) {
    rest r = { .things = these, .rank = rank, .least = least };
    int32_t others = 0;
    first_stretch (x, things, count, &r.from, &r.end);
    for (int32_t i = 0; i < count; i++)
      if (x->end_at[things[i]] <= r.end)
        these[r.count++] = things[i];
      else
        things[others++] = things[i];
    count = others;
    ok = search (x, &r);
  }
  arena_back (x->scratch, mark);
  return ok && these;
}

/* With this thing next: where it fits, the rest over it. */
static bool try_thing (exact *x, const rest *r, int32_t at, int64_t offset, int32_t *others) {
  int32_t thing = r->things[at], count = 0, floor = x->n_placed;
  put (x, thing, offset);
  if (fits (x, r->from, r->end, offset)) {
    for (int32_t i = 0; i < r->count; i++)
      if (i != at)
        others[count++] = r->things[i];
    if (search_apart (x, others, count, x->rank[thing], offset))
      return true;
  }
  while (x->n_placed > floor)
    take_back (x);
  return false;
}

typedef struct candidate {
  int64_t low;
  int32_t rank, at;
} candidate;

static int lowest_first (const void *a, const void *b) {
  const candidate *x = a, *y = b;
  return ORDER (x->low, y->low) ?: ORDER (x->rank, y->rank);
}

/* No byte of a section is used below the lowest thing that is still to come there. */
static bool rest_fits (exact *x, const rest *r, const candidate *c) {
  for (int32_t s = r->from; s < r->end; s++)
    x->next[s] = INT64_MAX;
  for (int32_t i = 0; i < r->count; i++) {
    const offset_thing *t = &x->p->things[r->things[c[i].at]];
    int64_t low = c[i].low > r->least ? c[i].low : r->least;
    for (int32_t j = t->first; j < t->first + t->count; j++)
      for (int32_t s = x->spans[j].from; s < x->spans[j].end; s++)
        x->next[s] = low + x->spans[j].low < x->next[s] ? low + x->spans[j].low : x->next[s];
  }
  for (int32_t s = r->from; s < r->end; s++)
    if (x->left_bytes[s] && x->next[s] + x->left_bytes[s] > x->p->capacity_bytes)
      return false;
  return true;
}

static bool search (exact *x, const rest *r) {
  if (r->count == 0)
    return true;
  arena_mark mark = arena_here (x->scratch);
  candidate *c = NEW (x->scratch, r->count, candidate, x->err);
  int64_t top = INT64_MAX;
  int32_t *others = NEW (x->scratch, r->count, int32_t, x->err);
  x->failed |= !c || !others;
  bool found = false;
  for (int32_t i = 0; !x->failed && i < r->count; i++) {
    c[i] = (candidate){ lowest (x, r->things[i]), x->rank[r->things[i]], i };
    int64_t from = c[i].low > r->least ? c[i].low : r->least;
    int64_t end = from + x->p->things[r->things[i]].bytes;
    top = end < top ? end : top;
  }
  if (!x->failed && rest_fits (x, r, c)) {
    qsort (c, (size_t)r->count, sizeof *c, lowest_first);
    for (int32_t i = 0; !found && !x->failed && i < r->count && x->ticks < x->until_ticks; i++) {
      bool later = c[i].low > r->least || (c[i].low == r->least && c[i].rank > r->rank);
      if (later && c[i].low < top)
        found = try_thing (x, r, c[i].at, c[i].low, others);
    }
  }
  arena_back (x->scratch, mark);
  return found;
}

/* ---- orders to begin with ---- */

typedef enum measure { TOTAL, WIDTH, AREA, MEASURES } measure;

typedef struct measured {
  int64_t by[MEASURES];
  int32_t thing;
} measured;

static int larger_first (const void *a, const void *b) {
  const measured *x = a, *y = b;
  for (int i = 0; i < MEASURES; i++)
    if (x->by[i] != y->by[i])
      return x->by[i] > y->by[i] ? -1 : 1;
  return x->thing < y->thing ? -1 : 1;
}

/* The fullest section that a thing lies in, its length in moments, and length times bytes. */
static void measure_one (const exact *x, int32_t thing, int64_t by[MEASURES]) {
  const offset_thing *t = &x->p->things[thing];
  memset (by, 0, MEASURES * sizeof *by);
  for (int32_t j = t->first; j < t->first + t->count; j++) {
    int64_t width = x->p->windows[j].end - x->p->windows[j].from;
    by[WIDTH] += width;
    by[AREA] += width * ((x->spans[j].high - x->spans[j].low) >> 9);
    for (int32_t s = x->spans[j].from; s < x->spans[j].end; s++)
      by[TOTAL] = x->left_bytes[s] > by[TOTAL] ? x->left_bytes[s] : by[TOTAL];
  }
}

static bool try_order (exact *x, const measure *first, int64_t ticks, bool *found) {
  int32_t n = x->p->n_things;
  arena_mark mark = arena_here (x->scratch);
  measured *all = NEW (x->scratch, n, measured, x->err);
  int32_t *things = NEW (x->scratch, n, int32_t, x->err);
  if (!all || !things)
    return false;
  for (int32_t i = 0; i < n; i++) {
    int64_t by[MEASURES];
    measure_one (x, i, by);
    all[i].thing = i;
    for (int k = 0; k < MEASURES; k++)
      all[i].by[k] = by[first[k]];
  }
  qsort (all, (size_t)n, sizeof *all, larger_first);
  for (int32_t i = 0; i < n; i++) {
    things[i] = all[i].thing;
    x->rank[all[i].thing] = i;
  }
  x->until_ticks = x->ticks + ticks < x->limit_ticks ? x->ticks + ticks : x->limit_ticks;
  *found = search_apart (x, things, n, -1, 0);
  while (!*found && x->n_placed > 0)
    take_back (x);
  arena_back (x->scratch, mark);
  return !x->failed;
}

/* Each order for a while, then all again for longer: which one suits shows soon or never. */
bool offsets_exact (const offset_problem *p, int64_t limit_ticks, arena *a, offset_answer *out,
                    bool *found, error *err) {
  static const measure orders[][MEASURES] = {
    { WIDTH, AREA, TOTAL }, { TOTAL, AREA, WIDTH }, { TOTAL, WIDTH, AREA }, { AREA, WIDTH, TOTAL }
  };
  enum { N_ORDERS = sizeof orders / sizeof *orders, FIRST_TICKS = 1000000, LONGER = 3 };
  exact x = { .p = p, .limit_ticks = limit_ticks, .err = err };
  *found = false;
  if (!(x.scratch = arena_new (0)))
    return error_set (err, ERR_memory, "out of memory");
  bool ok = start_exact (&x, a, err);
  for (int64_t ticks = FIRST_TICKS; ok && !*found && x.ticks < limit_ticks; ticks *= LONGER)
    for (int i = 0; ok && !*found && i < N_ORDERS && x.ticks < limit_ticks; i++)
      ok = try_order (&x, orders[i], ticks, found);
  arena_free (x.scratch);
  out->ticks = x.ticks;
  if (!ok || !*found)
    return ok;
  out->offset = x.offset;
  out->height_bytes = 0;
  for (int32_t i = 0; i < p->n_things; i++)
    if (x.offset[i] + p->things[i].bytes > out->height_bytes)
      out->height_bytes = x.offset[i] + p->things[i].bytes;
  return true;
}
