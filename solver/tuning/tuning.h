/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every number that steers the search, with its range and its reason, in one table; and whether
   each strategy is on.  For developers and ablations: nobody who plans needs to set any. */
#pragma once

#include "base/error.h"
#include "solver/tuning/stats.h"

typedef enum tuning_id {
#define TUNE(name, value, least, most, why) TUNE_##name,
#define LIST(name, count, least, most, why, ...) \
  TUNE_##name, TUNE_##name##_last = TUNE_##name + (count)-1,
#include "solver/tuning/tuning.def"
  TUNINGS
} tuning_id;

typedef struct tuning {
  int64_t at[TUNINGS];
  bool off[STRATEGIES];
} tuning;

typedef struct tuning_row {
  const char *name, *why;
  int32_t first, count; /* in tuning.at */
  int64_t least, most;
} tuning_row;
/* A row without a name ends it. */
extern const tuning_row tuning_rows[];

/* The values as shipped. */
extern const tuning tuning_shipped;

/* t NULL: as shipped. */
static inline int64_t tuned (const tuning *t, tuning_id id) {
  return (t ? t : &tuning_shipped)->at[id];
}
static inline bool tuned_on (const tuning *t, strategy_id id) {
  return !t || !t->off[id];
}

/* "NAME=VALUE,..."; a strategy's name takes 0 or 1, a list's NAME.K one number of it. */
bool tuning_read (tuning *t, const char *text, error *err) MUST_CHECK;
