/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Local search over sets of drops.  Networks repeat their blocks, so a move takes a stretch of
   equal drops as well as a single one; a little worse is taken too, and ever less of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/random.h"
#include "base/units.h"
#include "solver/recompute/find.h"

typedef struct climbing {
  finding *f;
  random_state random;
  int32_t *alike;       /* drops, those that are alike together, in order of ops */
  int32_t *place;       /* of each drop in alike */
  int32_t *first, *end; /* per place: the stretch that it belongs to */
  int32_t edge;         /* in f->order: the number worth a look */
  bool passes;          /* some in the set do: that way to drop is tried too */
} climbing;

static int by_likeness (const void *a, const void *b, void *context) {
  const drop *d = context, *x = &d[*(const int32_t *)a], *y = &d[*(const int32_t *)b];
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  if (x->own_ns != y->own_ns)
    return x->own_ns < y->own_ns ? -1 : 1;
  if (x->after != y->after)
    return x->after < y->after ? -1 : 1;
  return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static bool start_climb (climbing *c, error *err) {
  finding *f = c->f;
  int32_t n = f->n_drops;
  c->alike = NEW (f->scratch, n, int32_t, err);
  c->place = NEW (f->scratch, n, int32_t, err);
  c->first = NEW (f->scratch, n, int32_t, err);
  c->end = NEW (f->scratch, n, int32_t, err);
  if (!c->alike || !c->place || !c->first || !c->end)
    return false;
  for (int32_t i = 0; i < n; i++)
    c->alike[i] = i;
  qsort_r (c->alike, (size_t)n, sizeof *c->alike, by_likeness, f->drops);
  for (int32_t i = 0; i < n; i++) {
    const drop *x = &f->drops[c->alike[i]], *y = i ? &f->drops[c->alike[i - 1]] : NULL;
    c->place[c->alike[i]] = i;
    c->first[i] = y && y->bytes == x->bytes && y->own_ns == x->own_ns ? c->first[i - 1] : i;
  }
  for (int32_t i = n - 1; i >= 0; i--)
    c->end[i] = i + 1 < n && c->first[i + 1] == c->first[i] ? c->end[i + 1] : i + 1;
  return true;
}

/* One of those that are chosen or not, as far as the dearest chosen and somewhat beyond. */
static int32_t draw (climbing *c, bool chosen) {
  const finding *f = c->f;
  int32_t at = (int32_t)random_between (&c->random, 0, c->edge - 1);
  for (int32_t i = 0; i < c->edge; i++) {
    int32_t d = f->order[(at + i) % c->edge];
    if ((f->now.chosen[d] != 0) == chosen)
      return d;
  }
  return -1;
}

static void set_some (climbing *c, int32_t d, uint8_t value) {
  finding *f = c->f;
  int32_t at = c->place[d], first = at, end = at + 1;
  if (random_chance (&c->random, 400000)) { /* a stretch about it */
    int32_t most = c->end[at] - c->first[at];
    int32_t length = (int32_t)random_between (&c->random, 1, most);
    first = at - (int32_t)random_between (&c->random, 0, length - 1);
    end = first + length;
    first = first < c->first[at] ? c->first[at] : first;
    end = end > c->end[at] ? c->end[at] : end;
  }
  for (int32_t i = first; i < end; i++)
    f->now.chosen[c->alike[i]] = value;
}

/* A kept tensor's place goes to a neighbour: as the drops are, in order of tensors, or among its
   like. */
static void shift (climbing *c) {
  finding *f = c->f;
  int32_t n = f->n_drops, at = (int32_t)random_between (&c->random, 0, n - 1);
  bool alike = random_chance (&c->random, 500000);
  for (int32_t i = 0; i < n; i++, at = at + 1 < n ? at + 1 : 0) {
    int32_t next = at + (int32_t)random_between (&c->random, 1, 4);
    if (next >= n)
      continue;
    uint8_t *x = &f->now.chosen[alike ? c->alike[at] : at];
    uint8_t *y = &f->now.chosen[alike ? c->alike[next] : next];
    uint8_t was = *x;
    if (*x == *y)
      continue;
    *x = *y;
    *y = was;
    return;
  }
}

static uint8_t some_way (climbing *c) {
  if (c->passes && random_chance (&c->random, 500000))
    return DROP_PASSES;
  return c->f->keeps_first && random_chance (&c->random, 500000) ? DROP_KEEPS : DROP_STAYS;
}

static void change_near (climbing *c) {
  finding *f = c->f;
  int64_t least_ns = f->rw_ns / 256, most_ns = f->rw_ns / 4, ns = f->now.near_ns;
  ns = random_chance (&c->random, 500000) ? ns + ns / 4 : ns - ns / 4;
  f->now.near_ns = ns < least_ns ? least_ns : ns > most_ns ? most_ns : ns;
}

static void change (climbing *c) {
  finding *f = c->f;
  int32_t last = 0;
  for (int32_t i = 0; i < f->n_drops; i++)
    last = f->now.chosen[f->order[i]] ? i : last;
  c->edge = last + last / 2 + 8 < f->n_drops ? last + last / 2 + 8 : f->n_drops;
  for (int32_t k = (int32_t)random_between (&c->random, 1, find_number (f, TUNE_climb_changes));
       k > 0; k--) {
    bool chosen = random_chance (&c->random, 500000);
    int32_t d = draw (c, chosen);
    bool other = (c->passes || f->keeps_first) && chosen && random_chance (&c->random, 300000);
    if (d >= 0)
      set_some (c, d, chosen && !other ? DROP_NONE : some_way (c));
  }
  if (random_chance (&c->random, 200000))
    shift (c);
  if (c->passes && random_chance (&c->random, 50000))
    change_near (c);
}

bool find_climb (finding *f, const drop_set *from, int64_t until, error *err) {
  assert (from->chosen && from->chosen != f->now.chosen);
  climbing c = { .f = f, .random = random_seed (f->o->seed) };
  arena_mark mark = arena_here (f->scratch);
  int64_t begun = f->ticks, near_ns = from->near_ns;
  uint8_t *at = NEW (f->scratch, f->n_drops, uint8_t, err);
  if (!at || !start_climb (&c, err))
    return false;
  find_rank (f, BY_OWN);
  for (int32_t i = 0; i < f->n_drops; i++)
    c.passes |= from->chosen[i] == DROP_PASSES;
  f->now.near_ns = from->near_ns;
  memcpy (f->now.chosen, from->chosen, (size_t)f->n_drops);
  memcpy (at, from->chosen, (size_t)f->n_drops);
  bool ok = find_price (f, err);
  int64_t ns = f->now.ns, least_ns = ns, idle = 0;
  /* if few can be dropped, all is tried soon */
  int64_t most_idle = find_number (f, TUNE_climb_idle_least) +
                      find_number (f, TUNE_climb_idle) * (int64_t)f->n_drops;
  int64_t first_ppm = find_number (f, TUNE_climb_worse_ppm);
  while (ok && f->n_drops > 1 && idle++ < most_idle && f->ticks < until && !find_is_over (f)) {
    int64_t worse_ppm = units_scale (until - f->ticks, first_ppm, until - begun + 1);
    int64_t limit_ns = least_ns + units_scale (least_ns, worse_ppm, 1000000);
    memcpy (f->now.chosen, at, (size_t)f->n_drops);
    f->now.near_ns = near_ns;
    change (&c);
    ok = find_price_below (f, max_of (ns, limit_ns), err);
    if (ok && (f->now.ns < ns || f->now.ns <= limit_ns)) {
      ns = f->now.ns;
      idle = ns < least_ns ? 0 : idle;
      least_ns = ns < least_ns ? ns : least_ns;
      memcpy (at, f->now.chosen, (size_t)f->n_drops);
      near_ns = f->now.near_ns;
    }
  }
  arena_back (f->scratch, mark);
  return ok;
}
