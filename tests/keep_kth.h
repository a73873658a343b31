/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The usual advice, to be beaten: of what is carried from the way forward to the way back every
   k-th tensor is kept, or what every k-th block leaves behind last, and the rest is made again. */
#pragma once

#include "solver/recompute/recompute.h"
#include "solver/attempt/variant.h"

typedef struct kept_kth {
  int64_t step_ns; /* of the quick plans of the best k; INT64_MAX: none fits */
  int32_t k;
  bool blocks;
} kept_kth;

/* For each k from 1 to most_k, by tensors and by blocks. */
bool keep_kth (const trace *t, const solve_options *o, int32_t most_k, kept_kth *out,
               error *err) MUST_CHECK;

/* The best prefix of each ranking alone, without any further search. */
bool greedy_drops (const trace *t, const solve_options *o, bool keeps, int64_t limit_ticks,
                   arena *a, recompute_result *out, error *err) MUST_CHECK;
