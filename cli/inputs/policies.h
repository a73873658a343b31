/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies as the command line names them, with their options. */
#pragma once

#include "cli/call/call.h"
#include "solver/policy/policy.h"

bool policy_of_name (call *c, const char *name, policy_id *out) MUST_CHECK;
/* "key=value,key=value"; NULL: the standard. */
bool policy_values_of (call *c, policy_id id, const char *text, policy_values *out) MUST_CHECK;
/* The amount of --budget: a size, or a percentage of what the step needs; without it all that the
   device has to give, and more than that is refused. */
bool policy_asked_budget (call *c, const trace *t, const device *d, int64_t *out) MUST_CHECK;
/* The amounts of a --budget that lists them: `most` at most, of a step that needs `peak_bytes`. */
bool policy_asked_budgets (call *c, const device *d, int64_t peak_bytes, int most, int64_t *out,
                           int32_t *n) MUST_CHECK;
/* The parts of a list with commas between; *rest moves on. NULL: there is none left. */
const char *next_part (call *c, const char **rest);
/* Bytes that the step needs with everything on the device, its reserve included. */
bool policy_plain_peak (call *c, const trace *t, const device *d, int64_t *out) MUST_CHECK;

void policies_list (void);
bool policies_list_json (call *c) MUST_CHECK;
/* The members "predicted" and what stands beside it, of an open object; lower_bound_ns < 0: there
   is none for plans such as this. */
void policy_answer_write (json_writer *w, const policy_answer *a, int64_t lower_bound_ns);
