/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/period.h"

#include <stdlib.h>
#include <string.h>

enum { LAST = 1 << 16, SURE = 4, CONTEXT = 8 };

bool beats_new (beats *b, int64_t capacity, int64_t refs, int64_t lives) {
  *b = (beats){ .capacity = capacity, .refs_capacity = refs, .lives_capacity = lives };
  b->at = calloc ((size_t)capacity, sizeof *b->at);
  b->refs = calloc ((size_t)refs, sizeof *b->refs);
  b->lives = calloc ((size_t)lives, sizeof *b->lives);
  b->last = calloc (LAST, sizeof *b->last);
  return b->at != NULL && b->refs != NULL && b->lives != NULL && b->last != NULL;
}

void beats_free (beats *b) {
  free (b->at);
  free (b->refs);
  free (b->lives);
  free (b->last);
  free (b->name_last);
  free (b->name_gap);
}

life *beats_life (const beats *b, int64_t number) {
  life *l = &b->lives[number & (b->lives_capacity - 1)];
  return number >= 0 && number < b->n_lives && l->number == number ? l : NULL;
}

bool life_at (const life *l, int64_t i) {
  return l->born < i && (l->freed < 0 || l->freed > i);
}

static bool same_tensor (const beats *b, int64_t i, int64_t x, int64_t j, int64_t y) {
  if (x == y)
    return true;
  const life *p = beats_life (b, x), *q = beats_life (b, y);
  /* Older than two such steps, it lasts: then it is the same or it is not. */
  return p != NULL && q != NULL && p->bytes == q->bytes && i - p->born == j - q->born &&
         i - p->born <= 2 * (i - j);
}

bool beats_same (const beats *b, int64_t i, int64_t j) {
  const beat *x = beats_at (b, i), *y = beats_at (b, j);
  if (x->token != y->token || x->n_refs != y->n_refs || (x->op < 0) != (y->op < 0) ||
      x->stream != y->stream)
    return false;
  for (int32_t k = 0; k < x->n_refs; k++)
    if (!same_tensor (b, i, beats_ref (b, x, k), j, beats_ref (b, y, k)))
      return false;
  return true;
}

/* Is the whole of beat `i` still there? */
static bool is_kept (const beats *b, int64_t i) {
  return i >= 0 && b->n - i < b->capacity &&
         b->n_refs - beats_at (b, i)->first_ref < b->refs_capacity;
}

static void note_best (beats *b) {
  if (b->run < b->period || b->run + b->period <= b->best_run + b->best_period)
    return;
  b->best_n = b->n;
  b->best_run = b->run;
  b->best_period = b->period;
}

void beats_rewind (beats *b) {
  b->n = b->best_n;
  b->run = b->best_run;
  b->period = b->best_period;
  b->n_names = 0;
}

/* A beat with those before it: one alone comes too often to say where it was last. */
static uint64_t context_of (const beats *b, int64_t i) {
  uint64_t h = 0;
  for (int64_t k = i - CONTEXT + 1 > 0 ? i - CONTEXT + 1 : 0; k <= i; k++) {
    h = (h ^ beats_at (b, k)->token) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}

static void look_for_period (beats *b) {
  int64_t i = b->n - 1;
  int64_t *last = &b->last[context_of (b, i) % LAST];
  int64_t before = *last - 1;
  *last = i + 1;
  if (b->period > 0 && is_kept (b, i - b->period) && beats_same (b, i, i - b->period)) {
    b->run++;
    note_best (b);
    return;
  }
  b->period = b->run = 0;
  if (before < 0 || 2 * (i - before) >= b->capacity)
    return;
  b->period = i - before;
  while (b->run < b->period && is_kept (b, i - b->run - b->period) &&
         beats_same (b, i - b->run, i - b->run - b->period))
    b->run++;
  if (b->run == 0)
    b->period = 0;
  note_best (b);
}

static bool note_name (beats *b, int32_t name) {
  if (name >= b->n_names) {
    int32_t more = name + 64;
    int64_t *last = realloc (b->name_last, (size_t)more * sizeof *last);
    b->name_last = last != NULL ? last : b->name_last;
    int64_t *gap = realloc (b->name_gap, (size_t)more * sizeof *gap);
    b->name_gap = gap != NULL ? gap : b->name_gap;
    if (last == NULL || gap == NULL)
      return false;
    for (int32_t k = b->n_names; k < more; k++)
      last[k] = gap[k] = -1;
    b->n_names = more;
  }
  int64_t i = b->n - 1, gap = b->name_last[name] < 0 ? 0 : i - b->name_last[name];
  if (gap > b->name_gap[name])
    b->name_gap[name] = gap;
  b->name_last[name] = i;
  return true;
}

void beats_allocate (beats *b, int64_t bytes) {
  int64_t number = b->n_lives++, i = b->n++;
  b->lives[number & (b->lives_capacity - 1)] =
      (life){ .number = number, .bytes = bytes, .born = i, .freed = -1 };
  *beats_at (b, i) = (beat){ .token = (uint64_t)bytes * 0x9e3779b97f4a7c15u + 1,
                             .op = -1,
                             .allocation = number,
                             .first_ref = b->n_refs };
  look_for_period (b);
}

void beats_release (beats *b, int64_t number) {
  life *l = beats_life (b, number);
  if (l != NULL)
    l->freed = b->n;
}

bool beats_op (beats *b, beat e, const int64_t *refs) {
  if (e.n_refs > b->refs_capacity / 4)
    return false;
  e.first_ref = b->n_refs;
  e.allocation = -1;
  for (int32_t i = 0; i < e.n_refs; i++)
    b->refs[b->n_refs++ & (b->refs_capacity - 1)] = refs[i];
  *beats_at (b, b->n++) = e;
  look_for_period (b);
  return note_name (b, e.name);
}

/* A function that comes back after longer than these steps, is not in them and is about to, says
   that they are parts of a longer one; but not for ever. */
static bool misses_function (const beats *b) {
  if (b->run >= SURE * b->period)
    return false;
  for (int32_t k = 0; k < b->n_names; k++) {
    int64_t since = b->n - b->name_last[k];
    if (b->name_gap[k] > b->period && since > b->period && since < 2 * b->name_gap[k])
      return true;
  }
  return false;
}

static bool has_op (const beats *b, int64_t first, int64_t end) {
  for (int64_t i = first; i < end; i++)
    if (beats_at (b, i)->op >= 0)
      return true;
  return false;
}

/* How many bytes that do not last are live before each of the last `period` beats and after the
   last: added at a begin, taken off at an end. */
static bool mark_wraps (const beats *b, int64_t *delta, int64_t first, int64_t end) {
  int64_t from = b->n_lives > b->lives_capacity ? b->n_lives - b->lives_capacity : 0;
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    int64_t freed = l->freed > b->n ? -1 : l->freed; /* later frees are not known yet */
    bool lasts = l->born < first - b->period && freed < 0;
    if (lasts || (freed >= 0 && freed <= first - b->period))
      continue;
    int64_t low = l->born + 1 > first ? l->born + 1 : first;
    int64_t high = freed < 0 || freed > end + 1 ? end + 1 : freed;
    if (low < high) {
      delta[low - first] += l->bytes;
      delta[high - first] -= l->bytes;
    }
  }
  return true;
}

/* The same tensors are there at both ends of a step. */
static bool is_closed (const beats *b, int64_t first, int64_t end) {
  int64_t from = b->n_lives > b->lives_capacity ? b->n_lives - b->lives_capacity : 0;
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    if (life_at (l, first) != life_at (l, end))
      return false;
  }
  return true;
}

beats_answer beats_step (const beats *b, int64_t *first, int64_t *end) {
  int64_t p = b->period;
  if (p == 0 || b->run < p || !has_op (b, b->n - p, b->n) || misses_function (b))
    return BEATS_NO;
  int64_t from = b->n - p + 1, sum = 0;
  int64_t *delta = calloc ((size_t)p + 3, sizeof *delta);
  if (delta == NULL || !mark_wraps (b, delta, from, b->n)) {
    free (delta);
    return BEATS_NO;
  }
  beats_answer answer = BEATS_WRAP;
  for (int64_t i = 0; i < p && answer == BEATS_WRAP; i++) {
    sum += delta[i];
    if (sum == 0 && is_closed (b, from + i - p, from + i)) {
      *first = from + i - p;
      *end = from + i;
      answer = BEATS_CUT;
    }
  }
  free (delta);
  return answer;
}
