/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two parts on the same granules at the same time: where the copy in that begins the later stay is
   due only after the earlier one has ended, it waits for that. */
#include <assert.h>
#include <stdlib.h>

#include "base/order.h"
#include "solver/place/same_inner.h"

enum { NEVER = -1 };

static int64_t ahead_ns (const same *s, moment from, moment to) {
  int64_t ns = (to.at_ns - from.at_ns) % s->period.at_ns;
  return ns < 0 ? ns + s->period.at_ns : ns;
}

/* How long the copy in that begins stay x waits if it waits for the end of y. */
static int64_t wait_of (const same *s, int32_t x, int32_t y) {
  const timed_stay *a = &s->l->at[x], *b = &s->l->at[y];
  if (a->kind != STAY_MOVE || b->always || s->period.at_ns <= 0)
    return NEVER;
  moment due = { s->start.at_ns + s->l->start_ns[a->op], 0 };
  int64_t wait_ns = ahead_ns (s, a->from, b->to);
  return wait_ns < ahead_ns (s, a->from, due) ? wait_ns : NEVER;
}

/* The first op that starts no sooner; past the last one: their number. */
static int32_t op_from (const stays *l, int64_t at_ns) {
  return FIRST_WHERE (i, 0, l->trace->n_ops, l->start_ns[i] >= at_ns);
}

static void wait_for (same *s, int32_t x, int32_t y) {
  const stays *l = s->l;
  const timed_stay *a = &l->at[x];
  int64_t end_ns = circle_moment (l->at[y].to, s->start, s->period).at_ns - s->start.at_ns;
  bool is_of_step_before = end_ns > l->start_ns[a->op];
  int32_t op = op_from (l, end_ns) - (is_of_step_before ? l->trace->n_ops : 0);
  int32_t *wait = &s->out->wait_ops[a->index];
  *wait = *wait < op ? op : *wait;
  s->circle.birth[x] = s->circle.end[y];
  s->out->waits = true;
}

/* The longest wait with which a and b are never there together. */
static int64_t turns_of (same *s, int32_t a, int32_t b, bool ask) {
  int64_t longest = 0;
  if (!same_meet (s, a, b))
    return 0;
  if (s->always[a] || s->always[b])
    return NEVER;
  for (int32_t i = s->first_stay[a]; i < s->first_stay[a + 1]; i++)
    for (int32_t j = s->first_stay[b]; j < s->first_stay[b + 1]; j++) {
      int32_t x = s->stays[i], y = s->stays[j];
      bool x_is_later = same_born_within (s, x, y), y_is_later = same_born_within (s, y, x);
      if (!x_is_later && !y_is_later)
        continue;
      int32_t later = x_is_later ? x : y, sooner = x_is_later ? y : x;
      int64_t ns = x_is_later && y_is_later ? NEVER : wait_of (s, later, sooner);
      if (ns == NEVER)
        return NEVER;
      if (ask)
        wait_for (s, later, sooner);
      longest = max_of (longest, ns);
    }
  return longest;
}

static int64_t turns_in (same *s, const area *a, int32_t key, bool ask) {
  int64_t longest = 0;
  for (int32_t o = a->owners; o >= 0; o = s->owners[o].next) {
    int64_t ns = s->owners[o].key == key ? NEVER : turns_of (s, key, s->owners[o].key, ask);
    if (ns == NEVER)
      return NEVER;
    longest = max_of (longest, ns);
  }
  return longest;
}

static int compare_offers (const void *a, const void *b) {
  const offer *x = a, *y = b;
  return ORDER (x->wait_ns, y->wait_ns) ?: ORDER (x->area, y->area);
}

/* All areas within the budget that could be had, the shortest wait first. */
static bool find_offers (same *s, int32_t key) {
  offer *moved =
      arena_grow (s->arena, s->offers, &s->offers_room, s->n_areas, sizeof *moved, s->err);
  if (!moved)
    return false;
  s->offers = moved;
  s->n_offers = 0;
  for (int64_t i = 0; i < s->n_areas; i++) {
    int64_t ns = s->areas[i].first < s->most ? turns_in (s, &s->areas[i], key, false) : NEVER;
    if (ns != NEVER)
      s->offers[s->n_offers++] = (offer){ ns, i };
  }
  qsort (s->offers, (size_t)s->n_offers, sizeof *s->offers, compare_offers);
  return true;
}

/* One that is taken may have made others impossible. Only the last is cut, so the areas keep their
   numbers until then. */
bool same_take_turns (same *s, int32_t key, int32_t *wanted) {
  assert (*wanted > 0);
  if (!find_offers (s, key))
    return false;
  for (int64_t i = 0; *wanted > 0 && i < s->n_offers; i++) {
    int64_t at = s->offers[i].area;
    if (turns_in (s, &s->areas[at], key, false) == NEVER)
      continue;
    turns_in (s, &s->areas[at], key, true);
    if (!same_take (s, at, key, wanted))
      return false;
  }
  return true;
}
