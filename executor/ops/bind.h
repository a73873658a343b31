/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which tensors of a rewritten trace are the pieces of which operand of an op: what its lists of
   reads and writes and its origin say, taken apart once. */
#pragma once

#include "executor/ops/ops.h"
#include "trace/rewrite/rewrite.h"

typedef struct ops_binding {
  compute c;
  int64_t first_item, end_item;
  bool copy;
  int32_t n_operands;
  int32_t *offset;   /* n_operands + 1: where an operand's tensors begin */
  int32_t *tensors;  /* of the rewritten trace, in the order of their items */
  ops_piece *pieces; /* one a tensor; their data is set by ops_bound */
  ops_operand *operands;
} ops_binding;

/* An op that does not say what it calculates, or whose tensors do not fit that, is an error. */
bool ops_bind (const rewritten *r, int32_t op, arena *a, ops_binding *out, error *err) MUST_CHECK;

/* The call, with tensor i at data[i]; good as long as the binding and until its next use. */
ops_call ops_bound (const ops_binding *b, void *const *data, int64_t step);
/* The same where the pieces know their data already. */
ops_call ops_bound_there (const ops_binding *b, int64_t step);
/* The amount that a finished call adds to the step's loss: 0 for all but the losses' own, and
   for copies. */
double ops_loss (const ops_call *call);
