/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A layout says which bytes move and in how many parts: the groups, the pool, the units and gaps
   that come of them, and each gap's share in the program's solution.  One trace has several; the
   simulator decides. */
#pragma once

#include "solver/flow/step.h"
#include "solver/tuning/tuning.h"

typedef enum layout_kind {
  LAYOUT_MIDDLE, /* groups that the link's latency and granules hardly spoil */
  LAYOUT_TIGHT,  /* the same, but what stays dies sooner */
  LAYOUT_STATE,  /* as the first, but larger groups of weights and optimizer state */
  LAYOUT_CLOSE,  /* larger, but of closer kin */
  LAYOUT_LARGE,  /* the largest, of what stays and what leaves alike */
  LAYOUT_MANY,   /* of small tensors only, many parts */
  LAYOUT_SMALL,  /* of small tensors only, a granule at most */
  LAYOUT_BARE,   /* no groups and no pool: each tensor may leave, however small */
  LAYOUTS
} layout_kind;

typedef struct layout {
  layout_kind kind;
  index_list *groups;
  int32_t n_groups;
  int64_t pool_below_bytes;
  counted_step step;
  int32_t *of;   /* per unit */
  double *share; /* per gap, 0 to 1; NULL: no program was solved */
} layout;

/* `singles` are the gaps of the trace's tensors one by one and `share` the program's answer for
   them; both NULL where there is none. */
typedef struct layout_request {
  const trace *trace;
  layout_kind kind;
  const device *device;
  int64_t budget_bytes;
  int64_t part_bytes; /* the smallest part; 0: a granule */
  bool by_latency; /* groups of persistent tensors are sized by what latency and memory cost */
  const gaps *singles;
  const double *share;
  const tuning *tuning;
} layout_request;
/* A tensor below a granule takes a whole one by itself: only a step of few ops is tried so. */
bool layout_suits (layout_kind kind, const trace *t, const tuning *by);
bool layout_make (const layout_request *q, arena *a, layout *out, error *err) MUST_CHECK;
