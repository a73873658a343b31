/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the functions of the op kinds: the stretch of items that they are given, room to work
   in, and random numbers by their place. */
#pragma once

#include <math.h>

#include "executor/ops/blas.h"
#include "executor/ops/ops.h"

/* A stretch of items that lie side by side in every operand; of kinds that need the whole batch,
   all items, which then do not: they ask ops_item.  Whole operands that are to be written afresh
   are 0 before the first stretch, so that every stretch adds to them. */
typedef struct work {
  const compute *c;
  const ops_call *call;
  ops *o;
  const blas *blas;
  error *err; /* a function tells here that it failed */
  int64_t first_item, items;
  int64_t step;
  void *at[COMPUTE_MOST_OPERANDS];         /* the stretch's first item; NULL: absent */
  int64_t elements[COMPUTE_MOST_OPERANDS]; /* of an item, or of the whole */
} work;

#define COMPUTE(kind, ...) void op_##kind (const work *k);
#include "trace/compute.def"

/* Item 0 is that with number k->first_item. */
float *ops_item (const work *k, int operand, int64_t item);
/* Room for `count` floats, good until the next call; NULL when there is no memory for it. */
float *ops_scratch (const work *k, int64_t count) MUST_CHECK;
/* False where a token or class is not in [0, limit). */
bool ops_in_range (const work *k, const int32_t *index, int64_t count, int64_t limit) MUST_CHECK;

/* Number n of the stream (seed, step). */
uint64_t ops_random (int64_t seed, int64_t step, int64_t n);
/* Does dropout keep the element that draws this number? */
bool ops_keeps (uint64_t random, int64_t rate_ppm);

static inline float ops_sigmoid (float x) {
  return 1 / (1 + expf (-x));
}

/* Within 2 units of the last place of 1, in a third of tanhf's time. */
static inline float ops_tanh (float x) {
  float square = x * x, e;
  if (square < 0.01f)
    return x * (1 - square * (1.0f / 3 - square * (2.0f / 15 - square * (17.0f / 315))));
  e = expf (-2 * fabsf (x));
  return copysignf ((1 - e) / (1 + e), x);
}

static inline float *ops_float (const work *k, int operand) {
  return k->at[operand];
}

/* The last operand of an op in place is absent: the result stands where `other` was. */
static inline float *ops_out (const work *k, int operand, int other) {
  return k->at[operand] != NULL ? k->at[operand] : k->at[other];
}
