/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the player of traces (player.c) and the module with its kernels (player_kernels.c) share:
   one process has both, so the kernels find the sizes and the directions here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What may keep a kernel from being launched again. */
typedef enum impurity {
  PURE,
  IMPURE_ACCUMULATE, /* adds to the first tensor that it reads */
  IMPURE_STATISTICS, /* adds to a small tensor that lasts, which nothing else reads */
  IMPURE_VALUE,      /* draws a number that is a parameter of this launch */
  IMPURE_COUNTER,    /* draws by a counter in memory, which it raises */
  IMPURE_ORDER,      /* the first launch in a step says one thing, each more of them another */
  IMPURE_SCRATCH,    /* uses scratch memory that many share; what it finds there is of no matter */
  IMPURE_TABLE,      /* finds what it reads by a table of addresses in memory */
  IMPURE_HABIT,      /* from a certain step on it accumulates */
  IMPURE_BEYOND,     /* adds to the counter, which it finds by an address in memory */
  IMPURITIES
} impurity;

typedef struct played_touch {
  int32_t tensor;
  int64_t words;
  bool reads, writes;
} played_touch;

typedef struct played {
  const char *name; /* of the kernel */
  int64_t ns;
  int32_t n_touches;
  played_touch *touches;
  impurity how;
} played;

enum { EXTRA_WORDS = 1024 }; /* of each tensor that an impurity needs */

typedef struct player_table {
  const played *ops;
  int32_t n_ops, n_steps, habit_step;
  int64_t stride;     /* words: one in so many is read and written */
  uint64_t *seen;     /* of each op of each step: a hash of what its first launch read */
  int32_t *launches;  /* likewise: how many there were */
  int32_t relaunched; /* so many launches were not the first */
  /* For a driver that is slow with the other thread's copy (tests/run_guards.sh). */
  int64_t behind; /* copies within the device of the first thread's, meanwhile */
  bool entered;   /* the other thread is in its copy, or behind it */
} player_table;

extern __attribute__ ((visibility ("default"))) player_table player; /* the program has it */

/* A launch's parameters; behind them an address for each touch, and one for the impurity. */
typedef struct player_head {
  int64_t op, step, drawn;
} player_head;
