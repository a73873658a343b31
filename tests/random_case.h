/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A small random trace and a complete random plan for it, from a seed.  The plan is read off one
   random execution in which everything runs one at a time, so its orders and waits can never hang,
   and where no granule is shared any waits are safe.  It knows nothing of the planner. */
#pragma once

#include "trace/plan.h"
#include "trace/rewrite/rewrite.h"

/* What may occur; a case takes each allowed feature or leaves it. */
typedef enum case_feature {
  CASE_WRAP = 1 << 0, /* persistent tensors, and moves of them */
  CASE_CLEAN = 1 << 1,
  CASE_PARTS = 1 << 2, /* of units */
  CASE_GROUPS = 1 << 3,
  CASE_POOL = 1 << 4,
  CASE_WORKSPACE = 1 << 5,
  CASE_SECTIONS = 1 << 6,
  CASE_RECOMPUTE = 1 << 7,
  CASE_LIVES = 1 << 8, /* born_before and dies_after */
  CASE_PINNED = 1 << 9,
  CASE_SHARED_RATE = 1 << 10,
  CASE_COPY_NS = 1 << 11,
  CASE_SHARE_PPM = 1 << 12,
  CASE_GAPS = 1 << 13,
  CASE_ZERO_NS = 1 << 14,
  CASE_BIG_GRANULE = 1 << 15,      /* the placement's is twice the device's */
  CASE_EVERYTHING = (1 << 16) - 1, /* of the trace in its own order */
  CASE_ORDER = 1 << 16
} case_feature;

typedef enum case_places {
  CASE_APART,   /* every stay and every host copy has bytes of its own */
  CASE_SHARED,  /* granules and host bytes are used again where the execution allows it */
  CASE_RECKLESS /* ... and sometimes where it does not */
} case_places;

typedef struct case_options {
  uint64_t seed;
  unsigned features; /* of case_feature */
  case_places places;
  int32_t most_ops, most_tensors; /* of the original trace; 0: 9 and 7 */
  int64_t drop_ppm;    /* CASE_SHARED, CASE_RECKLESS: so many waits are lowered or left out; in
                          CASE_APART half of them are */
  int64_t factor;      /* of all bytes and granules, so that memory can be mapped; 0: 1 */
  int64_t disturb_ppm; /* so many cases get an order or a wait that the execution does not have */
} case_options;

typedef struct random_case {
  trace *trace;
  plan *plan;
  rewritten rewritten;
} random_case;

/* Everything lives in the arena. */
bool random_case_make (const case_options *o, arena *a, random_case *out, error *err) MUST_CHECK;
/* One with places that are used again, and some waits lowered or left out. */
bool random_case_of (uint64_t seed, unsigned features, int32_t ops, arena *a,
                     random_case *out) MUST_CHECK;
