/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan as the shim follows it: a home of whole granules for every tensor, and copies behind
   beats. Groups are told as their members; for that tensors must be whole granules, as
   steps_options says. */
#pragma once

#include "executor/watch/steps.h"
#include "trace/plan.h"

typedef struct answer_question {
  const trace *trace; /* by steps_trace */
  const plan *plan;   /* keeps every stay at the same places, and cuts nothing */
  const steps *steps;
  const steps_map *map;
} answer_question;

/* Tensors that are made again have the place that they had, and the bytes. */
bool answer_text (const answer_question *q, arena *a, bytes *out, error *err) MUST_CHECK;
