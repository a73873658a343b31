/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entries of `traceEvents` in the format of Chrome's trace viewer, for all that show a step there.
 */
#pragma once

#include "base/json.h"

/* The format's unit is the microsecond; nanoseconds stay exact behind the point. */
void chrome_event_us (json_writer *w, const char *key, int64_t ns);
void chrome_event_lane (json_writer *w, int64_t lane, const char *name);
/* With one number beside it, or none: `arg` is NULL. */
void chrome_event_span (json_writer *w, int64_t lane, const char *name, int64_t start_ns,
                        int64_t length_ns, const char *arg, int64_t value);
