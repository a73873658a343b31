/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stays that are there for less of the step than in the run, so that all have a place in an arena:
   copies in start later, and ops wait for copies out.  Offsets are looked for as if stays were born
   late and ended early; then each is there for as long as what lies in its place allows. */
#pragma once

#include "solver/place/circle.h"

/* How far from the run towards the least: not at all, a part of the way, all but the time of the
   copy, or all: there from the op that it is for, and to the last op before its copy out. */
typedef enum lateness {
  LATE_NOT,
  LATE_QUARTER,
  LATE_HALF,
  LATE_JUST,
  LATE_MOST,
  LATENESSES
} lateness;

typedef struct late_stays {
  const stays *l;
  const circle *c;
  moment period, start; /* as the run says */
  int64_t *when_ns;     /* per rank of the circle, from the start on */
  int64_t *birth;       /* per stay: the rank at which it is born, or that of an end behind which */
  int64_t *end;         /* per stay: the rank at which it ends, or that before which */
} late_stays;

/* The first four are set; fills the others. */
bool late_begin (late_stays *s, arena *a, error *err) MUST_CHECK;

/* Things in an arena: all stays of one have one offset, and each begins `low` bytes above it. */
typedef struct late_things {
  const int32_t *thing_of;
  const int64_t *low; /* both per stay */
  int32_t count;
  int64_t capacity_bytes;
} late_things;

/* Fills `birth` and `end`. */
void late_choose (late_stays *s, lateness how);

/* Stays that lie apart from birth to end, each at its bottom. Moves births and ends on the circle,
   no further than that; *in_order: the copies in, in the order in which they start then. */
bool late_settle (late_stays *s, const int64_t *bottom, circle *c, arena *a, int32_t **in_order,
                  int64_t *ticks, error *err) MUST_CHECK;

/* Things that lie apart from birth to end, `offset` per thing. Those that would wait the most for
   others, by the times of the run, get other places within the capacity. */
bool late_ease (const late_stays *s, const late_things *t, int64_t limit_ticks, int64_t *offset,
                arena *a, int64_t *ticks, error *err) MUST_CHECK;
