/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a planned step of a program takes.  The machine model has one queue of ops and a link
   that only the plan uses.  A program has streams of its own, copies of its own that cross the same
   link, and waits of its host; and the shim starts a copy as soon as its memory is free.  So the
   shim's steps are run here on a clock, from the words that it is told. */
#ifndef FERRY_EXECUTOR_WATCH_FORESEE_H
#define FERRY_EXECUTOR_WATCH_FORESEE_H

#include "executor/watch/steps.h"
#include "trace/device.h"

typedef struct foresee_question {
  const steps *steps;
  const steps_map *map;
  const bytes *words; /* by answer_text, of the step's plan */
  const device *device;
  bool verifies; /* tensors that are made again, by digests */
} foresee_question;

bool foresee_step (const foresee_question *q, arena *a, int64_t *step_ns, error *err) MUST_CHECK;

#endif
