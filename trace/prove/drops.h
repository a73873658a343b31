/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For a proof that covers plans which drop tensors and make them again: which ops a drop runs
   again, and what the duals charge for it.  Two walks over the same gaps in the same order: the
   first counts, the second prices. */
#pragma once

#include "trace/prove/proof.h"
#include "trace/unit.h"

/* The tensors that the next run of an op would serve. */
typedef struct again_op {
  int64_t grains;               /* of one run, rounded down */
  int32_t tensors, most;        /* that may ask for it; at most so often for one of them */
  int32_t first_slot, end_slot; /* between which they may */
  int32_t first_row, row;       /* of proof.shares: for the first tensor; for that of the walk */
  int32_t tensor, times;        /* of the walk: the last one, and its gaps */
} again_op;

typedef struct again {
  const trace *t;
  const units *u;
  const proof *p;
  const uint8_t *loose; /* per op, or NULL */
  int64_t section_ns;
  int64_t saved_ns; /* out: what parts that run again may save by rounding, at most */
  int32_t peak;     /* slot of the proof's peak, or -1 */
  again_op *ops;    /* per op two: what is made up to the peak, and what is made behind it */
  /* per slot, in grains: work that may be done again, and what is due in it */
  __int128 *open, *released, *due;
  int64_t *free_bytes;   /* per slot: what may be away there and is made again before the peak */
  int32_t *list, listed; /* of the walk: ops that one drop is charged with */
  bool overflow;
} again;

/* t, u, p, loose, section_ns and peak are set. */
bool again_begin (again *g, link_rates rates, arena *a, error *err) MUST_CHECK;

/* True if the idle time of tensor x behind its use `at` can be given up. */
bool again_can (const again *g, int32_t x, int32_t at);
/* First walk: the idle time of tensor x behind its use `at`, between these slots; beyond slot `end`
   x is not needed (due, or before it where that is the last op for form). False: that cannot be
   dropped. Counts only where it can. */
bool again_count (again *g, int32_t x, int32_t at, int32_t release, int32_t due, int32_t end);
/* True if the idle time behind use `at` ends only where x was said to die: a plan that reads x to
   recompute others may keep it longer, so it is due at the last op. */
bool again_ends_life (const trace *t, const units *u, int32_t x, int32_t at);
/* Between the walks. An error where the proof does not have as many duals as there are rows. */
bool again_number (again *g, error *err) MUST_CHECK;
/* Second walk: what the duals of the work charge for a grain dropped, x 2^54; `room` is the
   tensor's. The work that only this gap asks for is opened. */
__int128 again_price (again *g, int32_t x, int32_t at, int32_t release, int32_t due, __int128 room);
