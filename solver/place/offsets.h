/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Offsets in one range of bytes for things that are there for some of the time, known ahead: no two
   of them share a byte at one moment.  A thing may be there in several windows (it wraps around a
   step, or its parts come and go), always at one offset. */
#pragma once

#include "base/arena.h"

typedef struct offset_window {
  int32_t from, end; /* moments [from, end) */
  int64_t low, high; /* bytes [low, high) of the thing; low is not negative */
} offset_window;

typedef struct offset_thing {
  int32_t first, count; /* its windows */
  int64_t bytes;        /* the highest `high` of them */
} offset_thing;

typedef struct offset_problem {
  const offset_window *windows;
  const offset_thing *things;
  int32_t n_windows, n_things;
  int64_t capacity_bytes; /* enough; the search ends there */
} offset_problem;

typedef struct offset_answer {
  int64_t *offset;      /* per thing */
  int64_t height_bytes; /* over the capacity where that was not reached */
  int64_t ticks;        /* its effort: windows that were looked at */
} offset_answer;

/* A stack of things that is always built on at its lowest place: those that are there the longest
   first, or the largest of bytes times moments. It says the order of things from below; the rounds
   lay them, and no higher. */
bool offsets_skyline (const offset_problem *p, bool by_area, arena *a, int64_t *offset,
                      int64_t *ticks, error *err) MUST_CHECK;

/* Things one after the other, each as low as it fits; those that end up too high come earlier in
   the next round. */
bool offsets_greedy (const offset_problem *p, int64_t limit_ticks, arena *a, offset_answer *out,
                     error *err) MUST_CHECK;

/* A search that gives up an order of things as soon as what is left cannot lie over what is placed.
 *found: within the capacity; else *out is untouched but for its ticks. */
bool offsets_exact (const offset_problem *p, int64_t limit_ticks, arena *a, offset_answer *out,
                    bool *found, error *err) MUST_CHECK;

/* The first, and where that does not reach the capacity the second. */
bool offsets_find (const offset_problem *p, int64_t limit_ticks, arena *a, offset_answer *out,
                   error *err) MUST_CHECK;
