/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A comparison: who plans at which budgets, what each answers, and how an answer is shown. */
#pragma once

#include <stdio.h>

#include "cli/call/call.h"
#include "cli/figures/columns.h"
#include "cli/inputs/rewriting.h"
#include "cli/whatif/offline_figures.h"
#include "solver/policy/policy.h"

/* Ours up to four times, by what is allowed; each brings the bound of such plans. */
enum { MOST_BUDGETS = 64, OURS = POLICIES, OURS_DROPS, OURS_CUTS, OURS_ALL, PLANNERS };

typedef struct our_way {
  const char *name;
  allowed allowed; /* as far as the user allows it */
} our_way;

extern const our_way our_ways[PLANNERS - OURS];

typedef struct row {
  int64_t budget_bytes, plan_ns;
  int policy;             /* a policy_id, or from OURS on */
  bool interrupted;       /* the search was: a better plan may be found */
  int64_t lower_bound_ns; /* -1: none that holds for such a plan */
  policy_answer answer;
} row;

typedef struct comparison {
  const trace *trace; /* as its executor can carry it out */
  device device;
  int64_t peak_bytes, host_bytes;
  int64_t budgets[MOST_BUDGETS];
  int32_t n_budgets;
  int policies[PLANNERS]; /* ours first */
  int n_policies;
  int64_t limit_ticks;
  search_level level;
  places_mode placement; /* of our plans */
  bool same_places;
  allowed allowed, ours[PLANNERS - OURS];
  int32_t threads;
  char digest[TRACE_DIGEST];
  /* At the budget that is being compared, without and with recomputing; -1: none, or not known. */
  int64_t lower_bound_ns, drops_bound_ns;
  /* Ours at this budget so far: each is a start of those that may do more. */
  const plan *known[PLANNERS - OURS];
  int32_t n_known;
  arena *keeps;
  bool *any; /* a plan was found, in whichever process */
} comparison;

/* The call, read and held to what it may ask for. */
bool comparison_read (call *c, comparison *t) MUST_CHECK;

/* The bound at a budget is found alone where our planner does not run. */
bool comparison_bound (call *c, comparison *t, int64_t budget_bytes) MUST_CHECK;

/* The answer of one of them; what it is made of is in `a`. */
bool comparison_answer (call *c, comparison *t, row *r, arena *a) MUST_CHECK;

/* The head of a budget's rows, for the terminal, and a row of it. */
columns *comparison_head (call *c, const comparison *t, int64_t budget_bytes);
bool comparison_row (columns *to, const row *r) MUST_CHECK;

extern const char comparison_tsv_head[];
void comparison_tsv (FILE *to, const row *r);

/* An element of `into`, or a line of its own. */
bool comparison_json (call *c, const row *r, json_writer *into) MUST_CHECK;

/* The part that a picture needs, out of the scratch that it lives in. */
bool comparison_keep (call *c, const row *r, compared *out) MUST_CHECK;
