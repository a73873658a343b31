/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cholesky's factor, column by column from the left.  Columns of one block are computed together.
 */
#include <math.h>
#include <string.h>

#include "solver/flow/factor_inner.h"

enum { NONE = -1 };
/* A pivot that is less of what stood on the diagonal is rounding, and its row has no say. */
static const double LEAST_PIVOT = 1e-13, BOUNDLESS = 1e64;

int64_t factor_entries (const factor *f) {
  return f->entries;
}

int64_t factor_products (const factor *f) {
  return f->products;
}

int64_t factor_places (const factor *f) {
  return f->given_start[f->n];
}

int64_t factor_place (const factor *f, int32_t i, int32_t j) {
  int32_t a = f->place[i], b = f->place[j], column = a < b ? a : b, row = a < b ? b : a;
  for (int64_t e = f->given_start[column]; e < f->given_start[column + 1]; e++)
    if (f->given_row[e] == row)
      return e;
  return NONE;
}

/* ---- numbers ---- */

/* Two numbers that are calculated at once: compilers do that with loops of unknown length only
   where they are told to. Each comes out as it would alone. */
typedef double pair __attribute__ ((vector_size (2 * sizeof (double))));

static pair pair_at (const double *x) {
  pair p;
  memcpy (&p, x, sizeof p);
  return p;
}

static void put_pair (double *x, pair p) {
  memcpy (x, &p, sizeof p);
}

/* A target loses the sum over k of left[i][k] right[k], columns `high` apart; four at a time, since
   it is read and written each time. */
static void take_columns (int32_t rows, int32_t depth, int64_t high, const double *restrict left,
                          const double *restrict right, double *restrict to) {
  int32_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const double *a = left + k * high, *b = a + high, *c = b + high, *d = c + high;
    double p = right[k * high], q = right[(k + 1) * high], r = right[(k + 2) * high],
           s = right[(k + 3) * high];
    int32_t i = 0;
    for (; i + 2 <= rows; i += 2)
      put_pair (to + i, pair_at (to + i) - (pair_at (a + i) * p + pair_at (b + i) * q +
                                            pair_at (c + i) * r + pair_at (d + i) * s));
    for (; i < rows; i++)
      to[i] -= a[i] * p + b[i] * q + c[i] * r + d[i] * s;
  }
  for (; k < depth; k++) {
    const double *a = left + k * high;
    double p = right[k * high];
    int32_t i = 0;
    for (; i + 2 <= rows; i += 2)
      put_pair (to + i, pair_at (to + i) - pair_at (a + i) * p);
    for (; i < rows; i++)
      to[i] -= a[i] * p;
  }
}

/* The same for two targets, right and the row below it: what is read serves both. */
static void take_columns_twice (int32_t rows, int32_t depth, int64_t high,
                                const double *restrict left, const double *restrict right,
                                double *restrict to, double *restrict to_next) {
  int32_t k = 0;
  for (; k + 2 <= depth; k += 2) {
    const double *a = left + k * high, *b = a + high, *at = right + k * high;
    double p = at[0], q = at[high], p_next = at[1], q_next = at[high + 1];
    int32_t i = 0;
    for (; i + 2 <= rows; i += 2) {
      pair x = pair_at (a + i), y = pair_at (b + i);
      put_pair (to + i, pair_at (to + i) - (x * p + y * q));
      put_pair (to_next + i, pair_at (to_next + i) - (x * p_next + y * q_next));
    }
    for (; i < rows; i++) {
      to[i] -= a[i] * p + b[i] * q;
      to_next[i] -= a[i] * p_next + b[i] * q_next;
    }
  }
  if (k < depth) {
    take_columns (rows, 1, high, left + k * high, right + k * high, to);
    take_columns (rows, 1, high, left + k * high, right + k * high + 1, to_next);
  }
}

static int32_t high_of (const factor *f, int32_t b) {
  return (int32_t)(f->start[b + 1] - f->start[b]);
}

static void link_to (factor *f, int32_t b) {
  if (f->done[b] >= high_of (f, b))
    return;
  int32_t to = f->block[f->row[f->start[b] + f->done[b]]];
  f->next[b] = f->head[to];
  f->head[to] = b;
}

/* Two columns of block b lose their part of the product; the second one's first number is above the
   diagonal, and nobody reads it. together: rows that are side by side in d are so in b. */
typedef struct taking {
  factor *f;
  int32_t b, d, high;
  bool together;
} taking;

/* The column of block b that row j of block d stands for. */
static double *target (const taking *t, int32_t j) {
  const factor *f = t->f;
  int32_t column = f->row[f->start[t->d] + j];
  return f->value + f->at[t->b] + (int64_t)(column - f->first[t->b]) * high_of (f, t->b);
}

static void take_one (const taking *t, int32_t j) {
  factor *f = t->f;
  const int32_t *row = f->row + f->start[t->d], wide = f->first[t->d + 1] - f->first[t->d];
  const double *left = f->value + f->at[t->d] + j;
  double *into = target (t, j);
  if (t->together) {
    take_columns (t->high - j, wide, t->high, left, left, into + f->relative[row[j]]);
    return;
  }
  memset (f->work, 0, (size_t)(t->high - j) * sizeof *f->work);
  take_columns (t->high - j, wide, t->high, left, left, f->work);
  for (int32_t i = j; i < t->high; i++)
    into[f->relative[row[i]]] += f->work[i - j];
}

static void take_two (const taking *t, int32_t j) {
  factor *f = t->f;
  const int32_t *row = f->row + f->start[t->d], wide = f->first[t->d + 1] - f->first[t->d];
  const double *left = f->value + f->at[t->d] + j;
  double *into = target (t, j), *next = target (t, j + 1);
  double *work = f->work, *work_next = f->work + t->high - j;
  if (t->together) {
    int32_t at = f->relative[row[j]];
    take_columns_twice (t->high - j, wide, t->high, left, left, into + at, next + at);
    return;
  }
  memset (work, 0, 2 * (size_t)(t->high - j) * sizeof *work);
  take_columns_twice (t->high - j, wide, t->high, left, left, work, work_next);
  for (int32_t i = j; i < t->high; i++) {
    int32_t at = f->relative[row[i]];
    into[at] += work[i - j];
    next[at] += work_next[i - j];
  }
}

/* Block d takes from block b the product of its rows there with all its rows from there on. */
static void take_product (factor *f, int32_t b, int32_t d) {
  const int32_t *row = f->row + f->start[d];
  int32_t high = high_of (f, d), from = f->done[d], to = from;
  while (to < high && row[to] < f->first[b + 1])
    to++;
  taking t = { f, b, d, high, false };
  t.together = f->relative[row[high - 1]] - f->relative[row[from]] == high - 1 - from;
  int32_t j = from;
  for (; j + 2 <= to; j += 2)
    take_two (&t, j);
  if (j < to)
    take_one (&t, j);
  f->done[d] = to;
  link_to (f, d);
}

static void set_block (factor *f, int32_t b, const double *numbers) {
  int32_t high = high_of (f, b);
  double *value = f->value + f->at[b];
  memset (value, 0, (size_t)(f->at[b + 1] - f->at[b]) * sizeof *value);
  for (int32_t i = 0; i < high; i++)
    f->relative[f->row[f->start[b] + i]] = i;
  for (int32_t k = f->first[b]; k < f->first[b + 1]; k++)
    for (int64_t e = f->given_start[k]; e < f->given_start[k + 1]; e++)
      value[(int64_t)(k - f->first[b]) * high + f->relative[f->given_row[e]]] += numbers[e];
}

static void compute_block (factor *f, int32_t b, const double *numbers) {
  int32_t high = high_of (f, b), wide = f->first[b + 1] - f->first[b];
  double *value = f->value + f->at[b];
  for (int32_t j = 0; j < wide; j++) {
    double *own = value + (int64_t)j * high, given = numbers[f->given_start[f->first[b] + j]];
    take_columns (high - j, j, high, value + j, value + j, own + j);
    own[j] = own[j] > given * LEAST_PIVOT && own[j] > 0 ? sqrt (own[j]) : BOUNDLESS;
    for (int32_t i = j + 1; i < high; i++)
      own[i] /= own[j];
  }
}

void factor_compute (factor *f, const double *numbers) {
  for (int32_t b = 0; b < f->n_blocks; b++)
    f->head[b] = NONE;
  for (int32_t b = 0; b < f->n_blocks; b++) {
    set_block (f, b, numbers);
    for (int32_t d = f->head[b], next; d != NONE; d = next) {
      next = f->next[d];
      take_product (f, b, d);
    }
    compute_block (f, b, numbers);
    f->done[b] = f->first[b + 1] - f->first[b];
    link_to (f, b);
  }
}

/* x of column j is known to those before it; all below it lose its part. */
static void go_down (const double *own, const int32_t *row, int32_t j, int32_t high, double *w) {
  double x = w[row[j]] /= own[j];
  for (int32_t i = j + 1; i < high; i++)
    w[row[i]] -= x * own[i];
}

static void go_up (const double *own, const int32_t *row, int32_t j, int32_t high, double *w) {
  double x = w[row[j]];
  for (int32_t i = j + 1; i < high; i++)
    x -= w[row[i]] * own[i];
  w[row[j]] = x / own[j];
}

/* Column j and the one after it, which has the same rows: each is looked up once for both. */
static void go_down_two (const double *own, const int32_t *row, int32_t j, int32_t high,
                         double *w) {
  const double *next = own + high;
  double x = w[row[j]] /= own[j];
  double y = w[row[j + 1]] = (w[row[j + 1]] - x * own[j + 1]) / next[j + 1];
  for (int32_t i = j + 2; i < high; i++)
    w[row[i]] -= x * own[i] + y * next[i];
}

static void go_up_two (const double *own, const int32_t *row, int32_t j, int32_t high, double *w) {
  const double *next = own + high;
  double x = w[row[j]], y = w[row[j + 1]];
  for (int32_t i = j + 2; i < high; i++) {
    x -= w[row[i]] * own[i];
    y -= w[row[i]] * next[i];
  }
  w[row[j + 1]] = y /= next[j + 1];
  w[row[j]] = (x - y * own[j + 1]) / own[j];
}

static void solve_down (const factor *f, int32_t b, double *w) {
  int32_t high = high_of (f, b), wide = f->first[b + 1] - f->first[b], j = 0;
  const double *own = f->value + f->at[b];
  const int32_t *row = f->row + f->start[b];
  for (; j + 2 <= wide; j += 2, own += 2 * (int64_t)high)
    go_down_two (own, row, j, high, w);
  if (j < wide)
    go_down (own, row, j, high, w);
}

static void solve_up (const factor *f, int32_t b, double *w) {
  int32_t high = high_of (f, b), wide = f->first[b + 1] - f->first[b];
  const double *own = f->value + f->at[b];
  const int32_t *row = f->row + f->start[b];
  if (wide % 2)
    go_up (own + (wide - 1) * (int64_t)high, row, wide - 1, high, w);
  for (int32_t j = wide / 2 * 2 - 2; j >= 0; j -= 2)
    go_up_two (own + j * (int64_t)high, row, j, high, w);
}

void factor_solve (factor *f, double *x) {
  double *w = f->dense;
  for (int32_t k = 0; k < f->n; k++)
    w[k] = x[f->order[k]];
  for (int32_t b = 0; b < f->n_blocks; b++)
    solve_down (f, b, w);
  for (int32_t b = f->n_blocks - 1; b >= 0; b--)
    solve_up (f, b, w);
  for (int32_t k = 0; k < f->n; k++)
    x[f->order[k]] = w[k];
}
