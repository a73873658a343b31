/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step whose results outlive it: each is freed in the next one, once another like it was made. So
   at every moment there are tensors that do not last, and the step is cut where they cost least. */
#include <stdlib.h>

#include "executor/shim/step/period.h"

enum { CUTS_TRIED = 16, USED_AGAIN = 3 }; /* times the bytes */

crossing life_crossing (const life *l, int64_t first, int64_t end) {
  bool before = life_at (l, first), behind = life_at (l, end);
  return before == behind ? CROSSING_NONE : before ? CROSSING_IN : CROSSING_OUT;
}

const life *beats_replaced (const beats *b, const life *l, int64_t period) {
  int64_t i = l->born - period;
  const beat *e = beats_at (b, i);
  if (!beats_kept (b, i) || e->op >= 0)
    return NULL;
  const life *replaced = beats_life (b, e->allocation);
  return replaced != NULL && replaced->bytes == l->bytes ? replaced : NULL;
}

/* The last beat that uses each allocation, by its place among those that are kept; 0: none since
   `first`. */
static int64_t *last_uses (const beats *b, int64_t first) {
  int64_t *used = calloc ((size_t)b->lives_capacity, sizeof *used);
  for (int64_t i = first; used != NULL && i < b->n; i++)
    for (int32_t k = 0; k < beats_at (b, i)->n_refs; k++)
      used[beats_ref (b, beats_at (b, i), k) & (b->lives_capacity - 1)] = i;
  return used;
}

static void add_cost (int64_t *delta, int64_t bytes, int64_t low, int64_t high, int64_t period) {
  low = low > 0 ? low : 0;
  high = high < period ? high : period;
  if (low < high) {
    delta[low] += bytes;
    delta[high] -= bytes;
  }
}

/* The cost of a cut before each of `period` beats, added at a begin and taken off at an end. */
static void mark_costs (const beats *b, int64_t first, int64_t period, const int64_t *used,
                        int64_t *delta) {
  int64_t from = beats_oldest_life (b);
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    int64_t born = l->born + 1 - first, last = used[n & (b->lives_capacity - 1)] + 1;
    if (l->freed <= first)
      continue;
    add_cost (delta, l->bytes, born, l->freed - first, period);
    add_cost (delta, USED_AGAIN * l->bytes, born, (last < l->freed ? last : l->freed) - first,
              period);
  }
}

/* All that is carried in was made in the step before, as all that replaces it is made in this one.
 */
static bool all_replace_others (const beats *b, int64_t first, int64_t end) {
  int64_t from = beats_oldest_life (b), n_more = 0;
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    crossing c = life_crossing (l, first, end);
    const life *replaced = c == CROSSING_OUT ? beats_replaced (b, l, end - first) : NULL;
    if (c == CROSSING_OUT &&
        (replaced == NULL || life_crossing (replaced, first, end) != CROSSING_IN))
      return false;
    n_more += (c == CROSSING_IN) - (c == CROSSING_OUT);
  }
  return n_more == 0;
}

/* The first of the cheapest at which that holds: frees of the period behind them are known. */
static bool find_cheapest (const beats *b, int64_t first, int64_t period, const int64_t *delta,
                           int64_t *end) {
  int64_t least = INT64_MAX, sum = 0;
  for (int64_t i = 0; i < period; i++) {
    sum += delta[i];
    least = sum < least ? sum : least;
  }
  sum = 0;
  for (int64_t i = 0, tried = 0; i < period && tried < CUTS_TRIED; i++) {
    sum += delta[i];
    *end = first + i;
    if (sum > least)
      continue;
    if (all_replace_others (b, *end - period, *end))
      return true;
    tried++;
  }
  return false;
}

bool beats_crossing_step (const beats *b, const repeat *r, int64_t *first, int64_t *end) {
  int64_t p = r->period, from = b->n - 2 * p + 1;
  if (p == 0 || r->run < 2 * p || !beats_kept (b, from - p))
    return false;
  int64_t *used = last_uses (b, from), *delta = calloc ((size_t)p + 1, sizeof *delta);
  bool good = used != NULL && delta != NULL;
  if (good) {
    mark_costs (b, from, p, used, delta);
    good = find_cheapest (b, from, p, delta, end);
  }
  *first = *end - p;
  free (used);
  free (delta);
  return good;
}
