/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The flow program with drops, of a trace as its sections cut it, with its gaps fixed to what a
   plan does that makes tensors again: what is carried, what is given up, and how much is away at
   each op. */
#pragma once

#include "solver/flow/flow.h"
#include "tests/planned_case.h"
#include "trace/simulate/simulate.h"

typedef struct fixed_drops {
  const planned_case *plan;
  rewritten cut;
  units units;
  gaps gaps;         /* of the cut trace; over each op just what the plan has away there */
  int32_t *place;    /* per op of the cut trace: its place among the rewritten ones */
  int32_t *instance; /* per gap: the tensor that stands for its own when it begins */
  uint8_t *dropped;  /* per gap */
  int32_t *made;     /* per gap dropped: the op before which it is made again, the last time */
  int32_t *standing; /* per op of the cut trace and tensor: who stands for it when the op runs */
  int32_t drops;     /* how many are */
} fixed_drops;

bool fixed_drops_make (const planned_case *p, arena *a, fixed_drops *out, error *err) MUST_CHECK;

/* As fixed_solve. A drop that the program says is impossible is infeasible. */
bool fixed_drops_solve (flow *f, const fixed_drops *d, arena *a, double *stall_ns,
                        error *err) MUST_CHECK;

/* Whether some copy reads a tensor beyond its last use that its own entry did not make. */
bool fixed_drops_keeps (const trace *cut, const recompute *entries, int32_t n_entries, arena *a,
                        bool *keeps, error *err) MUST_CHECK;

/* The bytes of move i are gone from before this time to behind it. */
bool fixed_is_away (const move *m, const timeline *t, int32_t i, span time);
