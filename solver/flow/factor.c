/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cholesky's factor, column by column from the left.  Columns of the same pattern are computed as
   one block. */
#include "solver/flow/factor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { NONE = -1, WIDEST = 128 };
/* A pivot that is less of what stood on the diagonal is rounding, and its row has no say. */
static const double LEAST_PIVOT = 1e-13, BOUNDLESS = 1e64;

/* Columns that stand side by side and have the same rows below them are a block: first[b] up to
   first[b + 1].  Its rows are its own columns and those below; its numbers stand column after
   column, above the diagonal too. */
struct factor {
  int32_t n, n_blocks;
  int32_t *order, *place; /* the row that comes as the k-th; where a row comes */
  int32_t *parent;
  int32_t *first, *block; /* of a column */
  int64_t *start, *at;    /* of a block: its rows, its numbers */
  int32_t *row;
  double *value;
  int64_t *given_start; /* of a column in the matrix: its entries, the diagonal first */
  int32_t *given_row;
  double *dense, *work;
  int32_t *head, *next; /* blocks whose next row is in a block */
  int32_t *done;        /* how many rows of a block are over */
  int32_t *relative;
  int64_t entries, products;
};

static void find_parents (const meetings *g, factor *f, int32_t *root) {
  for (int32_t k = 0; k < f->n; k++) {
    f->parent[k] = root[k] = NONE;
    int32_t row = f->order[k];
    for (int64_t e = g->start[row]; e < g->start[row + 1]; e++)
      for (int32_t i = f->place[g->next[e]], up; i != NONE && i < k; i = up) {
        up = root[i];
        root[i] = k;
        if (up == NONE)
          f->parent[i] = k;
      }
  }
}

/* Children before their parents, each subtree in a row: then equal columns stand side by side. */
static bool put_in_postorder (factor *f, arena *a, error *err) {
  int32_t n = f->n;
  int32_t *child = NEW (a, n + 1, int32_t, err), *sibling = NEW (a, n + 1, int32_t, err),
          *stack = NEW (a, n + 1, int32_t, err), *order = NEW (a, n + 1, int32_t, err);
  if (!child || !sibling || !stack || !order)
    return false;
  for (int32_t k = 0; k <= n; k++)
    child[k] = NONE;
  for (int32_t k = n - 1; k >= 0; k--) {
    int32_t p = f->parent[k] == NONE ? n : f->parent[k];
    sibling[k] = child[p];
    child[p] = k;
  }
  int32_t depth = 0, told = 0;
  for (int32_t r = child[n]; r != NONE; r = sibling[r]) {
    stack[depth++] = r;
    while (depth > 0) {
      int32_t k = stack[depth - 1];
      if (child[k] != NONE) {
        stack[depth++] = child[k];
        child[k] = sibling[child[k]];
        continue;
      }
      order[told++] = k;
      depth--;
    }
  }
  for (int32_t k = 0; k < n; k++)
    stack[k] = f->order[order[k]];
  memcpy (f->order, stack, (size_t)n * sizeof *stack);
  for (int32_t k = 0; k < n; k++)
    f->place[f->order[k]] = k;
  return true;
}

/* A column's rows: those of the matrix, and of each column whose first row below it this one is. */
typedef struct filling {
  const meetings *g;
  factor *f;
  int32_t *mark, *row, *first, *after;
  int64_t *start; /* of each column's rows */
  int32_t *below;
  int64_t capacity;
} filling;

static int32_t take_given (filling *t, int32_t k) {
  factor *f = t->f;
  int64_t given = f->given_start[k];
  int32_t count = 0, r = f->order[k];
  f->given_row[given++] = k;
  for (int64_t e = t->g->start[r]; e < t->g->start[r + 1]; e++) {
    int32_t i = f->place[t->g->next[e]];
    if (i > k) {
      f->given_row[given++] = i;
      t->mark[i] = k;
      t->row[count++] = i;
    }
  }
  f->given_start[k + 1] = given;
  return count;
}

static bool fill_column (filling *t, int32_t k, arena *a, error *err) {
  factor *f = t->f;
  int32_t count = take_given (t, k);
  for (int32_t c = t->first[k]; c >= 0; c = t->after[c])
    for (int64_t e = t->start[c]; e < t->start[c + 1]; e++) {
      int32_t i = t->below[e];
      if (i > k && t->mark[i] != k) {
        t->mark[i] = k;
        t->row[count++] = i;
      }
    }
  qsort (t->row, (size_t)count, sizeof *t->row, order_int32);
  t->below = arena_grow (a, t->below, &t->capacity, t->start[k] + count + 1, sizeof *t->below, err);
  if (t->below == NULL)
    return false;
  memcpy (t->below + t->start[k], t->row, (size_t)count * sizeof *t->row);
  t->start[k + 1] = t->start[k] + count;
  f->entries += count + 1;
  f->products += (int64_t)(count + 1) * (count + 1);
  f->parent[k] = count > 0 ? t->row[0] : NONE;
  if (count > 0) {
    t->after[k] = t->first[t->row[0]];
    t->first[t->row[0]] = k;
  }
  return true;
}

/* A column goes on with the block of the one before where that has it and its rows, no others. */
static bool make_blocks (filling *t, arena *a, error *err) {
  factor *f = t->f;
  int64_t rows = 0, numbers = 0;
  int32_t tallest = 0;
  f->first = NEW (a, f->n + 1, int32_t, err);
  f->block = NEW (a, f->n, int32_t, err);
  f->start = NEW (a, f->n + 1, int64_t, err);
  f->at = NEW (a, f->n + 1, int64_t, err);
  if (!f->first || !f->block || !f->start || !f->at)
    return false;
  for (int32_t k = 0; k < f->n; k++) {
    int64_t own = t->start[k + 1] - t->start[k];
    bool goes_on = k > 0 && f->parent[k - 1] == k && t->start[k] - t->start[k - 1] == own + 1 &&
                   k - f->first[f->n_blocks - 1] < WIDEST;
    if (!goes_on) {
      f->first[f->n_blocks++] = k;
      rows += own + 1;
    }
    f->block[k] = f->n_blocks - 1;
  }
  f->first[f->n_blocks] = f->n;
  f->row = NEW (a, rows, int32_t, err);
  if (f->row == NULL)
    return false;
  for (int32_t b = 0; b < f->n_blocks; b++) {
    int32_t k = f->first[b], wide = f->first[b + 1] - k,
            high = (int32_t)(t->start[k + 1] - t->start[k]) + 1;
    f->row[f->start[b]] = k;
    memcpy (f->row + f->start[b] + 1, t->below + t->start[k], (size_t)(high - 1) * sizeof *f->row);
    f->start[b + 1] = f->start[b] + high;
    f->at[b + 1] = f->at[b] + (int64_t)high * wide;
    numbers = f->at[b + 1];
    tallest = high > tallest ? high : tallest;
  }
  f->value = NEW (a, numbers, double, err);
  f->work = NEW (a, (int64_t)tallest * WIDEST, double, err);
  return f->value != NULL && f->work != NULL;
}

static bool fill_in (const meetings *g, factor *f, arena *a, error *err) {
  int32_t n = f->n;
  arena *own = arena_made (err);
  if (own == NULL)
    return false;
  filling t = { .g = g, .f = f };
  t.mark = NEW (own, n, int32_t, err);
  t.row = NEW (own, n, int32_t, err);
  t.first = NEW (own, n, int32_t, err);
  t.after = NEW (own, n, int32_t, err);
  t.start = NEW (own, n + 1, int64_t, err);
  f->given_start = NEW (a, n + 1, int64_t, err);
  f->given_row = NEW (a, g->start[n] / 2 + n, int32_t, err);
  bool good = t.mark && t.row && t.first && t.after && t.start && f->given_start && f->given_row;
  for (int32_t k = 0; good && k < n; k++)
    t.first[k] = t.mark[k] = NONE;
  for (int32_t k = 0; good && k < n; k++)
    good = fill_column (&t, k, own, err);
  good = good && make_blocks (&t, a, err);
  arena_free (own);
  return good;
}

factor *factor_new (const meetings *g, arena *a, error *err) {
  factor *f = NEW (a, 1, factor, err);
  if (f == NULL)
    return NULL;
  int32_t **all[] = {
    &f->order, &f->place, &f->parent, &f->head, &f->next, &f->done, &f->relative
  };
  f->n = g->n;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if ((*all[i] = NEW (a, g->n, int32_t, err)) == NULL)
      return NULL;
  f->dense = NEW (a, g->n, double, err);
  arena *scratch = arena_made (err);
  bool good = f->dense != NULL && scratch != NULL && order_rows (g, scratch, f->order, err);
  arena_free (scratch);
  if (!good)
    return NULL;
  for (int32_t k = 0; k < g->n; k++)
    f->place[f->order[k]] = k;
  find_parents (g, f, f->head);
  return put_in_postorder (f, a, err) && fill_in (g, f, a, err) ? f : NULL;
}

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

/* to[i] = the sum over k of left[i][k] right[k], columns `high` apart: four at a time. */
static void sum_columns (int32_t rows, int32_t depth, int64_t high, const double *restrict left,
                         const double *restrict right, double *restrict to) {
  int32_t k = 0;
  for (int32_t i = 0; i < rows; i++)
    to[i] = 0;
  for (; k + 4 <= depth; k += 4) {
    const double *a = left + k * high, *b = a + high, *c = b + high, *d = c + high;
    double p = right[k * high], q = right[(k + 1) * high], r = right[(k + 2) * high],
           s = right[(k + 3) * high];
    for (int32_t i = 0; i < rows; i++)
      to[i] += a[i] * p + b[i] * q + c[i] * r + d[i] * s;
  }
  for (; k < depth; k++) {
    const double *a = left + k * high;
    double p = right[k * high];
    for (int32_t i = 0; i < rows; i++)
      to[i] += a[i] * p;
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

/* Block d takes from block b the product of its rows there with all its rows from there on. */
static void take_product (factor *f, int32_t b, int32_t d) {
  const int32_t *row = f->row + f->start[d];
  int32_t high = high_of (f, d), from = f->done[d], to = from, wide = f->first[d + 1] - f->first[d];
  int64_t high_b = high_of (f, b);
  while (to < high && row[to] < f->first[b + 1])
    to++;
  for (int32_t j = from; j < to; j++) {
    const double *left = f->value + f->at[d] + j;
    double *into = f->value + f->at[b] + (row[j] - f->first[b]) * high_b;
    sum_columns (high - j, wide, high, left, left, f->work);
    for (int32_t i = j; i < high; i++)
      into[f->relative[row[i]]] -= f->work[i - j];
  }
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
    sum_columns (high - j, j, high, value + j, value + j, f->work);
    for (int32_t i = j; i < high; i++)
      own[i] -= f->work[i - j];
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

void factor_solve (factor *f, double *x) {
  double *w = f->dense;
  for (int32_t k = 0; k < f->n; k++)
    w[k] = x[f->order[k]];
  for (int32_t b = 0; b < f->n_blocks; b++)
    for (int32_t j = 0, high = high_of (f, b); j < f->first[b + 1] - f->first[b]; j++) {
      const double *own = f->value + f->at[b] + (int64_t)j * high;
      const int32_t *row = f->row + f->start[b];
      double v = w[row[j]] /= own[j];
      for (int32_t i = j + 1; i < high; i++)
        w[row[i]] -= v * own[i];
    }
  for (int32_t b = f->n_blocks - 1; b >= 0; b--)
    for (int32_t high = high_of (f, b), j = f->first[b + 1] - f->first[b] - 1; j >= 0; j--) {
      const double *own = f->value + f->at[b] + (int64_t)j * high;
      const int32_t *row = f->row + f->start[b];
      double v = w[row[j]];
      for (int32_t i = j + 1; i < high; i++)
        v -= w[row[i]] * own[i];
      w[row[j]] = v / own[j];
    }
  for (int32_t k = 0; k < f->n; k++)
    x[f->order[k]] = w[k];
}
