/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only door to GLPK: a linear or integer program as arrays, solved under limits.  GLPK aborts
   the process when it runs out of memory or finds itself in the wrong; here that becomes an error.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/log.h"

typedef struct ilp_problem {
  int32_t n_rows, n_columns;
  const double *row_low, *row_high; /* -HUGE_VAL, HUGE_VAL: none */
  const double *low, *high, *cost;
  const int64_t *column_start; /* n_columns + 1 */
  const int32_t *entry_row;
  const double *entry_coef;
  const bool *whole; /* integer columns; NULL: none */
} ilp_problem;

typedef enum ilp_method { ILP_INTERIOR, ILP_SIMPLEX, ILP_INTEGER } ilp_method;

typedef enum ilp_status {
  ILP_OPTIMAL,
  ILP_FEASIBLE, /* integer form: an answer, not proved best; a limit was met */
  ILP_INFEASIBLE,
  ILP_UNBOUNDED,
  ILP_FAILED,  /* numerical trouble or a limit; x and y are the last ones seen, or zero */
  ILP_STOPPED, /* by the caller, before there was an answer; x and y are zero */
  ILP_STATUSES
} ilp_status;

const char *ilp_status_name (ilp_status s);

typedef struct ilp_options {
  ilp_method method;
  int32_t limit_ms;    /* wall clock; 0: none. The interior point method knows no such limit. */
  int64_t limit_ticks; /* pivots of the simplex; 0: none */
  int64_t limit_nodes; /* of the integer form; 0: none */
  double gap;          /* of the integer form at which to stop, relative */
  int64_t limit_bytes; /* of GLPK's memory; 0: none */
  const logger *log;   /* GLPK's own lines (detail), incumbents and bounds (progress) */
  bool (*stop) (void *context); /* asked at every line that GLPK has to say: every iteration of the
                                   interior point method, some times a second else; NULL: never */
  void *stop_context;
} ilp_options;

typedef struct ilp_result {
  ilp_status status;
  double value;
  double bound; /* integer form: no answer is below it, as far as a float solver can say */
  double *x;    /* n_columns */
  double *y;    /* n_rows: the duals; not of the integer form */
  int64_t ticks, nodes;
  int64_t work; /* work done, in ticks of about 1.7 us; nothing of it is from a clock */
} ilp_result;

/* The program by rows: the columns of row i are (*columns)[(*start)[i]] up to those of the next. */
bool ilp_rows (const ilp_problem *p, arena *a, int64_t **start, int32_t **columns,
               error *err) MUST_CHECK;

/* False only where nothing can be said at all: memory, or GLPK's abort. */
bool ilp_solve (const ilp_problem *p, const ilp_options *o, arena *a, ilp_result *out,
                error *err) MUST_CHECK;
