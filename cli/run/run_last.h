/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last planned step of a run, as it was seen: each op, and each of ferry's copies. */
#pragma once

#include "cli/run/program.h"

enum { LAST_OUT, LAST_IN, LAST_STREAM, LAST_LANES = 64 };

typedef struct last_span {
  int64_t lane, start_ns, ns, bytes; /* lane: of copies, or a stream of the program's */
  const char *name;
} last_span;

typedef struct last_step {
  last_span *spans;
  int32_t n_spans;
} last_step;

bool last_read (call *c, const program_run *r, last_step *out) MUST_CHECK;
const char *last_lane (call *c, int64_t lane); /* its name; NULL: no memory */
