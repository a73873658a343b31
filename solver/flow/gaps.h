/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of a step, op by op, and the bytes that could leave it: the bytes resident at each op
   if nothing moves, and every idle time of every unit ("gap") in which a move may be made.

   Memory is counted in whole granules ("room"), copies carry real bytes. */
#pragma once

#include "trace/device.h"
#include "trace/rewrite/loosen.h"
#include "trace/unit.h"

enum { NO_GAP = -1 };

/* One unit between two uses that follow one another, cyclically where it is persistent. */
typedef struct gap {
  int32_t unit;
  int32_t after, before; /* idle from the end of op `after` to the start of op `before` */
  int32_t release;       /* after + 1, or 0 behind the last op: from this op on it can leave; after
                            itself where that is loose, since some part of it ends at once */
  int32_t clean; /* the gap before it whose copy on the host still holds the bytes (the use between
                    only reads); itself where the unit has one gap; or NO_GAP */
  bool wraps;    /* it is still open when the step ends */
  bool tight;    /* spans an op that is over the budget, unused units left out */
  bool useful; /* that, or a clean copy made in it can serve such a gap; others can be left alone */
  bool unused; /* of a unit that no op touches: present at its one op only for form */
} gap;

typedef struct gaps {
  const units *units;
  const loosened *loosened; /* its trace is the units'; NULL: all ops keep their order */
  int32_t n_ops, count;
  gap *at;          /* by unit, then in order of ops; the one that wraps last */
  int32_t *of_unit; /* units->count + 1: a unit's gaps are [of_unit[u], of_unit[u + 1]) */
  int64_t granule_bytes;
  int64_t *base_bytes;    /* per op: resident if nothing leaves, without the pool */
  int64_t *movable_bytes; /* per op: of these, what no use keeps there */
  int64_t *slack_bytes;  /* per op: of these, what fills no granule and so never crosses the link */
  uint8_t *seam;         /* per op, or NULL: a slot begins here, inside a run of loose ops */
  int64_t *across_bytes; /* with seams, before op k inside such a run: what lives on both sides */
  int64_t unused_bytes;  /* part of base at every op: units that no op touches */
  int64_t pool_bytes;    /* rounded up to granules */
  int64_t room_bytes;    /* bytes that the budget leaves for everything but the pool */
  int64_t floor_bytes;   /* the smallest budget for which memory alone allows a plan */
  int64_t peak_bytes;    /* the budget for which nothing has to move */
  int32_t floor_op, peak_op;
} gaps;

/* A budget below the floor is no error here; room_bytes may then be negative. */
bool gaps_of (const units *u, int64_t granule_bytes, int64_t budget_bytes, arena *a, gaps *out,
              error *err) MUST_CHECK;

/* Gaps of the loosened trace's units: inside a run of loose ops memory is not counted, and what a
   use there begins or ends may do so anywhere in the run. */
bool gaps_of_loosened (const units *u, const loosened *l, int64_t granule_bytes,
                       int64_t budget_bytes, arena *a, gaps *out, error *err) MUST_CHECK;

/* Marks at most `seams` seams in each run of loose ops, where most lives on both sides. What spans
   a place over the budget between two of them then counts as tight too. */
bool gaps_add_seams (gaps *g, int32_t seams, arena *a, error *err) MUST_CHECK;

/* Over the budget just before op k, inside a run of loose ops. */
static inline bool gaps_over_across (const gaps *g, int32_t k) {
  return g->across_bytes && g->across_bytes[k] - g->unused_bytes > g->room_bytes;
}

static inline bool gaps_is_loose (const gaps *g, int32_t op) {
  return g->loosened && g->loosened->loose[op];
}

/* Bytes of memory that the whole unit takes. */
static inline int64_t gaps_room (const gaps *g, int32_t unit) {
  return g->units->at[unit].granules * g->granule_bytes;
}

/* How many ops lie between the two uses. */
static inline int32_t gap_ops (const gaps *g, const gap *at) {
  int32_t n = at->before - at->after - 1;
  return at->before <= at->after ? n + g->n_ops : n;
}

/* True if op k lies between the two uses. */
static inline bool gap_spans (const gap *at, int32_t k) {
  return at->before <= at->after ? k > at->after || k < at->before
                                 : k > at->after && k < at->before;
}

/* An error that names the floor and the op that sets it. */
bool gaps_too_small (const gaps *g, int64_t budget_bytes, error *err);
