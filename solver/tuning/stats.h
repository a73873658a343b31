/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The worth of each strategy of the search: counted where the stages run them, shown by `ferry
   solve -v`. */
#pragma once

#include <stdint.h>

typedef enum strategy_id {
#define STRATEGY(stage, name, ...) STRATEGY_##stage##_##name,
#include "solver/tuning/strategies.def"
  STRATEGIES
} strategy_id;

typedef struct strategy_row {
  const char *stage, *name, *says;
} strategy_row;
extern const strategy_row strategy_rows[STRATEGIES];

typedef struct strategy_stats {
#define STAT(name, says) int64_t name;
#include "solver/tuning/stats.def"
} strategy_stats;

/* All zero: nothing was done yet. */
typedef struct search_stats {
  strategy_stats of[STRATEGIES];
} search_stats;

/* The state of a search: its best step (INT64_MAX: none), the number tried, the ticks spent. */
typedef struct search_place {
  int64_t step_ns, tried, spent;
} search_place;

/* The strategy brought the search from one place to the other; s may be NULL. */
void stats_add (search_stats *s, strategy_id id, search_place from, search_place to);
/* All that `of` counted; s may be NULL. */
void stats_join (search_stats *s, const search_stats *of);
