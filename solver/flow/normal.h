/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A D A', where A are the rows of a linear program, each with a slack of its own, and D is
   diagonal. */
#pragma once

#include "solver/flow/ilp.h"
#include "solver/flow/factor.h"

typedef struct normal {
  const ilp_problem *p;
  factor *f;
  double *numbers;
  int64_t n_pairs; /* of entries in one column */
  int64_t *place;  /* each pair's product belongs there */
  double *product;
  const double *d; /* that it was computed with */
  double *left, *across;
} normal;

/* *made: false where columns are so full that this is no way to solve the program. */
bool normal_new (const ilp_problem *p, arena *a, normal *n, bool *made, error *err) MUST_CHECK;
/* d: of the columns, and behind them of each row's slack. */
void normal_compute (normal *n, const double *d);
/* x: A D A' x = what stands there. */
void normal_solve (normal *n, double *x);
void normal_solve_well (normal *n, double *x); /* twice the time */

/* to += A x, without slacks; to += A' y */
void rows_add (const ilp_problem *p, const double *x, double *to);
void columns_add (const ilp_problem *p, const double *y, double *to);
