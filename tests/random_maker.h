/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files that make a random case hand to each other. */
#pragma once

#include "base/random.h"
#include "tests/random_case.h"

/* Places in the execution: op k ends at (k + 1) SLOT; what happens between two ops lies strictly
   between, 2 to SLOT - 2 behind the former, so that a step's length can be taken away and one added
   without meeting an op. */
enum { SLOT = 1000 };

enum { USED = 1, WRITTEN = 2 };

typedef struct maker_unit {
  int64_t bytes, granules; /* bytes 0: no unit */
  int32_t of, first, last; /* uses; NO_OP where none */
  bool persistent, pinned, written;
} maker_unit;

typedef struct maker_move {
  int64_t out_at,
      in_at;    /* in_at is of the step of in_before; a clean move's out_at: its op's end */
  int32_t copy; /* the move that made its host copy; -1: it exists from the start */
  bool wraps;
} maker_move;

typedef struct maker {
  const case_options *o;
  random_state r;
  unsigned features;
  arena *a;
  trace *original;
  const trace *ordered; /* in the plan's order */
  plan *plan;
  const trace *t; /* rewritten */
  int64_t period; /* of the execution: n_ops x SLOT */
  int32_t n_units;
  maker_unit *units;
  unsigned char *uses; /* n_units rows of n_ops, of USED and WRITTEN */
  maker_move *moves;
} maker;

static inline bool maker_may (maker *m, unsigned feature, int64_t ppm) {
  return (m->features & feature) && random_chance (&m->r, ppm);
}

static inline int32_t maker_pick (maker *m, int64_t low, int64_t high) {
  return (int32_t)random_between (&m->r, low, high);
}

static inline int64_t maker_factor (const maker *m) {
  return m->o->factor > 0 ? m->o->factor : 1;
}

/* One after the other. */
bool maker_trace (maker *m, error *err) MUST_CHECK;
bool maker_lists (maker *m, rewritten *out, error *err) MUST_CHECK; /* sections, recompute */
bool maker_units (maker *m, error *err) MUST_CHECK;                 /* and groups, and the pool */
bool maker_moves (maker *m, error *err) MUST_CHECK;
bool maker_orders (maker *m, error *err) MUST_CHECK; /* and waits */
bool maker_places (maker *m, error *err) MUST_CHECK; /* and limits */
