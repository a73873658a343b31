/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The skyline: over the moments of the circle, how high things are stacked. On its lowest stretch
   goes the thing that fits there best, or none does and the stretch is lost up to its lower
   neighbour. Things of many windows count as one block from the first of them to the last, so this
   is an order of things, and where they lie is for the rounds to say. */
#include <stdlib.h>

#include "base/order.h"
#include "solver/place/offsets.h"

typedef struct block {
  int32_t from, length; /* moments, around the circle */
  int32_t thing;
} block;

typedef struct stretch {
  int64_t height;
  int32_t from, length, before, next;
} stretch;

typedef struct skyline {
  const offset_problem *p;
  bool by_area;
  block *blocks;   /* by their first moments */
  int32_t *unlaid; /* per block, and behind the last: the next that is not laid, or itself */
  stretch *at;     /* a ring */
  int32_t n_stretches, moments;
  int64_t *offset; /* per thing */
  int64_t *ticks;
} skyline;

static int by_from (const void *a, const void *b) {
  const block *x = a, *y = b;
  return ORDER (x->from, y->from) ?: ORDER (x->thing, y->thing);
}

/* All but the longest time without it. Windows of a thing are few. */
static block block_of (const skyline *s, int32_t thing) {
  const offset_thing *t = &s->p->things[thing];
  const offset_window *w = &s->p->windows[t->first];
  block best = { w[0].from, w[0].end - w[0].from, thing };
  int32_t longest = -1;
  if (t->count == 1)
    return best;
  for (int32_t i = 0; i < t->count; i++) { /* the time behind window i, up to the next begin */
    int32_t gap = s->moments, next = w[i].end;
    for (int32_t j = 0; j < t->count && gap > 0; j++) {
      int32_t behind = w[j].from - w[i].end;
      bool covers = w[j].from <= w[i].end && w[i].end < w[j].end;
      behind = covers ? 0 : behind < 0 ? behind + s->moments : behind;
      if (behind < gap) {
        gap = behind;
        next = w[j].from;
      }
    }
    if (gap > longest) {
      longest = gap;
      best = (block){ next, s->moments - gap, thing };
    }
  }
  return best;
}

/* ---- the ring of stretches ---- */

static int32_t add (skyline *s, stretch x) {
  s->at[s->n_stretches] = x;
  return s->n_stretches++;
}

static void link (skyline *s, int32_t a, int32_t b) {
  s->at[a].next = b;
  s->at[b].before = a;
}

/* Two neighbours of one height become one. */
static int32_t merge (skyline *s, int32_t a, int32_t b) {
  if (a == b || s->at[a].height != s->at[b].height)
    return b;
  s->at[a].length += s->at[b].length;
  link (s, a, s->at[b].next);
  return a;
}

static int32_t find_lowest (skyline *s, int32_t from) {
  int32_t best = from;
  for (int32_t i = s->at[from].next; i != from; i = s->at[i].next) {
    ++*s->ticks;
    if (s->at[i].height < s->at[best].height)
      best = i;
  }
  return best;
}

/* The stretch x carries a block of that many moments from `skip` on, which ends so high. */
static int32_t split (skyline *s, int32_t x, int32_t skip, int32_t length, int64_t height) {
  stretch old = s->at[x];
  int32_t rest = old.length - skip - length, here = x;
  if (skip > 0) {
    s->at[x].length = skip;
    here = add (s, old);
    link (s, here, old.next);
    link (s, x, here);
  }
  s->at[here].from = (old.from + skip) % s->moments;
  s->at[here].length = length;
  s->at[here].height = height;
  if (rest > 0) {
    int32_t tail =
        add (s, (stretch){ old.height, (old.from + skip + length) % s->moments, rest, here, here });
    link (s, tail, s->at[here].next);
    link (s, here, tail);
  }
  here = skip == 0 ? merge (s, s->at[here].before, here) : here;
  return rest == 0 ? merge (s, here, s->at[here].next) : here;
}

/* ---- blocks ---- */

static int32_t next_unlaid (skyline *s, int32_t i) {
  while (s->unlaid[i] != i)
    i = s->unlaid[i] = s->unlaid[s->unlaid[i]];
  return i;
}

static int32_t first_from (const skyline *s, int32_t moment) {
  return FIRST_WHERE (i, 0, s->p->n_things, s->blocks[i].from >= moment);
}

static bool fits_better (const skyline *s, const block *x, const block *y) {
  int64_t a = s->p->things[x->thing].bytes, b = s->p->things[y->thing].bytes;
  if (s->by_area && (double)a * x->length != (double)b * y->length)
    return (double)a * x->length > (double)b * y->length;
  return x->length != y->length ? x->length > y->length : a > b;
}

/* The best of those that begin in [from, end) and end within the stretch. */
static void look (skyline *s, const stretch *at, int32_t from, int32_t end, int32_t *best) {
  int32_t n = s->p->n_things;
  for (int32_t i = next_unlaid (s, first_from (s, from)); i < n && s->blocks[i].from < end;
       i = next_unlaid (s, i + 1)) {
    const block *x = &s->blocks[i];
    int32_t skip = x->from - at->from + (x->from < at->from ? s->moments : 0);
    ++*s->ticks;
    if (skip + x->length <= at->length && (*best < 0 || fits_better (s, x, &s->blocks[*best])))
      *best = i;
  }
}

static int32_t best_for (skyline *s, int32_t x) {
  const stretch *at = &s->at[x];
  int32_t best = -1, end = at->from + at->length;
  look (s, at, at->from, (int32_t)min_of (end, s->moments), &best);
  if (end > s->moments)
    look (s, at, 0, end - s->moments, &best);
  return best;
}

static void lay (skyline *s, int32_t i, int64_t offset) {
  s->offset[s->blocks[i].thing] = offset;
  s->unlaid[i] = i + 1;
}

/* Nothing fits there: it is as high as its lower neighbour. */
static int32_t give_up (skyline *s, int32_t x) {
  int32_t a = s->at[x].before, b = s->at[x].next;
  s->at[x].height = min_of (s->at[a].height, s->at[b].height);
  x = merge (s, a, x);
  return merge (s, x, s->at[x].next);
}

/* Those that are there all the time lie below all others. */
static int64_t lay_always (skyline *s, int32_t *left) {
  int64_t height = 0;
  for (int32_t i = 0; i < s->p->n_things; i++)
    if (s->blocks[i].length >= s->moments) {
      lay (s, i, height);
      height += s->p->things[s->blocks[i].thing].bytes;
      --*left;
    }
  return height;
}

/* A flat line is one stretch that goes all around, and may begin anywhere: at the longest block. */
static int32_t longest (skyline *s) {
  int32_t best = -1;
  for (int32_t i = next_unlaid (s, 0); i < s->p->n_things; i = next_unlaid (s, i + 1))
    if (best < 0 || fits_better (s, &s->blocks[i], &s->blocks[best]))
      best = i;
  return best;
}

static void lay_all (skyline *s) {
  int32_t left = s->p->n_things;
  int32_t x = add (s, (stretch){ .height = lay_always (s, &left), .length = s->moments });
  while (left > 0) {
    bool flat = s->at[x].next == x;
    x = flat ? x : find_lowest (s, x);
    int32_t i = flat ? longest (s) : best_for (s, x);
    if (i < 0) {
      x = give_up (s, x);
      continue;
    }
    const block *b = &s->blocks[i];
    if (flat)
      s->at[x].from = b->from;
    int32_t skip = (b->from - s->at[x].from + s->moments) % s->moments;
    int64_t height = s->at[x].height;
    lay (s, i, height);
    x = split (s, x, skip, b->length, height + s->p->things[b->thing].bytes);
    left--;
  }
}

bool offsets_skyline (const offset_problem *p, bool by_area, arena *a, int64_t *offset,
                      int64_t *ticks, error *err) {
  arena_mark mark = arena_here (a);
  int32_t n = p->n_things;
  skyline s = { .p = p, .by_area = by_area, .offset = offset, .ticks = ticks };
  if (!ALLOC (a, s.blocks, n, err) || !ALLOC (a, s.unlaid, (int64_t)n + 1, err) ||
      !ALLOC (a, s.at, 2 * (int64_t)n + 1, err))
    return false;
  for (int32_t i = 0; i < p->n_windows; i++)
    s.moments = (int32_t)max_of (s.moments, p->windows[i].end);
  for (int32_t i = 0; i < n; i++) {
    s.blocks[i] = block_of (&s, i);
    s.unlaid[i] = i;
  }
  s.unlaid[n] = n;
  qsort (s.blocks, (size_t)n, sizeof *s.blocks, by_from);
  lay_all (&s);
  arena_back (a, mark);
  return true;
}
