/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which plans a proof is about.  The class is derived from the proof, the plan at hand must be in
   it, and what the file says of it (`cover`) may be less, never more. */
#pragma once

#include "trace/prove/proof.h"
#include "trace/rewrite/rewrite.h"

/* The cover of a proof that says something beyond compute; what compute proves holds for every
   plan. */
cover membership_cover (const proof *p, const plan *at_hand);

/* The trace that the plan's entries speak of, and the proof's: where those are cuts in any way,
   `of` has the op of each of its ops, by its place in the plan's order, and `order` (or NULL) the
   original op of each place. */
typedef struct membership_traces {
  const rewritten *cut;
  const int32_t *of, *order;
  int32_t n_ops;
} membership_traces;

/* An error where the plan is none of those that the proof speaks of. */
bool membership_holds (const proof *proof, const membership_traces *t, const plan *p, arena *a,
                       error *err) MUST_CHECK;
