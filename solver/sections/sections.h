/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cuts along the batch: a family of proposals, from which the bound and greedy plans choose. Chains
   run depth first wherever trace/rewrite/rewrite allows it; the rest goes level by level. */
#pragma once

#include "solver/attempt/narrow.h"

/* Which ops a proposal cuts, and in what order. */
typedef enum sections_form {
  SECTIONS_LEVEL_ALL,    /* every op that can be cut */
  SECTIONS_LEVEL_TIGHT,  /* those from the first op over the budget to the last */
  SECTIONS_DEPTH_ALL,    /* every op, in chains as long as they may be */
  SECTIONS_DEPTH_TIGHT,  /* chains over the ops from the first over the budget to the last */
  SECTIONS_DEPTH_PHASES, /* chains that end where the phase changes */
  SECTIONS_FORMS
} sections_form;

extern const char *const sections_form_names[SECTIONS_FORMS + 1];

/* One proposal; n_sections is 0 where it cuts nothing. */
bool sections_propose (const trace *t, const solve_options *o, sections_form form, int64_t parts,
                       arena *a, variant *out, error *err) MUST_CHECK;

/* Each op by itself in as few parts as bring what it needs under that share of the budget, or in
   its most; n_sections may be 0. */
bool sections_fit (const trace *t, const solve_options *o, int64_t share_ppm, arena *a,
                   variant *out, error *err) MUST_CHECK;

/* The least that some op needs in any cut that the options allow: no plan has less. */
bool sections_floor (const trace *t, const solve_options *o, arena *a, int64_t *bytes,
                     error *err) MUST_CHECK;
/* Some pinned tensor may be there for less of the step than the ops as they stand say: in another
   order, or cut into parts. */
bool sections_move_pins (const trace *t, const solve_options *o);
/* Then a floor of the ops as they stand becomes one of all that the options allow. */
bool sections_lower (const trace *t, const solve_options *o, arena *a, int64_t *bytes,
                     error *err) MUST_CHECK;

/* How far depth first may go from op `first` (trace/rewrite's rule): the end of the chain. */
int32_t sections_chain_end (const trace *t, int32_t first, int32_t end, int64_t parts,
                            int32_t *read_in, int32_t *written_in);

enum { SECTIONS_BY_DROPS = 2, SECTIONS_FOR_DROPS = 4 };

typedef struct sections_family {
  variant *at; /* that fit in the budget, best first by greedy plan, then by bound */
  variant_value *values;
  int32_t count;
  /* Cuts for steps that drop too, none if drops are not allowed: first the best by a quick bound with
     drops, with fewer ops cut, where they gain anything there; then the best of the family. */
  variant for_drops[SECTIONS_FOR_DROPS];
  variant_value drops_values[SECTIONS_FOR_DROPS]; /* step_ns by that bound */
  int32_t n_by_drops, n_for_drops;
  int32_t proposed, refused, too_large; /* of all proposals */
  int64_t least_bound_ns;               /* over all that fit; the plain step is not among them */
  int64_t least_floor_bytes;
  int64_t compute_ns; /* of the step as it is */
  int64_t ticks;      /* of the plans that were tried */
  int64_t limit_ticks;
} sections_family;

/* One of the family or what becomes of it, narrowed with a share of its ticks. */
bool sections_narrow (const trace *t, const solve_options *o, narrow_judge *judge, arena *a,
                      arena *scratch, sections_family *f, narrowed *x, error *err) MUST_CHECK;
/* Fills for_drops of a family whose cuts are known; in file sections/for_drops. */
bool sections_for_drops (const trace *t, const solve_options *o, arena *a, arena *scratch,
                         sections_family *f, error *err) MUST_CHECK;

/* Everything in `a`. Beyond the limit only until something fits. */
bool sections_search (const trace *t, const solve_options *o, int64_t limit_ticks, arena *a,
                      sections_family *out, error *err) MUST_CHECK;
