/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plans worked out by hand in docs/machine-model.md and tests/cases/machine/timelines.md:
   tests/cases/machine/NAME/. */
#pragma once

#include "base/json.h"
#include "trace/rewrite/rewrite.h"
#include "trace/simulate/simulate.h"

enum { GOLDEN_NAMES = 5 };
extern const char *const golden_names[GOLDEN_NAMES];

typedef struct golden {
  trace *trace;
  plan *plan;
  predicted predicted;
  span *ops, *outs, *ins; /* of one steady step; -1, -1 where there is no copy */
  int32_t n_ops;
  json_document *expected; /* close it */
} golden;

bool golden_load (const char *name, arena *a, golden *out, error *err) MUST_CHECK;

/* False: `err` names the first figure, or the first row of the rewritten trace, that is not as it
   was worked out. */
bool golden_same_predicted (const golden *g, const predicted *p, error *err) MUST_CHECK;
bool golden_same_rewritten (const golden *g, const rewritten *r, error *err) MUST_CHECK;
