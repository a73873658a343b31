/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of place_same. Shared by solver/place/place_same, solver/place/same_meet and
   solver/place/same_turns; nothing else needs it. */
#pragma once

#include "solver/place/circle.h"
#include "solver/place/place.h"

typedef struct owner {
  int32_t key, next; /* a list; areas that were one share its rest */
} owner;

typedef struct area {
  int32_t first, count, owners; /* owners: -1: none */
  uint64_t *closed;             /* a bit per key that meets an owner; NULL: not known */
} area;

typedef struct offer {
  int64_t wait_ns, area;
} offer;

typedef struct same {
  const stays *l;
  arena *arena;
  error *err;
  places *out;
  moment period, start;
  circle circle;
  int32_t *key; /* per stay */
  int32_t n_keys;
  int32_t *stays; /* by key: stays[first_stay[k] .. first_stay[k + 1]) */
  int32_t *first_stay;
  bool *always;    /* per key */
  int64_t *weight; /* per key: what goes first */
  uint64_t *meet;  /* per key a row of bits; NULL: there are too many keys */
  int32_t words;   /* of a row */
  area *areas;
  int64_t n_areas, areas_room;
  owner *owners;
  int64_t n_owners, owners_room;
  int32_t granules;
  int64_t most;  /* granules, before copies in wait instead; INT64_MAX: they never do */
  offer *offers; /* of one key */
  int64_t n_offers, offers_room;
  granule_run **runs; /* per key */
  int32_t *n_runs;
} same;

/* Stay x is born while y is there. */
static inline bool same_born_within (const same *s, int32_t x, int32_t y) {
  int64_t at = s->circle.birth[x], birth = s->circle.birth[y], end = s->circle.end[y];
  return birth < end ? birth <= at && at < end : at >= birth || at < end;
}

static inline bool same_stays_meet (const same *s, int32_t x, int32_t y) {
  return same_born_within (s, x, y) || same_born_within (s, y, x);
}

bool same_find_meetings (same *s) MUST_CHECK;
/* The two are on the device at one moment, if no copy in waits. */
bool same_meet (const same *s, int32_t a, int32_t b);
bool same_is_free (const same *s, const area *a, int32_t key);
/* The area has one owner more. */
bool same_close (same *s, area *a, int32_t key) MUST_CHECK;
/* A part cut off from an area has the same owners. */
bool same_split (same *s, area *a) MUST_CHECK;

/* All of the area, or as much of it as is wanted. */
bool same_take (same *s, int64_t area, int32_t key, int32_t *wanted) MUST_CHECK;

/* Areas whose owners are there at the same time, where copies in can wait until they no longer are:
   those waits are asked for. The shortest first; *wanted is what there was none for. */
bool same_take_turns (same *s, int32_t key, int32_t *wanted) MUST_CHECK;
