/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The worth of memory: the step time and its bound at several budgets, and the smallest budget that
   keeps a slowdown.  A plan for less memory is a candidate for more, and a bound for more memory
   holds for less, so both lines of a curve fall. */
#pragma once

#include "solver/options/allowed.h"
#include "solver/solve.h"

typedef struct curve_options {
  const device *device;
  int64_t host_bytes;
  int64_t limit_ticks;                /* of each point's search; 0: that of solve */
  int64_t gap_ppm;                    /* of each point, as in solve */
  int64_t reserve_ppm, reserve_bytes; /* of every budget, kept free: a part, and bytes */
  uint64_t seed;
  search_level level; /* of the default of limit_ticks */
  allowed allowed;
  bool same_places; /* as in solve */
  places_mode placement;
  const logger *log;
  bool (*stop) (void *context); /* as solve's: points that were not reached are left out */
  void *stop_context;
  const tuning *tuning; /* NULL: as shipped */
  int32_t threads;      /* that may plan side by side, to the same curve; 0: one */
  /* After each point; step_ns: the best that is known there, or -1. Or NULL. */
  void (*progress) (void *context, int32_t done, int32_t all, int64_t step_ns);
  void *context;
} curve_options;

/* The part of a budget that a plan may use; and the budget of which that part is left. */
int64_t curve_net (const curve_options *o, int64_t budget_bytes);
int64_t curve_gross (const curve_options *o, int64_t bytes);

typedef struct curve_point {
  int64_t budget_bytes;
  int64_t lower_bound_ns; /* of every plan within this budget; -1: none fits, that is proved */
  const plan *plan;       /* the best that is known, maybe of a smaller budget; NULL: none found */
  int32_t plan_of;        /* the point whose plan it is; -1: none */
  int64_t ticks;          /* that its search took, where it found a plan */
  bool searched; /* else the plan for less memory was good enough, and nothing was solved */
  bool asked;    /* false: somebody wanted to stop before */
} curve_point;

typedef struct curve {
  int64_t floor_bytes, peak_bytes; /* curve_floor, and what the step needs, with the reserve */
  int64_t baseline_ns;             /* everything on the device */
  curve_point *points;             /* budgets rise */
  int32_t count;
  int64_t ticks;    /* of all points */
  int32_t programs; /* solved for all points together; 0: each point has its own */
  int32_t knee;     /* the point furthest below the straight line between the ends; -1: none */
} curve;

/* Below this no plan fits, with the reserve. Where ops may run in parts, plans reach below the
   floor of whole ops: as far down as one part of many. */
bool curve_floor (const trace *t, const curve_options *o, arena *scratch, int64_t *bytes,
                  error *err) MUST_CHECK;

/* From where budgets are worth a look, the floor of ordinary plans, and what the step needs
   (solver/fleet/needs.h); both without a reserve. */
bool curve_range (const trace *t, const device *dev, arena *a, int64_t *floor_bytes,
                  int64_t *peak_bytes, error *err) MUST_CHECK;

/* `count` >= 2 budgets from the floor to the peak, evenly, in whole granules; fewer where there are
   not as many. */
bool curve_even (int64_t floor_bytes, int64_t peak_bytes, int64_t granule_bytes, int32_t count,
                 arena *a, int64_t **budgets, int32_t *n, error *err) MUST_CHECK;

/* Budgets in any order, sorted and each one once in the answer. Where sections or recompute are
   allowed, the bound is one that holds for every cut and all drops: that of solve where sections
   are, else a weak one. Where orders are, it is that of solve, of plans in the order of its plan;
   under a plan for less memory, compute. */
bool curve_of (const trace *t, const curve_options *o, const int64_t *budgets, int32_t count,
               arena *a, curve *out, error *err) MUST_CHECK;

/* A point further from its bound than this is marked, in millionths. */
enum { CURVE_WIDE_PPM = 20000 };
bool curve_is_wide (const curve_point *p);
/* One point as JSON. */
void curve_point_write (json_writer *w, const curve *c, int32_t i);

/* The step time that the next GiB beyond point i saves, read off the next point; 0: none. */
int64_t curve_price_ns (const curve *c, int32_t i);

/* The bound alone at one budget; -1 where no plan fits. */
bool curve_bound (const trace *t, const curve_options *o, int64_t budget_bytes,
                  int64_t *lower_bound_ns, error *err) MUST_CHECK;

/* One budget by itself: its plan (NULL: none found), and its bound. A plan that takes no longer
   than enough_ns ends the search, and one that takes longer is of no use; 0: any is, and only one
   near the bound ends it. */
bool curve_solve (const trace *t, const curve_options *o, int64_t budget_bytes, int64_t enough_ns,
                  arena *a, const plan **found, int64_t *lower_bound_ns, error *err) MUST_CHECK;

/* The point of one budget: its plan, its bound, what its search took. */
bool curve_plan (const trace *t, const curve_options *o, int64_t enough_ns, arena *a,
                 curve_point *at, error *err) MUST_CHECK;

typedef struct min_memory {
  int64_t floor_bytes, peak_bytes, baseline_ns, most_ns; /* bytes with the reserve */
  int64_t none_below_bytes;                              /* no plan below this is as fast: proved */
  int64_t plan_bytes;                                    /* in which one is, the reserve included */
  const plan *plan;                                      /* NULL: none found up to the peak */
  int32_t bounds, solves;                                /* how many were asked */
} min_memory;

/* The smallest budget whose step is at most (1 + slowdown) times the one without swaps, by
   bisection on the bound, and then with plans from there upward; down to `fine_bytes` (0: a 64th of
   the range). */
bool min_memory_of (const trace *t, const curve_options *o, int64_t slowdown_ppm,
                    int64_t fine_bytes, arena *a, min_memory *out, error *err) MUST_CHECK;
