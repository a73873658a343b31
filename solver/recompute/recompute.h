/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors that are dropped and made again instead of carried over the link.  Proposals are ordinary
   recompute entries; they are worth what greedy plans of the rewritten trace cost in the
   simulator. */
#pragma once

#include "solver/attempt/variant.h"
#include "solver/policy/view.h"
#include "solver/recompute/drops.h"

typedef struct recompute_result {
  variant best; /* n_recomputes may be 0 */
  variant bold; /* its quick plans are slower, but a search of copies may make it the best */
  variant_value value, bold_value;
  int32_t candidates, tried;
  int64_t ticks;
  drops_missed missed;
} recompute_result;

/* The program of a cut in which gaps may be carried or dropped, as far as the mode allows either.
 */
typedef struct recompute_program {
  bool fits;
  const rewritten_step *step; /* the cut, its tensors in bytes */
  bound bound;                /* with a proof where the options keep it; `dropped` is the guide */
} recompute_program;

typedef struct recompute_request {
  const trace *trace;
  const variant *cut; /* whose sections the results share; NULL: none */
  const solve_options *options;
  const recompute_program *guide; /* the cut's; or NULL */
  bool keeps, keeps_first;        /* as drops_request's */
  int64_t limit_ticks;            /* 0: those of the options, or a default */
  int64_t enough_ns;              /* as an effort's */
} recompute_request;

bool recompute_search (const recompute_request *q, arena *a, recompute_result *out,
                       error *err) MUST_CHECK;

/* The set that this program drops, of that cut, looked at. legal is false where the rewriting
   refuses it, bound_ns is INT64_MAX where it cannot fit. */
bool recompute_guided (const trace *t, const variant *cut, const solve_options *o,
                       const recompute_program *guide, arena *a, variant *out, variant_value *value,
                       error *err) MUST_CHECK;

/* Segments of the way forward, told apart by the bounds of their programs: the set whose plans may
   be the fastest, of those whose bound is below beat_ns; n_recomputes is 0 where there is none. The
   request has a guide and a limit. */
bool recompute_ranked (const recompute_request *q, int64_t beat_ns, arena *a, recompute_result *out,
                       error *err) MUST_CHECK;

/* RECOMPUTE_CHEAP may make these again: outputs of anything but convolutions and matrix
   products. */
bool recompute_is_cheap (const policy_view *v, int32_t op);
/* Which ops' outputs the mode allows to be dropped; NULL: any. */
bool recompute_may_drop (const trace *t, const solve_options *o, arena *a, uint8_t **again,
                         error *err) MUST_CHECK;

/* No plan of this cut, whatever it drops as the mode allows and whatever it swaps, is faster: at
   each op that is over the budget, what is not there was either made again, which takes the time of
   its last writer, or comes back over the link. INT64_MAX where not even the largest op fits.
   Quick, and weaker than the program. */
bool recompute_bound (const trace *t, const variant *cut, const solve_options *o, arena *scratch,
                      int64_t *ns, error *err) MUST_CHECK;

/* Like the one below, for the program's drops alone, at so much of the budget; no bound, no
   proof. */
bool recompute_solve_guide (const trace *t, const variant *cut, const solve_options *o,
                            int64_t budget_bytes, arena *a, recompute_program *out,
                            error *err) MUST_CHECK;

/* It is no error that none fits. fresh: of plans whose copies read nothing beyond its last use but
   what their own entry made, as all are that recompute_search finds where it keeps nothing. */
bool recompute_solve_program (const trace *t, const variant *cut, const solve_options *o,
                              const effort *e, bool fresh, arena *a, recompute_program *out,
                              error *err) MUST_CHECK;
