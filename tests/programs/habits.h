/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What programs of other habits share: tensors that last, and a step of a chain of others. */
#pragma once

#include "tests/programs/gpu.h"

enum { N = 32768, TENSORS = 12 }; /* floats; 128 KiB */

typedef struct habits {
  gpu g;
  CUdeviceptr kept[TENSORS], loss;
  uint64_t random;
} habits;

#define HABIT(name) void habit_##name (habits *h);
#include "tests/programs/habits.def"
#undef HABIT

uint64_t habits_draw (habits *h);
/* Up a chain of `length` tensors and down again, so that the first are used last. */
void habits_chain (habits *h, int length, long floats, CUstream s);
void habits_say (habits *h, int step, CUstream s);
void habits_let_go (gpu *g, CUdeviceptr *at); /* once */
