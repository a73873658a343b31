/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One op of a zoo trace, calculated on the CPU in fp32.  Which function does which kind is the
   table of trace/compute.def; executor/ops/arithmetic.md says in which order sums are made. */
#pragma once

#include "trace/compute.h"

/* Items of the batch that lie side by side; a whole operand is one piece of one item. */
typedef struct ops_piece {
  void *data;
  int64_t items;
} ops_piece;

/* The pieces in the order of their items; none: the operand is absent, or a copy leaves it out. */
typedef struct ops_operand {
  const ops_piece *pieces;
  int32_t count;
} ops_operand;

/* The work: items [first_item, end_item) of the batch.  An operand that is written whole
   is written by the call with item 0, and the other calls add to it.  Random numbers and Adam's
   correction know the step by its number, counted from 0. */
typedef struct ops_call {
  const compute *c;
  int64_t first_item, end_item;
  int64_t step;
  bool copy; /* a recomputed copy: operands that are SIDE are absent */
  const ops_operand *operands;
  int32_t n_operands; /* those of compute_operands, absent ones too */
} ops_call;

typedef struct ops ops; /* holds what the functions need to work in */

ops *ops_new (error *err) MUST_CHECK;
void ops_free (ops *o); /* NULL is allowed */
bool ops_run (ops *o, const ops_call *call, error *err) MUST_CHECK;
