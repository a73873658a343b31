/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/emu/race.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { KEPT_RACES = 32, READERS = 8 };

/* A stretch of memory that has been accessed alike. Readers of one actor replace each other: the
   later one is ordered after. */
typedef struct stretch {
  int64_t at, end;
  race_access writer; /* actor -1: none */
  race_access reader[READERS];
  int32_t n_readers;
  uint64_t owner;   /* 0: not known */
  race_access last; /* the owner's latest access */
} stretch;

struct race_state {
  stretch *stretches; /* sorted, disjoint */
  int64_t count, capacity;
  emu_race found[KEPT_RACES];
  int races;
};

race_state *race_new (void) {
  return calloc (1, sizeof (race_state));
}

void race_free (race_state *r) {
  if (r == NULL)
    return;
  free (r->stretches);
  free (r);
}

race_clock *race_clock_new (void) {
  return calloc (1, sizeof (race_clock));
}

void race_clock_free (race_clock *c) {
  if (c == NULL)
    return;
  free (c->at);
  free (c);
}

static bool clock_room (race_clock *c, int32_t count) {
  if (count <= c->count)
    return true;
  int32_t *at = realloc (c->at, (size_t)count * sizeof *at);
  if (at == NULL)
    return false;
  memset (at + c->count, 0, (size_t)(count - c->count) * sizeof *at);
  c->at = at;
  c->count = count;
  return true;
}

bool race_clock_join (race_clock *into, const race_clock *from) {
  if (from == NULL)
    return true;
  if (!clock_room (into, from->count))
    return false;
  for (int32_t i = 0; i < from->count; i++)
    if (from->at[i] > into->at[i])
      into->at[i] = from->at[i];
  return true;
}

bool race_clock_set (race_clock *c, int32_t actor, int32_t step) {
  assert (actor >= 0);
  if (!clock_room (c, actor + 1))
    return false;
  c->at[actor] = step;
  return true;
}

bool race_clock_knows (const race_clock *c, const race_clock *earlier) {
  for (int32_t i = 0; i < earlier->count; i++)
    if (earlier->at[i] > (i < c->count ? c->at[i] : 0))
      return false;
  return true;
}

static bool is_before (const race_clock *seen, race_access a) {
  return a.actor < seen->count && seen->at[a.actor] >= a.step;
}

static void report (race_state *r, const stretch *s, race_access old, bool old_writes,
                    race_access new, bool new_writes) {
  if (r->races++ >= KEPT_RACES)
    return;
  snprintf (r->found[r->races - 1].text, EMU_RACE_TEXT,
            "%s (actor %d, command %d) %s and %s (actor %d, command %d) %s bytes [%lld, %lld), and "
            "nothing orders them",
            old.what, old.actor, old.step, old_writes ? "writes" : "reads", new.what, new.actor,
            new.step, new_writes ? "writes" : "reads", (long long)s->at, (long long)s->end);
}

static void report_owners (race_state *r, const stretch *s, race_access new) {
  if (r->races++ >= KEPT_RACES)
    return;
  snprintf (r->found[r->races - 1].text, EMU_RACE_TEXT,
            "%s (actor %d, command %d) and %s (actor %d, command %d) use bytes [%lld, %lld) as "
            "different owners, and the later one did not begin",
            s->last.what, s->last.actor, s->last.step, new.what, new.actor, new.step,
            (long long)s->at, (long long)s->end);
}

static bool is_same (race_access a, race_access b) {
  return a.actor == b.actor && a.step == b.step;
}

static void judge (race_state *r, const race_clock *seen, stretch *s, race_access by,
                   const race_range *x) {
  if (s->writer.actor >= 0 && !is_before (seen, s->writer))
    report (r, s, s->writer, true, by, x->writes);
  if (x->writes)
    for (int32_t i = 0; i < s->n_readers; i++)
      if (!is_before (seen, s->reader[i]))
        report (r, s, s->reader[i], false, by, true);
  /* One command cannot take what it uses as another's, whatever it says. */
  if (x->owner != 0 && s->owner != 0 && s->owner != x->owner &&
      (!x->begins || is_same (s->last, by)))
    report_owners (r, s, by);
}

static void note (const race_clock *seen, stretch *s, race_access by, const race_range *x) {
  s->owner = x->owner;
  s->last = by;
  if (x->writes) {
    s->writer = by;
    s->n_readers = 0;
    return;
  }
  int32_t kept = 0;
  for (int32_t i = 0; i < s->n_readers; i++)
    if (!is_before (seen, s->reader[i]))
      s->reader[kept++] = s->reader[i];
  if (kept == READERS)
    kept--;
  s->reader[kept] = by;
  s->n_readers = kept + 1;
}

/* The index of the first stretch that ends behind `at`. */
static int64_t find (const race_state *r, int64_t at) {
  return FIRST_WHERE (i, 0, r->count, r->stretches[i].end > at);
}

static bool insert (race_state *r, int64_t i, const stretch *s) {
  if (r->count == r->capacity) {
    int64_t capacity = r->capacity == 0 ? 256 : 2 * r->capacity;
    stretch *moved = realloc (r->stretches, (size_t)capacity * sizeof *moved);
    if (moved == NULL)
      return false;
    r->stretches = moved;
    r->capacity = capacity;
  }
  memmove (r->stretches + i + 1, r->stretches + i, (size_t)(r->count - i) * sizeof *s);
  r->stretches[i] = *s;
  r->count++;
  return true;
}

/* Cuts the stretch around `at`, if one lies around it. */
static bool cut (race_state *r, int64_t at) {
  int64_t i = find (r, at);
  if (i == r->count || r->stretches[i].at >= at)
    return true;
  stretch right = r->stretches[i];
  right.at = at;
  r->stretches[i].end = at;
  return insert (r, i + 1, &right);
}

bool race_touch (race_state *r, const race_clock *seen, race_access by, const race_range *x) {
  int64_t end = x->place + x->bytes;
  if (x->bytes <= 0)
    return true;
  if (!cut (r, x->place) || !cut (r, end))
    return false;
  int64_t first = find (r, x->place), i = first;
  for (int64_t at = x->place; at < end; i++) {
    if (i == r->count || r->stretches[i].at > at) {
      int64_t stop = i == r->count || r->stretches[i].at > end ? end : r->stretches[i].at;
      stretch fresh = { .at = at, .end = stop, .writer.actor = -1 };
      if (!insert (r, i, &fresh))
        return false;
    }
    stretch *s = &r->stretches[i];
    judge (r, seen, s, by, x);
    note (seen, s, by, x);
    at = s->end;
  }
  /* A write makes all of it alike. */
  if (x->writes && i - first > 1) {
    r->stretches[first].end = end;
    memmove (r->stretches + first + 1, r->stretches + i,
             (size_t)(r->count - i) * sizeof *r->stretches);
    r->count -= i - first - 1;
  }
  return true;
}

int race_list (const race_state *r, emu_race *out, int capacity) {
  assert (out || capacity == 0);
  int kept = r->races < KEPT_RACES ? r->races : KEPT_RACES;
  for (int i = 0; i < kept && i < capacity; i++)
    out[i] = r->found[i];
  return r->races;
}
