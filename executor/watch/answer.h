/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan as the shim follows it: a home of whole granules for every tensor, and copies behind
   beats. Groups are told as their members; for that tensors must be whole granules, as
   steps_options says. */
#ifndef FERRY_EXECUTOR_WATCH_ANSWER_H
#define FERRY_EXECUTOR_WATCH_ANSWER_H

#include "executor/watch/steps.h"
#include "trace/plan.h"

/* The plan keeps every stay at the same places, cuts nothing and makes nothing again. */
bool answer_text (const trace *t, const plan *p, const steps_map *map, arena *a, bytes *out,
                  error *err) MUST_CHECK;

#endif
