/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Why a step takes longer than its ops: which op waits, for which copy, and what held that copy
   up.  Read off a timeline of the simulator; times of the step before are those of this one less
   the period, so a step that does not settle is told as far as it agrees. */
#pragma once

#include "trace/simulate/simulate.h"

/* The reason why a copy did not start earlier. Copies that follow one another without a pause share
   the reason of the first. */
typedef enum copy_cause {
  COPY_link, /* the copy before it in its direction, and so on: the link never rests */
  COPY_op,   /* an op: memory that it frees (in), or its last use (out) */
  COPY_out,  /* an out: memory that it frees, or its own bytes that were still leaving */
  COPY_free, /* nothing that the timeline shows */
} copy_cause;

typedef struct wait {
  int32_t op;
  int64_t ns;       /* from when the op could have run, had no copy been waited for */
  bool by_out;      /* it needs the room that a copy out frees; else bytes that come in */
  int32_t move;     /* that copy's; -1: not told */
  int32_t behind;   /* copies right before it, without a pause between */
  copy_cause cause; /* why the first of all these did not start earlier */
  int32_t cause_op, cause_move; /* if it is an op's or another copy's doing; or -1 */
} wait;

/* Ops that wait, in order; of one stream the sum of ns is the period less all ns and gaps. */
bool waits_of (const sim_job *job, const timeline *line, arena *a, wait **out, int32_t *count,
               error *err) MUST_CHECK;
