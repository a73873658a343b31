/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cells that nobody chose: a network of the zoo, a batch that makes 0.5 to 60 GB, a type, an
   optimizer, a device, a budget between 35 and 90 % of the peak, with drops or without, all drawn
   from a seed. */
#pragma once

#include "solver/solve.h"

typedef struct any_cell {
  char name[128]; /* network, batch, type, optimizer, device */
  trace *trace;
  device device; /* with room for the budget */
  int64_t peak_bytes, budget_bytes;
  int percent;
  bool drops;
  bool in_arena;      /* and nowhere else */
  bool same_places;   /* every stay of a part on the same granules */
  search_level level; /* of the search, where no ticks are given */
} any_cell;

typedef struct any_answer {
  bool fits;
  char why[128]; /* where none does; else who found it, and what bounds it */
  int64_t step_ns, bound_ns, ticks;
  double gap, seconds;
  double lost;   /* percent of what it takes, beside the bytes that live then */
  bool in_arena; /* that is how its stays lie */
  search_stats stats;
} any_answer;

/* The index-th cell of a seed; the same on every machine. `devices` is a folder of device files.
   Draws again until the peak is in that range and the ops are at most 3000. */
bool any_draw (uint64_t seed, int index, const char *devices, arena *a, any_cell *out,
               error *err) MUST_CHECK;

/* A transformer of the zoo with bf16 and Adam, batches of 1 to 8, on a card that can give 30 to 80
   % of what the step needs; everything is allowed. */
bool any_draw_tuning (uint64_t seed, int index, const char *devices, arena *a, any_cell *out,
                      error *err) MUST_CHECK;

/* The index-th of bench_solve's cases, which only swap; index below any_fixed_count. */
int any_fixed_count (void);
bool any_fixed (int index, arena *a, any_cell *out, error *err) MUST_CHECK;

/* Solved in at most so many ticks (0: the default), with a tuning or NULL. */
bool any_solve (const any_cell *c, int64_t limit_ticks, const tuning *by, any_answer *out,
                error *err) MUST_CHECK;

/* The value below which so many percent of them lie; sorts them. */
double any_percentile (double *values, int count, int percent);
