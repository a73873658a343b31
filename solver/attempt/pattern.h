/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When a group of tensors is used, how long it would rest and how long it would live. */
#pragma once

#include "solver/tuning/tuning.h"
#include "trace/trace.h"
#include "trace/uses.h"

typedef struct pattern {
  int32_t *ops; /* in order, each once */
  int32_t count;
  int64_t rest_ns, life_ns;
} pattern;

typedef struct pattern_clock {
  const trace *trace;
  uses uses;
  int64_t *ends_ns;   /* of the ops if nothing stalls */
  int64_t short_part; /* of a step: what lives shorter counts as so long */
} pattern_clock;

bool pattern_clock_of (const trace *t, const tuning *by, arena *a, pattern_clock *out,
                       error *err) MUST_CHECK;
/* The uses of `with` (NULL: none) and of the tensor together, into *out, whose ops have room for
   all. With ends_only the first and the last are all that counts. */
void pattern_merge (const pattern_clock *c, const pattern *with, int32_t tensor, bool ends_only,
                    pattern *out);
/* The tensor's longest rest; both its use where it has one only and never rests. */
void pattern_longest (const pattern_clock *c, int32_t tensor, int32_t *after, int32_t *before);
