/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From one plan of a job to another between two of its steps: which bytes must leave the card, and
   which must come. */
#pragma once

#include "trace/plan.h"

typedef struct transition {
  int64_t out_bytes, in_bytes;
  int64_t out_ns, in_ns; /* with the link to itself */
} transition;

/* from NULL: the job begins, with all that it keeps on the host; to NULL: it ends, and what it has
   is nobody's. Between steps only persistent tensors exist, and those parts are away that wrap. */
bool transition_between (const trace *t, const plan *from, const plan *to, arena *scratch,
                         transition *out, error *err) MUST_CHECK;
