/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a planned step of a program takes.  A program has streams of its own, copies of its own
   that cross the same link, and waits of its host; and the shim starts a copy as soon as its memory
   is free.  So some steps are unrolled into what the program and the shim do in them, from the
   words that the shim is told; the simulator then times these works. */
#pragma once

#include "executor/watch/steps.h"
#include "trace/device.h"

typedef struct unroll_question {
  const steps *steps;
  const steps_map *map;
  const bytes *words; /* by answer_text, of the step's plan */
  const device *device;
  bool verifies;  /* tensors that are made again, by digests */
  int32_t checks; /* runs of pages that can leave without a copy, by their digests */
} unroll_question;

bool unroll_step_ns (const unroll_question *q, arena *a, int64_t *step_ns, error *err) MUST_CHECK;
