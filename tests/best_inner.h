/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of best_search share: one choice of what moves, and its run. */
#pragma once

#include "tests/best_plan.h"

enum {
  BEST_OPS = 14,
  BEST_UNITS = 12,
  BEST_PARTS = 4, /* of a unit */
  BEST_MOVES = 16,
  BEST_STEPS = 48,
  BEST_STAYS = BEST_OPS + BEST_UNITS * BEST_PARTS + BEST_MOVES,
  BEST_GRANULES = 64
};

/* A part of a tensor. */
typedef struct piece {
  int32_t unit, part, of, granules;
  int64_t bytes;
  unsigned away; /* bit g: it moves in idle time g of its unit */
} piece;

typedef struct idle_time {
  int32_t after, before;
  bool wraps;
} idle_time;

typedef struct mover {
  int32_t piece, after, before, granules;
  int64_t out_ns, in_ns;
  bool wraps, clean;
  int32_t gone_from, gone_to; /* it has to be gone while these ops run, counted from `after` */
  int32_t source; /* the mover whose copy it reads; itself; -1: the host's from the start */
} mover;

typedef struct times {
  int64_t op_start[BEST_STEPS][BEST_OPS], op_end[BEST_STEPS][BEST_OPS];
  int64_t out_end[BEST_STEPS][BEST_MOVES], in_start[BEST_STEPS][BEST_MOVES],
      in_end[BEST_STEPS][BEST_MOVES];
} times;

typedef struct searching {
  const tiny_case *c;
  const trace *t;
  arena *arena;
  error *err;
  best_plan *out;
  int32_t n_ops, n_units, budget;
  int64_t granule_bytes, compute_ns, most_tried;
  bool used[BEST_UNITS][BEST_OPS], written[BEST_UNITS][BEST_OPS];
  int32_t first[BEST_UNITS], last[BEST_UNITS], granules[BEST_UNITS], of[BEST_UNITS];
  idle_time idle[BEST_UNITS][BEST_OPS];
  int32_t n_idle[BEST_UNITS];
  piece pieces[BEST_UNITS * BEST_PARTS];
  int32_t n_pieces;
  mover movers[BEST_MOVES];
  int32_t n_movers;
  int32_t out_order[BEST_MOVES], in_order[BEST_MOVES], n_outs;
  int32_t place[BEST_MOVES]; /* per place in in_order: ops of its step that have their memory before
                                it */
  int32_t begins[BEST_OPS], ends[BEST_OPS]; /* granules */
  int32_t at_first;                         /* held when step 0 begins */
  int32_t load[BEST_OPS]; /* what is there while each op runs, whatever is still to be chosen */
  int64_t least_ns;       /* what this choice of movers needs at least */
  times *seen;
} searching;

/* As early as may be, so many steps: the mean of the later ones. INT64_MAX: it hangs, or takes no
   less than limit_ns. */
int64_t best_run (searching *s, int32_t steps, int64_t limit_ns);

/* Finds gone_from and gone_to by the load. */
void best_windows (searching *s);

/* No order and no trigger makes a step of these movers shorter, where the first copies out and in
   are in the orders chosen so far, and these copies in at their places. */
int64_t best_least_ns (const searching *s, int32_t n_outs, int32_t n_ins);

/* The last run as a plan, if granules can be given out and it costs less than what there is. */
bool best_write (searching *s, int64_t ns) MUST_CHECK;
