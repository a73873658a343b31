/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which plans a bound speaks of.  The class is derived from the proof, the plan at hand must be in
   it, and what the file says of it (`covers`) may be less, never more. */
#ifndef FERRY_TRACE_PROVE_COVER_H
#define FERRY_TRACE_PROVE_COVER_H

#include "trace/prove/proof.h"
#include "trace/rewrite/rewrite.h"

enum { COVER_TEXT = PROVED_TEXT };

typedef enum cover_cuts { COVER_THIS_CUT, COVER_LEVEL, COVER_ANY_CUT, COVER_CUTS } cover_cuts;

/* These recompute entries; any of outputs of the ops that the proof lists; any. */
typedef enum cover_drops { COVER_THESE, COVER_LISTED, COVER_ALL, COVER_DROPS } cover_drops;

typedef struct cover {
  cover_cuts cuts;
  cover_drops drops;
  bool fresh;       /* copies read nothing beyond its last use but what their own entry made */
  bool still;       /* nothing crosses the link */
  bool these_units; /* with the plan's groups, pool and granules */
  bool any_order;   /* of ops; else the plan's */
} cover;

/* The cover of a proof that says something beyond compute; what compute proves holds for every
   plan. */
cover cover_of (const proof *p);
extern const cover cover_every_plan;

/* In words; of a plan that cuts and makes again nothing, "this cut" is none. */
const char *cover_text (const cover *c, const plan *p, char text[COVER_TEXT]);

/* True if a file that says so says no more than is so. No text says nothing. */
bool cover_allows (const cover *c, const plan *p, const char *says);

/* The trace that the plan's entries speak of, and the proof's: where those are cuts in any way,
   `of` has the op of each of its ops, by its place in the plan's order, and `order` (or NULL) the
   original op of each place. */
typedef struct cover_traces {
  const rewritten *cut;
  const int32_t *of, *order;
  int32_t n_ops;
} cover_traces;

/* An error where the plan is none of those that the proof speaks of. */
bool cover_has_plan (const proof *proof, const cover_traces *t, const plan *p, arena *a,
                     error *err) MUST_CHECK;

#endif
