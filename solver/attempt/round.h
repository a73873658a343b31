/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From "how much of each gap leaves" to whole sections: which parts of which unit spend which gap
   on the host.  Everything here is static, by bytes at each op; when copies run is
   solver/schedule's. */
#pragma once

#include "solver/flow/gaps.h"
#include "solver/flow/peaks.h"
#include "solver/place/schedule.h"
#include "solver/tuning/tuning.h"

typedef enum round_start {
  ROUND_NEAREST, /* the program's shares to the nearest section, the error carried along the step */
  ROUND_UP,    /* to the next section; then parts come back that fill the fullest op's room best */
  ROUND_CLEAN, /* nearest, with the copies out that serve only later clean moves */
  ROUND_LONGEST, /* no shares: what is over goes, longest gap first */
  ROUND_DOA,     /* the same by what is left of a gap once both copies are taken off */
  ROUND_STARTS
} round_start;

bool round_is_guided (round_start start);               /* by shares */
extern const char *const round_names[ROUND_STARTS + 1]; /* NULL at the end */

typedef struct rounding {
  const gaps *gaps;
  const int32_t *of;  /* per unit */
  int32_t *parts;     /* per gap: its last parts that are away */
  int64_t most_bytes; /* resident at the worst op, without the pool */
} rounding;

/* Bytes of the last n parts of a unit. The tail is among them: its last granule is mostly empty and
   so the cheapest to send. */
int64_t round_away (const gaps *g, const int32_t *of, int32_t unit, int32_t n);

/* Bytes resident at each op: `bytes` more where the gap is, and the most there. */
void round_add (peaks *level, const gap *at, int64_t bytes);
int64_t round_most (const peaks *level, const gap *at);
/* The op with most of all that the gap spans. */
int32_t round_fullest (const peaks *level, const gap *at);

/* At every op at most room_bytes (gaps.room_bytes, or a little less to leave the scheduler air) are
   resident; shares (per gap, 0 to 1) may be NULL for the starts that need none. Ties by index.
   ERR_infeasible where even everything away is too much. */
typedef struct round_request {
  const gaps *gaps;
  const int32_t *of; /* per unit: its parts */
  const device *device;
  round_start start;
  const double *shares;
  int64_t room_bytes;
  const tuning *tuning;
} round_request;
bool round_gaps (const round_request *q, arena *a, rounding *out, error *err) MUST_CHECK;

/* Wishes for solver/place/schedule: out at once, in as soon as memory surely allows. */
bool round_wishes (const rounding *r, arena *a, wish **out, int32_t *count, error *err) MUST_CHECK;
