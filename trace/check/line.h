/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A line of places (granules, host bytes), of which each remembers who took it last. */
#ifndef FERRY_TRACE_CHECK_LINE_H
#define FERRY_TRACE_CHECK_LINE_H

#include "base/arena.h"

typedef struct line line;

/* Told who held a piece of what is being taken; false stops. */
typedef bool line_met (void *context, int32_t former);

/* bounds: every first and end that will be taken, in any order; they are sorted and kept. */
line *line_new (arena *a, int64_t *bounds, int64_t count, error *err) MUST_CHECK;
bool line_take (line *l, int64_t first, int64_t end, int32_t who, line_met *met,
                void *context) MUST_CHECK;

#endif
