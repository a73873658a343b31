/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Offsets in the pinned host arena.  A copy holds its bytes from the op that releases it to the op
   that the last copy in from it is for; the next user may start behind that op. */
#pragma once

#include "base/arena.h"

typedef struct host_span {
  int64_t bytes;
  int32_t from, to; /* ops; to <= from: over the end of the step. from -1: held always */
  int64_t offset;   /* the answer, a multiple of 512 */
} host_span;

/* Returns the size of the arena, -1 on failure. */
int64_t host_pack (host_span *spans, int32_t count, arena *scratch, error *err) MUST_CHECK;
