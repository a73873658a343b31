/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One attempt: the best plan that is found of one rewritten step, with the bound of its plans. All
   that chooses between ways to rewrite a step stands on this. */
#pragma once

#include "solver/attempt/variant.h"

/* One search: which step, what may be done to it, and at what cost. Every room of the search takes
   one, and asks the rooms below with one of its own. */
typedef struct solve_request {
  const trace *trace; /* in its order, without what rests */
  const solve_options *options;
  effort effort;
  const variant *variant; /* its cuts and drops; NULL: none, and above an attempt, any allowed */
  /* The variant's value if it is known, or NULL. With it the program is not solved where that is
     not worth the time: the quick plan is good enough, or the ops are too many. */
  const variant_value *known;
  int64_t least_ns; /* of ways: no plan is faster; 0: by compute */
} solve_request;

/* The bound alone, with its proof where that is kept; of a rewritten trace too. */
bool attempt_bound (const trace *t, const solve_options *o, arena *a, bound *out,
                    error *err) MUST_CHECK;

/* The certificate covers the plans of this variant. Without a plan where its bound says that none
   is of use. */
bool attempt_solve (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;
