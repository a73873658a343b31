/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The least that a step of few ops takes with some choice of what moves, whatever the order of its
   copies: a quick bound, for a search that tries all choices. */
#pragma once

#include "solver/flow/gaps.h"

/* One part that spends one gap on the host. */
typedef struct mover {
  int32_t gap;
  int64_t room_bytes;    /* that it leaves */
  int64_t out_ns, in_ns; /* of its copies; out 0: it is clean */
} mover;

/* `level` is what is resident at each op in any case, with the movers gone. `room_bytes` is what
   may be. At most n_ops^2 numbers of `scratch` are used. INT64_MAX: some op has no room. */
typedef struct least_request {
  const gaps *gaps;
  const int64_t *level;
  int64_t room_bytes;
  const mover *movers;
  int32_t n_movers;
  int64_t compute_ns;
} least_request;
bool least_step_ns (const least_request *q, arena *scratch, int64_t *ns, error *err) MUST_CHECK;
