/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The executor that a plan is made for: --for torch, compile, replay or run; without it, the one
   that recorded the trace. */
#pragma once

#include "cli/call/call.h"
#include "solver/options/allowed.h"
#include "trace/plan.h"

/* clang-format off */
#define OPTION_FOR { 0, "for", "replay|run|torch|compile", \
  "the executor: `ferry replay`, an unmodified program (places stay the same), ferry_torch " \
  "(whole storages that only autograd or the optimizer holds), or its backend for torch.compile, " \
  "which recomputes too; default: the one that recorded the trace, else replay" }
/* clang-format on */

/* The trace as that executor can carry it out: `t` itself, or one with the same ops and tensors of
   which less may move. Options that it cannot follow are refused. NULL: c->err. */
const trace *executor_trace (call *c, const trace *t) MUST_CHECK;

/* Without all that it cannot follow; ferry_torch recomputes only where --recompute asks it to,
   since its copies of ops cost time that no trace knows. */
bool executor_allows (call *c, const trace *t, allowed *x) MUST_CHECK;

/* The most that may be asked of that executor. */
allowed executor_most (call *c, const trace *t);

/* The places that it can follow: no arena for programs that keep their addresses and for
   ferry_torch; the stays of the former keep their granules. */
bool executor_places (call *c, const trace *t, bool *same_places, places_mode *mode) MUST_CHECK;

/* Places are rounded to it where no card is named. */
int64_t executor_granule (call *c, const trace *t, int64_t otherwise);

/* A plan of that trace is one of `t`: it gets the digest, and is checked. */
bool executor_plan (call *c, const trace *t, const trace *planned, plan *p) MUST_CHECK;
