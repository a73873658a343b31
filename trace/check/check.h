/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is a plan legal for a trace? Obvious loops, written from docs/formats.md and sharing
   nothing with the simulator or the solver.  It looks at no predicted, certificate, made_by. */
#pragma once

#include "trace/plan.h"

typedef enum check_rule {
#define RULE(name, says) RULE_##name,
#include "trace/check/check.def"
#undef RULE
  CHECK_RULES
} check_rule;

/* False: the plan is of another trace (ERR_infeasible), or that could not be found out. */
bool check_trace (const trace *t, const plan *p, error *err) MUST_CHECK;

/* False, ERR_input: two ops of different streams use one tensor in no order, whatever a plan does. */
bool check_streams (const trace *t, arena *scratch, error *err) MUST_CHECK;

const char *check_rule_name (check_rule rule); /* "host_held" */
const char *check_rule_says (check_rule rule); /* one sentence */

/* False: err says which rule is broken and where (a JSON pointer into the plan), code
   ERR_infeasible; *broken is that rule. Another code is a failure to check. broken may be NULL. */
bool check_plan (const trace *t, const plan *p, arena *scratch, check_rule *broken,
                 error *err) MUST_CHECK;
