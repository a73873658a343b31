/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/place/late_inner.h"

/* ---- births and ends ---- */

static moment moment_of (const late_stays *s, int64_t rank) {
  int32_t what = s->c->at[rank];
  return circle_moment (what < 0 ? s->l->at[-1 - what].to : s->l->at[what].from, s->start,
                        s->period);
}

bool late_begin (late_stays *s, arena *a, error *err) {
  assert (s->l->start_order && s->c->at);
  if (!ALLOC (a, s->when_ns, s->c->ranks, err) || !ALLOC (a, s->birth, s->l->count, err) ||
      !ALLOC (a, s->end, s->l->count, err))
    return false;
  for (int64_t i = 0; i < s->c->ranks; i++)
    s->when_ns[i] = moment_of (s, i).at_ns;
  return true;
}

/* The first rank at this moment or behind it, over the end of the step if need be. */
static int64_t rank_from (const late_stays *s, moment m) {
  int64_t low = 0, high = s->c->ranks;
  m = circle_moment (m, s->start, s->period);
  while (low < high) {
    int64_t middle = (low + high) / 2;
    bool before = s->when_ns[middle] != m.at_ns ? s->when_ns[middle] < m.at_ns
                                                : moment_of (s, middle).order < m.order;
    *(before ? &low : &high) = before ? middle + 1 : middle;
  }
  return low < s->c->ranks ? low : 0;
}

static int64_t between_ns (const late_stays *s, int64_t from_ns, int64_t to_ns) {
  int64_t period_ns = max_of (s->period.at_ns, 1), ns = (to_ns - from_ns) % period_ns;
  return ns < 0 ? ns + period_ns : ns;
}

int64_t late_copy_ns (const stays *l, int32_t move, bool out) {
  link_rates r = device_rates (&l->device->link, l->device->share_ppm);
  int64_t carry_ns = units_scale (l->bytes[move], 1000000000, out ? r.out_alone : r.in_alone);
  return l->device->link.copy_ns + min_of (carry_ns, INT64_MAX / 2);
}

int64_t late_way_ns (const late_stays *s, int32_t i) {
  return between_ns (s, s->when_ns[s->c->birth[i]],
                     s->start.at_ns + s->l->start_ns[s->l->at[i].op]);
}

/* How much of the way an end moves. */
static int64_t part_of (int64_t way_ns, int64_t but_ns, lateness how) {
  return how == LATE_QUARTER ? way_ns / 4
         : how == LATE_HALF  ? way_ns / 2
                             : max_of (0, way_ns - but_ns);
}

/* The last end before `rank` and behind the birth; else the birth itself. */
static int64_t end_before (const circle *c, int64_t birth, int64_t rank) {
  for (int64_t i = circle_ahead (c, rank, birth); i > 1; i--) {
    int64_t at = (birth + i - 1) % c->ranks;
    if (c->at[at] < 0)
      return at;
  }
  return birth;
}

static int64_t late_birth (const late_stays *s, int32_t i, lateness how) {
  const stays *l = s->l;
  const timed_stay *x = &l->at[i];
  int64_t birth = s->c->birth[i];
  if (x->kind != STAY_MOVE || x->always || how == LATE_NOT)
    return birth;
  moment due = { s->start.at_ns + l->start_ns[x->op], l->start_order[x->op] };
  if (how != LATE_MOST) {
    int64_t way_ns = late_way_ns (s, i);
    int64_t part_ns = part_of (way_ns, late_copy_ns (l, x->index, false), how);
    if (part_ns == 0)
      return birth;
    due = (moment){ due.at_ns - way_ns + part_ns, INT64_MIN / 2 };
  }
  return end_before (s->c, birth, rank_from (s, due));
}

static int64_t early_end (const late_stays *s, int32_t i, lateness how) {
  const stays *l = s->l;
  const timed_stay *x = &l->at[i];
  int64_t end = s->c->end[i];
  if (!x->end_is_out || x->always || how == LATE_NOT)
    return end;
  int32_t op = l->moves[x->end].out_after;
  moment free = { s->start.at_ns + l->start_ns[op] + l->trace->ops[op].ns, l->end_order[op] };
  if (how != LATE_MOST) {
    int64_t way_ns = between_ns (s, free.at_ns, s->when_ns[end]);
    int64_t part_ns = part_of (way_ns, late_copy_ns (l, x->end, true), how);
    if (part_ns == 0)
      return end;
    free = (moment){ s->when_ns[end] - part_ns, INT64_MIN / 2 };
  }
  return rank_from (s, free);
}

void late_choose (late_stays *s, lateness how) {
  assert (s->birth && how < LATENESSES);
  for (int32_t i = 0; i < s->l->count; i++) {
    s->birth[i] = late_birth (s, i, how);
    s->end[i] = early_end (s, i, how);
  }
}

/* ---- stays in the same bytes ---- */

static int by_place (const void *a, const void *b) {
  const lying *x = a, *y = b;
  return ORDER (x->at, y->at) ?: ORDER (x->stay, y->stay);
}

void late_sort (lying *at, int32_t count) {
  qsort (at, (size_t)count, sizeof *at, by_place);
}

void late_each_two (const stays *l, const lying *at,
                    void (*visit) (void *context, int32_t x, int32_t y), void *context,
                    int64_t *ticks) {
  for (int32_t i = 0; i < l->count; i++) {
    int64_t top = at[i].at + l->at[at[i].stay].granules;
    int32_t j = i + 1;
    for (; j < l->count && at[j].at < top; j++)
      visit (context, at[i].stay, at[j].stay);
    *ticks += j - i;
  }
}

typedef struct settling {
  const late_stays *s;
  int64_t *birth, *end; /* as they will be; as in late_stays */
} settling;

/* From where `first` ends at the earliest, on to its end in the run and to a birth of `next`, which
   is no later than the latest one. */
static int64_t to_end (const late_stays *s, int32_t first) {
  return circle_ahead (s->c, s->c->end[first], s->end[first]);
}

static int64_t to_birth (const late_stays *s, int32_t first, int32_t next, int64_t birth) {
  return circle_ahead (s->c, s->birth[next], s->end[first]) -
         circle_ahead (s->c, s->birth[next], birth);
}

/* `next` is born behind the end of `first`, or at its latest where that is sooner. */
static void come_behind (const settling *g, int32_t first, int32_t next) {
  const late_stays *s = g->s;
  int64_t was = s->c->birth[next], end = to_end (s, first);
  if (end <= to_birth (s, first, next, was))
    return;
  int64_t behind =
      end <= to_birth (s, first, next, s->birth[next]) ? s->c->end[first] : s->birth[next];
  if (circle_ahead (s->c, behind, was) > circle_ahead (s->c, g->birth[next], was))
    g->birth[next] = behind;
}

/* `first` ends before `next` is born. */
static void go_before (const settling *g, int32_t first, int32_t next) {
  const late_stays *s = g->s;
  int64_t birth = to_birth (s, first, next, g->birth[next]);
  if (birth < circle_ahead (s->c, g->end[first], s->end[first]))
    g->end[first] = g->birth[next];
}

static void births_come (void *context, int32_t x, int32_t y) {
  come_behind (context, x, y);
  come_behind (context, y, x);
}

static void ends_go (void *context, int32_t x, int32_t y) {
  go_before (context, x, y);
  go_before (context, y, x);
}

/* Births first: ends only give way to them. */
static bool part (settling *g, const int64_t *bottom, arena *a, int64_t *ticks, error *err) {
  const late_stays *s = g->s;
  int32_t n = s->l->count;
  lying *at = NEW (a, n, lying, err);
  if (!ALLOC (a, g->birth, n, err) || !ALLOC (a, g->end, n, err) || !at)
    return false;
  for (int32_t i = 0; i < n; i++) {
    at[i] = (lying){ bottom[i], i };
    g->birth[i] = s->c->birth[i];
    g->end[i] = s->c->end[i];
  }
  late_sort (at, n);
  late_each_two (s->l, at, births_come, g, ticks);
  late_each_two (s->l, at, ends_go, g, ticks);
  return true;
}

/* ---- the answer ---- */

typedef struct started {
  int64_t rank;
  int32_t place, move;
} started;

static int by_start (const void *a, const void *b) {
  const started *x = a, *y = b;
  return ORDER (x->rank, y->rank) ?: ORDER (x->place, y->place);
}

/* Copies in start as their stays are born; `was` are the births of the run. */
static bool order_copies (const late_stays *s, const settling *g, const int64_t *was, arena *a,
                          int32_t **in_order, error *err) {
  const stays *l = s->l;
  started *at = NEW (a, l->n_moves, started, err);
  if (!ALLOC (a, *in_order, l->n_moves, err) || !at)
    return false;
  for (int32_t i = 0; i < l->n_moves; i++) {
    int32_t m = l->in_order[i], y = l->in_stay[m];
    moment from = l->at[y].from;
    int64_t steps = (from.order - circle_moment (from, s->start, s->period).order) /
                    max_of (s->period.order, 1);
    steps += g->birth[y] < was[y];
    at[i] = (started){ steps * s->c->ranks + s->c->birth[y], i, m };
  }
  qsort (at, (size_t)l->n_moves, sizeof *at, by_start);
  for (int32_t i = 0; i < l->n_moves; i++)
    (*in_order)[i] = at[i].move;
  return true;
}

/* Lists of points that move to a rank. */
typedef struct moved {
  int32_t *first, *next; /* from 1 on */
} moved;

static bool list_moved (const circle *c, const int64_t *was, const int64_t *to, int32_t count,
                        arena *a, moved *m, error *err) {
  if (!ALLOC (a, m->first, c->ranks, err) || !ALLOC (a, m->next, count, err))
    return false;
  for (int32_t i = count - 1; i >= 0; i--)
    if (was[i] != to[i]) {
      m->next[i] = m->first[to[i]];
      m->first[to[i]] = i + 1;
    }
  return true;
}

/* Ends before the ranks that they moved to, births behind them. */
static bool turn (circle *c, const settling *g, int32_t count, arena *a, error *err) {
  moved ends, births;
  int32_t *at = NEW (a, c->ranks, int32_t, err);
  int64_t n = 0;
  if (!at || !list_moved (c, c->end, g->end, count, a, &ends, err) ||
      !list_moved (c, c->birth, g->birth, count, a, &births, err))
    return false;
  for (int64_t r = 0; r < c->ranks; r++) {
    int32_t what = c->at[r];
    for (int32_t i = ends.first[r]; i > 0; i = ends.next[i - 1])
      at[n++] = -i;
    if (what < 0 ? g->end[-1 - what] == r : g->birth[what] == r)
      at[n++] = what;
    for (int32_t i = births.first[r]; i > 0; i = births.next[i - 1])
      at[n++] = i - 1;
  }
  assert (n == c->ranks);
  for (int64_t r = 0; r < n; r++) {
    c->at[r] = at[r];
    *(at[r] < 0 ? &c->end[-1 - at[r]] : &c->birth[at[r]]) = r;
  }
  return true;
}

bool late_settle (late_stays *s, const int64_t *bottom, circle *c, arena *a, int32_t **in_order,
                  int64_t *ticks, error *err) {
  assert (s->birth && c == s->c);
  settling g = { .s = s };
  int32_t n = s->l->count;
  int64_t *was = NEW (a, n, int64_t, err);
  if (!was || !part (&g, bottom, a, ticks, err))
    return false;
  memcpy (was, c->birth, (size_t)n * sizeof *was);
  return turn (c, &g, n, a, err) && order_copies (s, &g, was, a, in_order, err);
}
