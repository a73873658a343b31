/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which ops a plan runs in parts: why they have to, what that costs, and what never crosses the
   link for it. */
#pragma once

#include "cli/call/call.h"
#include "trace/plan.h"

/* One section of the plan. */
typedef struct cut_told {
  const section *section;
  int32_t op;                       /* of it, whose tensors and workspace are the most */
  int64_t whole_bytes, parts_bytes; /* bytes that it touches whole, and in its largest part */
  int64_t inside_bytes; /* of tensors that no op outside touches: in a chain one part at a time */
  int64_t ns;           /* the cost of its further parts */
} cut_told;

typedef struct cuts_told {
  const trace *trace;
  cut_told *at;
  int32_t count;
  int64_t ns;
  int64_t budget_bytes, floor_bytes; /* the plan's; of the step in whole ops */
  int32_t floor_op;
} cuts_told;

bool cuts_of (call *c, const trace *t, const plan *p, cuts_told *out) MUST_CHECK;
/* Nothing where nothing is cut. */
void cuts_print (const cuts_told *x);
void cuts_put (json_writer *w, const cuts_told *x);
