/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last planned step as it was seen: its ops, those that ran again and ferry's copies, each with
   its times, for a picture.  Only where the launcher asks for it: ferry's work then has two events
   more. */
#pragma once

#include "executor/shim/state/shim.h"

/* A copy of a tensor's bytes, or an op again. */
typedef struct last_work {
  int32_t lane; /* a stream of the program's; 0, 1: copies out, in */
  int64_t bytes, tensor;
  const char *again; /* the op's name; NULL: a copy */
} last_work;

/* Around the calls that queue it. */
void last_begins (shim *s, const last_work *what, CUstream stream);
void last_ends (shim *s);
void last_step_ended (shim *s, int32_t n_beats);
/* Everything is over. Lines of text: stream, start and length in nanoseconds, bytes, name; streams
   0 and 1 are ferry's copies out and in. */
void last_write (shim *s);
