/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One policy's choices on their way to a plan: policy.c decides and schedules, policy_wishes.c
   takes the choices into the trace that its drops rewrite. */
#pragma once

#include "solver/policy/policy.h"
#include "solver/place/schedule.h"

typedef struct policy_attempt {
  const policy_request *request;
  const char *label;
  policy_view view;
  policy_choice choice;
  device device;
  recompute *recomputes;
  int32_t n_recomputes;
  int64_t kept_drops;
  rewritten rw;
  uses uses;      /* of the rewritten trace */
  int32_t *place; /* per original op, and one more for the end */
  wish *wishes;
  int32_t *wait_at; /* per wish, in the rewritten trace */
  int32_t n_wishes;
} policy_attempt;

/* From the choice on the original trace: what is made again, the trace with it, and the wishes. */
bool policy_attempt_wishes (policy_attempt *r, arena *a, error *err) MUST_CHECK;
