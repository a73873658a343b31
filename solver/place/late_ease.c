/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>

#include "base/order.h"
#include "solver/place/late_inner.h"

enum { STALL_TIMES = 16, PASSES = 3 };
#define LONG_NS ((int64_t)1 << 40) /* sums of waits stay in their numbers */

/* From `offset` on, an offset costs `cost` more, and `barred` more stays are in the way. */
typedef struct change {
  int64_t offset, cost, barred;
} change;

typedef struct thing_cost {
  int64_t cost;
  int32_t thing;
} thing_cost;

typedef struct easing {
  const late_stays *s;
  const late_things *t;
  arena *arena;
  error *err;
  int64_t *offset;
  int64_t *spare_ns;       /* per stay: until its copy in has to start for its op not to wait */
  int32_t *first, *member; /* per thing: its stays */
  int64_t *bytes;          /* per thing */
  thing_cost *order;
  lying *bottoms, *tops; /* all stays, from below */
  int64_t *met;          /* per stay: what it costs to share a byte with it; -1: too much */
  change *changes, *other;
  int64_t n_changes, room;
  int64_t ticks;
} easing;

/* ---- two stays ---- */

static int64_t ns_ahead (const late_stays *s, int64_t rank, int64_t from) {
  int64_t ns = s->when_ns[rank] - s->when_ns[from];
  return rank >= from ? ns : ns + s->period.at_ns;
}

static bool meet (const circle *c, int64_t b, int64_t e, int64_t from, int64_t end) {
  return circle_ahead (c, from, b) < circle_ahead (c, e, b) ||
         circle_ahead (c, b, from) < circle_ahead (c, end, from);
}

/* `next` would be born before `first` ends, which it follows: what the waiting costs. */
static int64_t cost_behind (const easing *f, int32_t first, int32_t next) {
  const late_stays *s = f->s;
  const circle *c = s->c;
  int64_t was = c->birth[next], late = s->birth[next], ends = c->end[first], early = s->end[first];
  int64_t end = circle_ahead (c, ends, early), last = circle_ahead (c, late, early);
  if (end <= last - circle_ahead (c, late, was))
    return 0;
  bool in_time = end <= last;
  int64_t wait_ns = ns_ahead (s, in_time ? ends : late, was);
  int64_t stall_ns =
      max_of (0, wait_ns - f->spare_ns[next]) + (in_time ? 0 : ns_ahead (s, ends, late));
  return 1 + min_of (wait_ns, LONG_NS) / STALL_TIMES + min_of (stall_ns, LONG_NS) * STALL_TIMES;
}

static bool run_meets (const easing *f, int32_t x, int32_t y) {
  const circle *c = f->s->c;
  const timed_stay *at = f->s->l->at;
  return at[x].always || at[y].always || meet (c, c->birth[x], c->end[x], c->birth[y], c->end[y]);
}

/* -1: they may not share a byte. */
static int64_t cost_of (const easing *f, int32_t x, int32_t y) {
  const late_stays *s = f->s;
  if (s->l->at[x].always || s->l->at[y].always ||
      meet (s->c, s->birth[x], s->end[x], s->birth[y], s->end[y]))
    return -1;
  return cost_behind (f, x, y) + cost_behind (f, y, x);
}

/* ---- one thing ---- */

static int64_t bottom_of (const easing *f, int32_t i) {
  return f->offset[f->t->thing_of[i]] + f->t->low[i];
}

static int64_t top_of (const easing *f, int32_t i) {
  return bottom_of (f, i) + f->s->l->at[i].granules;
}

/* Those that the stay meets and may not, or should not, share a byte with. */
static void find_met (easing *f, int32_t m) {
  const stays *l = f->s->l;
  for (int32_t y = 0; y < l->count; y++)
    f->met[y] =
        f->t->thing_of[y] != f->t->thing_of[m] && run_meets (f, m, y) ? cost_of (f, m, y) : 0;
  f->ticks += l->count;
}

/* The next one in a list of stays that is met, from place *i on; -1: none. */
static int32_t next_met (const easing *f, const lying *at, int32_t *i) {
  while (*i < f->s->l->count && !f->met[at[*i].stay])
    ++*i;
  return *i < f->s->l->count ? at[*i].stay : -1;
}

/* With what is met from the offset on at which stay m touches it from below, to that at which it
   lies on it. */
static void merge_met (easing *f, int32_t m) {
  int64_t low = f->t->low[m], high = low + f->s->l->at[m].granules, n = 0;
  int32_t i = 0, j = 0;
  for (int64_t k = 0;;) {
    int32_t from = next_met (f, f->bottoms, &i), end = next_met (f, f->tops, &j);
    int64_t starts = from < 0 ? INT64_MAX : max_of (0, f->bottoms[i].at - high + 1);
    int64_t ends = end < 0 ? INT64_MAX : max_of (0, f->tops[j].at - low);
    int64_t old = k < f->n_changes ? f->changes[k].offset : INT64_MAX;
    if (min_of (min_of (starts, ends), old) == INT64_MAX)
      break;
    if (old <= min_of (starts, ends))
      f->other[n++] = f->changes[k++];
    else {
      int64_t cost = f->met[starts <= ends ? from : end], sign = starts <= ends ? 1 : -1;
      f->other[n++] =
          (change){ min_of (starts, ends), cost < 0 ? 0 : sign * cost, cost < 0 ? sign : 0 };
      ++*(starts <= ends ? &i : &j);
    }
  }
  change *merged = f->other;
  f->other = f->changes;
  f->changes = merged;
  f->ticks += n;
  f->n_changes = n;
}

/* Room for what merging a thing's stays makes of these. */
static bool have_room (easing *f, int32_t stays) {
  int64_t need = 2 * (int64_t)stays * f->s->l->count;
  if (need <= f->room)
    return true;
  f->room = need;
  return ALLOC (f->arena, f->changes, need, f->err) && ALLOC (f->arena, f->other, need, f->err);
}

/* How the cost changes from offset to offset. */
static bool find_changes (easing *f, int32_t thing) {
  if (!have_room (f, f->first[thing + 1] - f->first[thing]))
    return false;
  f->n_changes = 0;
  for (int32_t i = f->first[thing]; i < f->first[thing + 1]; i++) {
    find_met (f, f->member[i]);
    merge_met (f, f->member[i]);
  }
  return true;
}

/* The cheapest offset: where it lies, if none is cheaper. */
static int64_t cheapest (const easing *f, int32_t thing) {
  int64_t most = f->t->capacity_bytes - f->bytes[thing], now = f->offset[thing];
  int64_t best = now, least = INT64_MAX, cost = 0, barred = 0, at = 0, costs_now = INT64_MAX;
  for (int64_t i = 0; at <= most; at = f->changes[i].offset) {
    if (at > now && costs_now == INT64_MAX)
      costs_now = cost;
    for (; i < f->n_changes && f->changes[i].offset == at; i++) {
      cost += f->changes[i].cost;
      barred += f->changes[i].barred;
    }
    if (barred == 0 && cost < least) {
      least = cost;
      best = at;
    }
    if (i == f->n_changes)
      break;
  }
  costs_now = costs_now == INT64_MAX ? cost : costs_now;
  return least < costs_now ? best : now;
}

/* Nearly in order: but for the stays of one thing. */
static void sort_again (lying *at, int32_t count) {
  for (int32_t i = 1; i < count; i++) {
    lying x = at[i];
    int32_t j = i;
    for (; j > 0 && at[j - 1].at > x.at; j--)
      at[j] = at[j - 1];
    at[j] = x;
  }
}

static void move_to (easing *f, int32_t thing, int64_t offset) {
  int32_t n = f->s->l->count;
  f->offset[thing] = offset;
  for (int32_t i = 0; i < n; i++) {
    f->bottoms[i].at = bottom_of (f, f->bottoms[i].stay);
    f->tops[i].at = top_of (f, f->tops[i].stay);
  }
  sort_again (f->bottoms, n);
  sort_again (f->tops, n);
  f->ticks += n;
}

/* ---- all of them ---- */

static int by_cost (const void *a, const void *b) {
  const thing_cost *x = a, *y = b;
  return ORDER (y->cost, x->cost) ?: ORDER (x->thing, y->thing);
}

static void add_cost (void *context, int32_t x, int32_t y) {
  easing *f = context;
  int32_t t = f->t->thing_of[x], u = f->t->thing_of[y];
  if (t == u || !run_meets (f, x, y))
    return;
  int64_t cost = cost_of (f, x, y);
  f->order[t].cost += cost;
  f->order[u].cost += cost;
}

/* Things that cost anything, the dearest first. */
static int32_t find_costs (easing *f) {
  int32_t kept = 0;
  for (int32_t t = 0; t < f->t->count; t++)
    f->order[t] = (thing_cost){ 0, t };
  late_each_two (f->s->l, f->bottoms, add_cost, f, &f->ticks);
  for (int32_t t = 0; t < f->t->count; t++)
    if (f->order[t].cost > 0)
      f->order[kept++] = f->order[t];
  qsort (f->order, (size_t)kept, sizeof *f->order, by_cost);
  return kept;
}

static bool prepare (easing *f) {
  const late_stays *s = f->s;
  const stays *l = s->l;
  int32_t n = f->t->count;
  if (!ALLOC (f->arena, f->spare_ns, l->count, f->err) ||
      !ALLOC (f->arena, f->first, (int64_t)n + 2, f->err) ||
      !ALLOC (f->arena, f->member, l->count, f->err) || !ALLOC (f->arena, f->bytes, n, f->err) ||
      !ALLOC (f->arena, f->order, n, f->err) || !ALLOC (f->arena, f->bottoms, l->count, f->err) ||
      !ALLOC (f->arena, f->tops, l->count, f->err) || !ALLOC (f->arena, f->met, l->count, f->err))
    return false;
  for (int32_t i = 0; i < l->count; i++) {
    const timed_stay *x = &l->at[i];
    int32_t t = f->t->thing_of[i];
    f->first[t + 2]++;
    f->bottoms[i] = (lying){ bottom_of (f, i), i };
    f->tops[i] = (lying){ top_of (f, i), i };
    f->bytes[t] = max_of (f->bytes[t], f->t->low[i] + x->granules);
    if (x->kind == STAY_MOVE && !x->always)
      f->spare_ns[i] = max_of (0, late_way_ns (s, i) - late_copy_ns (l, x->index, false));
  }
  for (int32_t t = 0; t < n; t++)
    f->first[t + 2] += f->first[t + 1];
  for (int32_t i = 0; i < l->count; i++)
    f->member[f->first[f->t->thing_of[i] + 1]++] = i;
  late_sort (f->bottoms, l->count);
  late_sort (f->tops, l->count);
  return true;
}

bool late_ease (const late_stays *s, const late_things *t, int64_t limit_ticks, int64_t *offset,
                arena *a, int64_t *ticks, error *err) {
  easing f = { .s = s, .t = t, .arena = a, .err = err, .offset = offset };
  arena_mark mark = arena_here (a);
  if (!prepare (&f))
    return false;
  for (int pass = 0, moved = 1; pass < PASSES && moved; pass++) {
    int32_t n = find_costs (&f);
    moved = 0;
    for (int32_t i = 0; i < n && f.ticks < limit_ticks; i++) {
      int32_t thing = f.order[i].thing;
      if (!find_changes (&f, thing))
        return false;
      int64_t to = cheapest (&f, thing);
      if (to == offset[thing])
        continue;
      move_to (&f, thing, to);
      moved++;
    }
  }
  *ticks += f.ticks;
  arena_back (a, mark);
  return true;
}
