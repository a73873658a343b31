/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The prices of an explanation: what the next GiB or GB/s would buy. */
#pragma once

#include "base/json.h"
#include "cli/call/call.h"
#include "trace/plan.h"

/* The bound for the plan's own limits, the bounds for a little more, and the most that this can
   save by the duals of the first. */
typedef struct prices {
  int64_t now_ns, memory_ns, link_ns;
  int64_t gib_ns, gb_per_s_ns;
  bool of_this; /* of plans with what this one cuts and makes again: others may gain more */
} prices;

/* For the plan's trace as it is cut and with what it makes again. */
bool prices_find (call *c, const plan *p, const trace *rewritten, prices *out);

void prices_print (const prices *p);
void prices_put (json_writer *w, const prices *p);
void prices_put_bounds (json_writer *w, const prices *p);
