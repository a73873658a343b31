/* What is known while cuts and drops are chosen, shared by the files of mix. Nothing else needs it.
 */
#ifndef FERRY_SOLVER_SEARCH_MIX_INNER_H
#define FERRY_SOLVER_SEARCH_MIX_INNER_H

#include "solver/recompute/recompute.h"
#include "solver/sections/sections.h"

enum { MIX_CUTS = 2, MIX_MOST = 5 * (MIX_CUTS + 1), MIX_GUIDES = 7 };

/* Who proposed it: what one of them finds alone is looked at as closely where more is allowed. */
typedef enum mix_source { FROM_CUTS, FROM_DROPS, FROM_BOTH, FROM_KEEPING, MIX_SOURCES } mix_source;

typedef struct mix_proposal {
  variant v;
  variant_value value;
  mix_source from;
} mix_proposal;

typedef struct mixing {
  const trace *t;
  const solve_options *o;
  arena *arena, *scratch;
  int64_t compute_ns; /* of the trace as it is */
  int64_t least_ns;   /* no plan looked for is faster; those that keep the dead may be */
  int64_t ticks, limit_ticks;
  int64_t events; /* of a search for plans, to a tick */
  sections_family family;
  recompute_program program; /* of the trace as it is, where drops are allowed */
  variant guided[MIX_GUIDES];
  bound guided_bound;        /* of the best of them alone */
  mix_proposal at[MIX_MOST]; /* those from `open` on are not solved yet, the best first */
  int32_t count, open, drops_tried;
  solution best, last; /* without a plan at first; what mix_try found last */
  /* Of the plan without any of it, INT64_MAX: none, 0: not faster than the best; and its bound. */
  int64_t plain_ns, plain_bound_ns;
  variant small;    /* that mix_small found */
  bool small_keeps; /* what nothing reads any more */
  const variant *taken;
} mixing;

/* The best plan so far; INT64_MAX: there is none. */
int64_t mix_best_ns (const mixing *m);
/* A plan of that length is good enough. */
bool mix_near (const mixing *m, int64_t step_ns);
/* So is the best one, or somebody wants to stop. */
bool mix_is_over (const mixing *m);
/* A part of the ticks that are left, but never less than a share of all of them: who comes late is
   not shut out. */
int64_t mix_share (const mixing *m, int64_t part);

/* All of solve for one variant, on the terms of `how`, whose limit is in simulated events; it
   becomes the best where it is faster. */
bool mix_try (mixing *m, const variant *v, const variant_value *known, solve_options how,
              error *err) MUST_CHECK;

/* Sets that the program drops, each solved in full; and the best plan's, if it is one of them, once
   more with half of the ticks that are left. */
bool mix_guides (mixing *m, error *err) MUST_CHECK;
bool mix_guided_again (mixing *m, error *err) MUST_CHECK;

/* Cuts alone, drops alone, and drops on the best cuts: what is proposed, and the best of it solved
   in full. */
bool mix_cuts (mixing *m, error *err) MUST_CHECK;
bool mix_drops (mixing *m, error *err) MUST_CHECK;
bool mix_both (mixing *m, error *err) MUST_CHECK;

/* Where there are few ways to cut and to drop, all of them, as many as the ticks allow. */
bool mix_small (mixing *m, error *err) MUST_CHECK;

#endif
