/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An op on a table: its operands by name in plain arrays, to be run whole or in parts whose pieces
   lie in blocks of their own, so that a step over the edge of a piece is one over the edge of an
   allocation. */
#pragma once

#include "base/random.h"
#include "executor/ops/ops.h"

enum { BENCH_ARRAYS = 64 };

typedef struct bench_array {
  char name[24];
  int64_t count, bytes; /* of the whole batch */
  operand_type type;
  void *data;
} bench_array;

typedef struct op_bench {
  bench_array arrays[BENCH_ARRAYS];
  int n;
  random_state random;
  double low, high; /* of random values */
  bool grid;        /* random values far from each other and from 0 */
  int64_t limit;    /* of indices */
  ops *ops;
  bool (*run) (ops *o, const ops_call *call, error *err); /* NULL: ops_run */
} op_bench;

void op_bench_begin (op_bench *b, uint64_t seed);
void op_bench_end (op_bench *b);
/* NULL where there is none. */
bench_array *op_bench_find (op_bench *b, const char *name);
bench_array *op_bench_add (op_bench *b, const char *name, const operand *like);
void op_bench_randomize (op_bench *b, bench_array *a);
/* Two of the same name are x, x1, ... */
void op_bench_name (const operand *o, int n, int i, char name[24]);

/* Adds what the op touches and is not there: random where it is read, NaN where it is written. */
void op_bench_supply (op_bench *b, const compute *c);
/* Parts as a plan cuts them; each tensor is cut once more at item `cut` if that is inside. */
void op_bench_run (op_bench *b, const compute *c, int64_t parts, int64_t cut, int64_t step);

/* All arrays as they are now. */
typedef struct op_bench_saved {
  float *data[BENCH_ARRAYS];
  int n;
} op_bench_saved;

op_bench_saved op_bench_save (const op_bench *b);
void op_bench_restore (op_bench *b, const op_bench_saved *s);
void op_bench_forget (op_bench_saved *s);
/* Within `tolerance` of the largest number expected; NaN, which nobody has written, where NaN is.
 */
bool op_bench_alike (const bench_array *a, const float *expected, double tolerance);
