/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files that read a plan. */
#pragma once

#include "base/table.h"
#include "trace/plan.h"

enum { MOST_INDEX = INT32_MAX - 1 };

typedef struct reading {
  const read_options *options;
  arena *arena;
  error *err;
  plan *plan;
} reading;

/* An object that has none but these keys. */
bool plan_read_known (reading *r, const json *j, const char *const *keys) MUST_CHECK;
/* An int that must be given. */
bool plan_read_int (reading *r, const json *j, const char *key, int64_t low, int64_t high,
                    int64_t *out) MUST_CHECK;
/* A table that may be absent. */
bool plan_read_table (reading *r, const json *at, const char *const *keys, const char *const *lists,
                      table *out) MUST_CHECK;
/* A cell of it; what is absent leaves *out as it is. */
bool plan_read_cell (reading *r, const table *t, const char *key, size_t row, int32_t low,
                     int32_t *out) MUST_CHECK;

bool plan_read_placement (reading *r, const json *root) MUST_CHECK;
