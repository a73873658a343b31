/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Published swapping and recomputing policies under one machine model.  A policy decides on the
   unswapped timeline which gap is spent on the host and which tensors are dropped; what its plan
   costs is what schedule, check and simulate make of these choices. */
#pragma once

#include "solver/policy/view.h"

typedef enum policy_id {
#define POLICY(id, ...) POLICY_##id,
#include "solver/policy/policy.def"
  POLICIES
} policy_id;

typedef enum policy_option {
#define OPTION(id, key, ...) POLICY_OPTION_##id##_##key,
#include "solver/policy/policy.def"
  POLICY_OPTIONS
} policy_option;

typedef enum policy_budget { POLICY_KEEPS, POLICY_MARGIN, POLICY_NONE } policy_budget;

typedef enum policy_option_kind {
  POLICY_COUNT,
  POLICY_SHARE,
  POLICY_BYTES,
  POLICY_TIME,
  POLICY_RATE,
  POLICY_WORD
} policy_option_kind;

typedef struct policy_option_row {
  policy_id policy;
  const char *key;
  policy_option_kind kind;
  int64_t low, high, standard;
  const char *words; /* separated by spaces, or NULL */
  const char *says;
} policy_option_row;

/* Values by policy_option; those of other policies are not looked at. */
typedef struct policy_values {
  int64_t at[POLICY_OPTIONS];
} policy_values;

/* A gap of a tensor spent on the host. in_not_before and wait_out as in a wish. */
typedef struct policy_move {
  int32_t tensor, out_after, in_before, in_not_before;
  bool wait_out;
  int32_t wait_at; /* this op waits for the copy out; NO_OP: none does */
} policy_move;

/* A tensor given up behind op `after`, made again for op `before`. Members of one segment come back
   together, at the first need of any. Made on the way to another tensor, it stays or is made once
   more at its own need. */
typedef struct policy_drop {
  int32_t tensor, after, before;
  int32_t segment; /* -1: alone */
  bool stays;
} policy_drop;

/* A policy's decision; it may say that by its own rule the budget cannot be reached. */
typedef struct policy_choice {
  policy_move *moves;
  policy_drop *drops;
  int64_t n_moves, moves_room, n_drops, drops_room;
  bool auto_clean;    /* it knows which host copies are still valid */
  int64_t fault_ns;   /* on top of a copy's latency */
  int64_t feedback;   /* rounds in which copies in that came late are triggered earlier */
  recompute *entries; /* all that runs again, decided already; NULL: as drops say */
  int32_t n_entries;
  int64_t needs_bytes; /* that these choices need by its own rule; 0: it does not say */
  const char *note;    /* its findings in words, or NULL */
} policy_choice;

typedef bool policy_decide (policy_view *v, policy_choice *out, error *err);

typedef struct policy_row {
  const char *name, *variant, *says, *whence;
  policy_budget budget;
  policy_decide *decide;
} policy_row;

const policy_row *policy_at (policy_id id);
const policy_option_row *policy_option_at (policy_option option);
/* POLICIES where there is none. */
policy_id policy_named (const char *name);
/* The name under which results are reported; for the values given. */
const char *policy_label (policy_id id, const policy_values *values, arena *a,
                          error *err) MUST_CHECK;

policy_values policy_standard (void);
/* "key=value" of one policy. */
bool policy_set (policy_id id, const char *text, policy_values *values, error *err) MUST_CHECK;

/* One more move or drop. */
bool policy_add_move (policy_view *v, policy_choice *c, policy_move m, error *err) MUST_CHECK;
bool policy_add_drop (policy_view *v, policy_choice *c, policy_drop d, error *err) MUST_CHECK;
/* Gap g to the host as soon as its op has ended, back behind in_not_before ops. */
bool policy_move_gap (policy_view *v, policy_choice *c, const view_gap *g, int32_t in_not_before,
                      error *err) MUST_CHECK;

typedef struct policy_request {
  const trace *trace;
  const device *device;
  int64_t budget_bytes, host_bytes;
  const policy_values *values; /* NULL: standard */
  const char *trace_digest;    /* NULL: computed */
  const policy_choice *choice; /* decided already, on this trace and device; or NULL */
  bool only_fits; /* if there is no plan, the least that could be reached is not looked for */
  bool (*stop) (void *context); /* true: nobody waits for a long decision any more; or NULL */
  void *stop_context;
} policy_request;

typedef struct policy_answer {
  const char *label;
  bool fits;             /* the plan keeps the budget */
  plan *plan;            /* passes check; NULL where it does not fit */
  int64_t reached_bytes; /* the least budget that these choices can keep, as far as it was found */
  bool has_cost;
  predicted cost; /* of the plan; where it does not fit, at reached_bytes */
  int64_t moves, drops;
  policy_choice choice; /* its decision, on the trace as it was given */
  const trace *order;   /* the plan is of this trace, whose ops it has put into another order; NULL:
                           of the one given */
  const char *note;     /* why not, or what the policy says */
} policy_answer;

/* Decides, schedules, checks and simulates. False is a failure; that nothing fits is an answer. */
bool policy_run (policy_id id, const policy_request *r, arena *a, policy_answer *out,
                 error *err) MUST_CHECK;

/* The choice alone, for tests and for those who build on it. */
bool policy_choose (policy_id id, const policy_request *r, arena *a, policy_view *view,
                    policy_choice *out, error *err) MUST_CHECK;

/* TENSILE's rule for jobs that share a card: they bring the sum of their peaks under what there is.
   peak_bytes: what each one's is then. */
bool policy_tensile_jobs (policy_view *views, int32_t n_jobs, int64_t memory_bytes, arena *a,
                          policy_choice *out, int64_t *peak_bytes, error *err) MUST_CHECK;

#define POLICY(id, name, function, ...) policy_decide policy_##function;
#include "solver/policy/policy.def"
