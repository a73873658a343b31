/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The users of each tensor: one row of uses a tensor, in order of ops.  `born_before` is a write
   and `dies_after` a use by that op, as docs/formats.md defines it for units and moves; of several
   streams also the last op that may begin before a user has ended. */
#pragma once

#include "trace/trace.h"

typedef struct use {
  int32_t op;
  int32_t version; /* writes by this op and those before it; a birth is none */
  bool reads, writes;
} use;

typedef struct uses {
  int32_t *offset; /* n_tensors + 1 */
  use *at;
} uses;

bool uses_of (const trace *t, arena *a, uses *out, error *err) MUST_CHECK;

static inline int32_t uses_count (const uses *u, int32_t tensor) {
  return u->offset[tensor + 1] - u->offset[tensor];
}

/* The op of use i of the tensor writes it, and is not only where it is born. */
static inline bool uses_writes (const uses *u, int32_t tensor, int32_t i) {
  return u->at[i].version > (i > u->offset[tensor] ? u->at[i - 1].version : 0);
}

/* The first and the last op that uses the tensor; NO_OP where none does. */
int32_t uses_first (const uses *u, int32_t tensor);
int32_t uses_last (const uses *u, int32_t tensor);
/* The end of its uses by ops before this one: an index like those of `offset`. */
int32_t uses_end_before (const uses *u, int32_t tensor, int32_t op);
/* How often ops before this one write the tensor. */
int32_t uses_version (const uses *u, int32_t tensor, int32_t op);
