/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The best plan of a tiny trace whose ops may be cut and whose tensors may be made again, by trying
   all: every choice of ops in two or three parts and in every order, every sequence of recompute
   entries, each rewritten by the second rewriting and searched to the end by best_search.  A way
   is passed over only where its ops alone take no less than the best so far.  It shares nothing
   with the planner. */
#pragma once

#include "tests/best_plan.h"
#include "trace/rewrite/rewrite.h"

typedef struct every_allowed {
  bool parts, level_only, drops;
  int64_t below_ns;  /* only what is below it is looked for */
  int64_t most_runs; /* of best_search, all together, and ways */
  bool any;          /* the first plan is enough */
  bool fresh;        /* entries read nothing beyond its last use but what they made themselves */
  bool still;        /* nothing moves */
  bool has_list; /* what is dropped was written last by one of these ops of the trace as it is */
  unsigned listed;
} every_allowed;

typedef struct every_way {
  int64_t least_ns;   /* no plan is below it, by a count of granules; or below_ns */
  int64_t step_ns;    /* of the best plan written down; or below_ns, where there is none below it */
  int32_t cuts, made; /* ways to cut; ways to cut and make again that the rewriting accepts */
  int32_t n_sections, n_entries; /* of the best plan */
  int64_t runs;
  bool complete; /* none was left out */
} every_way;

bool every_way_search (const tiny_case *c, const every_allowed *allowed, every_way *out,
                       error *err) MUST_CHECK;

/* All entries that the rewriting accepts, whose ops take no more than most_ns in all, replace only
   what a later op of the trace uses, and each serve a later one or what is replaced; by `before`.
 */
bool every_entry (const trace *t, int64_t most_ns, arena *a, recompute **out, int32_t *count,
                  error *err) MUST_CHECK;

/* Whether an entry of the cut trace is one of those allowed. */
bool every_allows (const every_allowed *allowed, const rewritten *cut, const recompute *r);
