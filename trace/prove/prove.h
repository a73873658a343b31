/* A certificate read again: from the trace, the plan's device, budget and units, and the duals that
   the plan carries, what is proved is computed once more, in integers, by code that shares nothing
   with the solver.  docs/proof.md has the layout of a proof and why it proves. */
#ifndef FERRY_TRACE_PROVE_PROVE_H
#define FERRY_TRACE_PROVE_PROVE_H

#include "trace/plan.h"
#include "trace/rewrite/rewrite.h"

typedef struct proved {
  int64_t lower_bound_ns; /* what the proof is worth, whatever the plan claims */
  int64_t claimed_ns;
  const char *kind; /* "compute", "crossing" or "flow" */
} proved;

/* False with ERR_infeasible where the claim is more than the proof is worth; *out is then filled
   in. Anything else is a proof that cannot be read. */
bool prove_plan (const trace *t, const plan *p, arena *scratch, proved *out, error *err) MUST_CHECK;

#endif
