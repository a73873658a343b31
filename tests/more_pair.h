/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two questions about one small step, of which the second is given more: more effort, more that is
   allowed, an easier card, or a plan that is known.  Its answer is not to be worse. */
#pragma once

#include "solver/solve.h"

typedef enum more_kind { MORE_EFFORT, MORE_ALLOWED, MORE_CARD, MORE_KNOWN, MORE_KINDS } more_kind;
extern const char *const more_kinds[MORE_KINDS];

typedef struct more_pair {
  char what[240];
  int64_t less_ns, more_ns; /* INT64_MAX: no plan */
  int64_t bound_ns;         /* of the first, or 0 */
  int64_t worse_ppm;        /* the second's step over the first's; below 0: it is better */
} more_pair;

/* As near to the bound as each of them is asked to come. */
enum { MORE_GAP_PPM = 5000, MORE_WORST_PPM = 1000000000 };

/* The index-th pair of a kind and seed, the same on every machine. part: of the usual effort, one
   in so many. small: of the smallest steps alone. */
bool more_pair_of (more_kind kind, uint64_t seed, int index, int part, bool small, more_pair *out,
                   error *err) MUST_CHECK;
