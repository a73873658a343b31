/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry solve --policy NAME`: the plan that a published policy decides. */
#pragma once

#include "cli/call/call.h"
#include "solver/policy/policy.h"

typedef struct policy_question {
  const trace *given, *trace; /* as it is, and as its executor can carry it out */
  device device;
  policy_id id;
  policy_values values;
  policy_request request;
} policy_question;

/* A question is checked completely before work on it begins, here or on a server. */
bool policy_question_read (call *c, const char *name, policy_question *q) MUST_CHECK;
/* The exit status. */
int solve_by_policy (call *c, const char *name);

/* --html: the page of the step. */
bool solve_draw (call *c, const trace *t, const plan *p) MUST_CHECK;
