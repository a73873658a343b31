/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last planned step as it was seen: its ops and ferry's copies, each with its times, for a
   picture.  Only where the launcher asks for it: a copy then has two events more. */
#ifndef FERRY_EXECUTOR_SHIM_LAST_H
#define FERRY_EXECUTOR_SHIM_LAST_H

#include "executor/shim/shim.h"

/* Around the call that makes a copy. */
void last_copy_begins (shim *s, bool in, int64_t bytes, int64_t tensor);
void last_copy_ends (shim *s);
void last_step_ended (shim *s, int32_t n_beats);
/* Everything is over. Lines of text: stream, start and length in nanoseconds, bytes, name; streams
   0 and 1 are ferry's copies out and in. */
void last_write (shim *s);

#endif
