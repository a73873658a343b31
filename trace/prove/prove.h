/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A certificate read again: from the trace, the plan's device, budget and units, and the duals that
   the plan carries, what is proved is computed once more, in integers, by code that shares nothing
   with the solver.  trace/prove/evaluation.md has the layout of a proof and the sum. */
#pragma once

#include "trace/plan.h"
#include "trace/rewrite/rewrite.h"

typedef struct proved {
  int64_t lower_bound_ns; /* the proof's worth, whatever the plan claims */
  int64_t claimed_ns;
  const char *kind; /* "compute", "crossing" or "flow"; NULL: nothing is proved */
  cover cover;      /* the plans that the claim holds for */
  double gap;       /* of the plan at hand to the claim; infinite where that is 0 */
} proved;

/* step_ns: what the plan at hand takes on the machine model, by the simulator. False with
   ERR_infeasible where the plan is none of those that the proof speaks of, where it beats what is
   said to be proved, or where the file claims more than that: a larger bound, more plans, a smaller
   gap. *out is filled in once the proof has been evaluated. Anything else is a proof that cannot be
   read. */
bool prove_plan (const trace *t, const plan *p, int64_t step_ns, arena *scratch, proved *out,
                 error *err) MUST_CHECK;
