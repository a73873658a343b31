/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Knowledge while cuts and drops are chosen, shared by the files of ways. Nothing else needs it. */
#pragma once

#include "solver/options/lane.h"
#include "solver/recompute/recompute.h"
#include "solver/search/ways.h"
#include "solver/sections/sections.h"

enum {
  WAYS_MOST = 5 * (SECTIONS_FOR_DROPS + 1) + 2,
  WAYS_BUDGETS = TUNE_program_sets_less_ppm_last - TUNE_program_sets_less_ppm + 1,
  WAYS_LINKS = TUNE_program_sets_slower_last - TUNE_program_sets_slower + 1,
  WAYS_SETS = WAYS_BUDGETS + WAYS_LINKS
};

/* The proposer: what one of them finds alone is looked at as closely where more is allowed. */
typedef enum ways_source {
  FROM_CUTS,
  FROM_DROPS,
  FROM_BOTH,
  FROM_KEEPING, /* dead tensors are kept where else something could not be made */
  FROM_KEPT,    /* and where they could be made again */
  WAYS_SOURCES
} ways_source;

typedef struct ways_proposal {
  variant v;
  variant_value value;
  ways_source from;
} ways_proposal;

/* The step as it is, searched beside the other strategies. */
typedef struct ways_beside {
  lane lane;
  const trace *trace;
  effort effort;
  solution found;
  error why;
  bool ok;
} ways_beside;

typedef struct ways {
  const trace *t;
  const solve_options *o;
  effort effort; /* of the whole; each attempt's begins as this one */
  arena *arena, *scratch;
  int64_t compute_ns; /* of the trace as it is */
  int64_t least_ns;   /* lower bound; not valid for plans that keep tensors past their last use */
  int64_t ticks, limit_ticks;
  int64_t part;   /* 1/part of the ticks that are left is for the strategy that runs */
  int64_t events; /* of a search for plans, to a tick */
  int64_t tried;  /* candidates and sets */
  bool easy;      /* a quick plan of the step as it is comes near compute */
  sections_family family;
  recompute_program program; /* of the trace as it is, where drops are allowed */
  recompute_program wide;    /* of plans that keep tensors past their last use too */
  bool has_wide;             /* it was solved */
  bool pays_alone;           /* so it says: drops alone may be faster than the best so far */
  bool remakes_dead;         /* some drop makes again what could have been kept */
  /* One row for each cut for drops, then one for the step as it is: */
  variant guided[SECTIONS_FOR_DROPS + 1][WAYS_SETS];
  variant ranked[SECTIONS_FOR_DROPS + 1];
  ways_proposal at[WAYS_MOST]; /* those from `open` on are not solved yet, the best first */
  int32_t count, open, drops_tried;
  solution best, last; /* without a plan at first; what ways_try found last */
  /* The plan without any of it, INT64_MAX: none, 0: not faster than the best; and its bound. */
  int64_t plain_ns, plain_bound_ns;
  variant small;    /* that ways_small found */
  bool small_keeps; /* it keeps tensors that nothing reads any more */
  const variant *taken;
  ways_beside beside; /* begun: its turn is that of `plain` */
} ways;

/* The best plan so far, else what is to be beaten; INT64_MAX: neither. */
int64_t ways_best_ns (const ways *m);
/* A plan of that length is good enough. */
bool ways_near (const ways *m, int64_t step_ns);
/* So is the best one, or somebody wants to stop. */
bool ways_is_over (const ways *m);
/* A plan of such a source may keep tensors past their last use. */
bool ways_keeps (ways_source from);
/* Solves the wider program, once. */
bool ways_widen (ways *m, error *err) MUST_CHECK;
/* A part of the ticks that are left, but never less than a share of all of them: stages that start
   late still get one eighth of the limit. */
int64_t ways_share (const ways *m, int64_t part);

/* An attempt at one variant, on the terms of `how`, whose limit is in simulated events; it becomes
   the best where it is faster. v NULL: the step as it is. */
bool ways_try (ways *m, const variant *v, const variant_value *known, effort how,
               error *err) MUST_CHECK;

/* The outcome of an attempt on those terms is in `last`; it becomes the best where it is faster. */
bool ways_take (ways *m, const variant *v, const effort *how, bool ok, const error *why,
                error *err) MUST_CHECK;

/* ---- strategies: as solver/tuning/strategies.def says ---- */

bool ways_quick (ways *m, error *err) MUST_CHECK;
bool ways_plain_first (ways *m, error *err) MUST_CHECK;
bool ways_plain (ways *m, error *err) MUST_CHECK;

bool ways_cuts (ways *m, error *err) MUST_CHECK;
bool ways_program_sets (ways *m, error *err) MUST_CHECK;
/* The same for the i-th cut for drops, whose program is p. */
bool ways_cut_sets (ways *m, int32_t i, const recompute_program *p, error *err) MUST_CHECK;
bool ways_ranked (ways *m, error *err) MUST_CHECK;
bool ways_drops (ways *m, error *err) MUST_CHECK;
bool ways_both (ways *m, error *err) MUST_CHECK;
bool ways_small (ways *m, error *err) MUST_CHECK;
bool ways_kept (ways *m, error *err) MUST_CHECK;
