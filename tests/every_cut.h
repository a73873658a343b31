/* The best plan of a tiny trace whose ops may be cut and whose tensors may be made again, by trying
   all: every choice of ops in two parts and in every order, every recompute entry of one or two ops
   (every pair of them where they are few), each rewritten by the second rewriting and searched to
   the end by best_search.  It shares nothing with the planner. */
#ifndef FERRY_TESTS_EVERY_CUT_H
#define FERRY_TESTS_EVERY_CUT_H

#include "tests/best_plan.h"

/* As tiny_make, with a batch of two. The budget may be below what a whole op needs. */
bool cut_case_make (uint64_t seed, arena *a, tiny_case *out, error *err) MUST_CHECK;

typedef struct every_cut {
  int64_t least_ns;     /* of all plans; or below_ns, where none is below it */
  int32_t cuts, made;   /* ways to cut; ways to cut and make again that the rewriting accepts */
  bool in_parts, again; /* the best one has sections, entries */
  bool complete;        /* none was left out for its size */
} every_cut;

bool every_cut_search (const tiny_case *c, bool level_only, bool drops, int64_t below_ns,
                       every_cut *out, error *err) MUST_CHECK;

#endif
