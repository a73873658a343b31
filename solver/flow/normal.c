/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/normal.h"

#include <string.h>

static const int64_t most_pairs = (int64_t)1 << 26;

static int64_t pairs_of (const ilp_problem *p) {
  int64_t sum = 0;
  for (int32_t c = 0; c < p->n_columns; c++) {
    int64_t entries = p->column_start[c + 1] - p->column_start[c];
    sum += entries * (entries + 1) / 2;
  }
  return sum;
}

static bool meet (const ilp_problem *p, arena *a, meetings *g, error *err) {
  int64_t *start, *at = NEW (a, (int64_t)p->n_rows + 1, int64_t, err), capacity = 0, n = 0;
  int32_t *columns, *next = NULL, *mark = NEW (a, p->n_rows, int32_t, err);
  if (at == NULL || mark == NULL || !ilp_rows (p, a, &start, &columns, err))
    return false;
  for (int32_t i = 0; i < p->n_rows; i++) {
    mark[i] = i + 1;
    for (int64_t e = start[i]; e < start[i + 1]; e++) {
      int64_t first = p->column_start[columns[e]], end = p->column_start[columns[e] + 1];
      next = arena_grow (a, next, &capacity, n + end - first, sizeof *next, err);
      if (next == NULL)
        return false;
      for (int64_t k = first; k < end; k++)
        if (mark[p->entry_row[k]] != i + 1) {
          mark[p->entry_row[k]] = i + 1;
          next[n++] = p->entry_row[k];
        }
    }
    at[i + 1] = n;
  }
  *g = (meetings){ p->n_rows, at, next };
  return true;
}

static void find_places (normal *n) {
  const ilp_problem *p = n->p;
  int64_t k = 0;
  for (int32_t c = 0; c < p->n_columns; c++)
    for (int64_t e = p->column_start[c]; e < p->column_start[c + 1]; e++)
      for (int64_t f = e; f < p->column_start[c + 1]; f++, k++) {
        n->place[k] = factor_place (n->f, p->entry_row[e], p->entry_row[f]);
        n->product[k] = p->entry_coef[e] * p->entry_coef[f];
      }
}

bool normal_new (const ilp_problem *p, arena *a, normal *n, bool *made, error *err) {
  *n = (normal){ .p = p, .n_pairs = pairs_of (p) };
  *made = n->n_pairs <= most_pairs;
  if (!*made)
    return true;
  meetings g;
  arena *scratch = arena_made (err);
  if (scratch != NULL && meet (p, scratch, &g, err))
    n->f = factor_new (&g, a, err);
  arena_free (scratch);
  if (n->f == NULL)
    return false;
  n->numbers = NEW (a, factor_places (n->f), double, err);
  n->place = NEW (a, n->n_pairs, int64_t, err);
  n->product = NEW (a, n->n_pairs, double, err);
  n->left = NEW (a, p->n_rows, double, err);
  n->across = NEW (a, p->n_columns, double, err);
  if (!n->numbers || !n->place || !n->product || !n->left || !n->across)
    return false;
  find_places (n);
  return true;
}

void normal_compute (normal *n, const double *d) {
  const ilp_problem *p = n->p;
  int64_t k = 0;
  n->d = d;
  memset (n->numbers, 0, (size_t)factor_places (n->f) * sizeof *n->numbers);
  for (int32_t c = 0; c < p->n_columns; c++) {
    int64_t entries = p->column_start[c + 1] - p->column_start[c];
    for (int64_t end = k + entries * (entries + 1) / 2; k < end; k++)
      n->numbers[n->place[k]] += d[c] * n->product[k];
  }
  for (int32_t i = 0; i < p->n_rows; i++)
    n->numbers[factor_place (n->f, i, i)] += d[p->n_columns + i];
  factor_compute (n->f, n->numbers);
}

void rows_add (const ilp_problem *p, const double *x, double *to) {
  for (int32_t c = 0; c < p->n_columns; c++)
    if (x[c] != 0)
      for (int64_t e = p->column_start[c]; e < p->column_start[c + 1]; e++)
        to[p->entry_row[e]] += x[c] * p->entry_coef[e];
}

void columns_add (const ilp_problem *p, const double *y, double *to) {
  for (int32_t c = 0; c < p->n_columns; c++) {
    double sum = 0;
    for (int64_t e = p->column_start[c]; e < p->column_start[c + 1]; e++)
      sum += y[p->entry_row[e]] * p->entry_coef[e];
    to[c] += sum;
  }
}

void normal_solve (normal *n, double *x) {
  factor_solve (n->f, x);
}

/* Once more for what the first answer leaves: the factor is of numbers that are far apart. */
void normal_solve_well (normal *n, double *x) {
  const ilp_problem *p = n->p;
  size_t rows = (size_t)p->n_rows;
  double *left = n->left, *across = n->across;
  memcpy (left, x, rows * sizeof *left);
  normal_solve (n, x);
  memset (across, 0, (size_t)p->n_columns * sizeof *across);
  columns_add (p, x, across);
  for (int32_t c = 0; c < p->n_columns; c++)
    across[c] *= -n->d[c];
  for (int32_t i = 0; i < p->n_rows; i++)
    left[i] -= n->d[p->n_columns + i] * x[i];
  rows_add (p, across, left);
  normal_solve (n, left);
  for (size_t i = 0; i < rows; i++)
    x[i] += left[i];
}
