/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In how many parts each unit goes.  A part holds its memory until all of it is out, and from the
   start of its copy in; each copy pays the link's latency. */
#pragma once

#include "solver/flow/gaps.h"
#include "solver/tuning/tuning.h"

enum { MOST_SECTIONS = 32 }; /* if nothing else is known */

typedef struct parts_rule {
  int32_t most;   /* of a unit */
  int32_t splits; /* units of which most goes in part, in small parts: the sum comes out */
  /* The fewer bytes leave after a unit or come back before it, about the fullest op of its gap, the
     smaller are its parts; the largest take this many latencies. 0: all are of one size. */
  int32_t far_latencies;
  int64_t least_bytes;  /* of a part; 0: a granule */
  const tuning *tuning; /* NULL: as shipped */
} parts_rule;

/* Bytes that leave in a step; without shares: those that must, at its fullest op. g NULL: 0. */
double parts_crossing (const gaps *g, const double *shares);

/* Bytes that the link carries in a latency, for the sizes of parts and groups; where it has next to
   none, as if it had one that makes no more copies of a step than are worth a search. */
double parts_latency_bytes (const gaps *g, const double *shares, const device *dev,
                            const tuning *by);

/* Parts of at least a granule.  With shares (per gap: how much of it leaves) large ones, which the
   link's latency hardly spoils, but for what the rule says; without shares small ones.  `of` has a
   place for every unit. */
bool parts_choose (const gaps *g, const device *dev, const double *shares, const parts_rule *rule,
                   arena *a, int32_t *of, error *err) MUST_CHECK;
