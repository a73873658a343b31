/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pattern of Cholesky's factor: which entries it has, whatever the numbers, and which columns
   are computed together. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "solver/flow/factor_inner.h"

enum { NONE = -1, WIDEST = 128, NARROW = 8, FEW = 8 };

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

/* Padding zeros in a block of these columns, of whose entries `own` are nonzeros: each column has
   the rows of the last. */
static int64_t nothings (const filling *t, int32_t first, int32_t last, int64_t own) {
  int64_t wide = last - first + 1, below = t->start[last + 1] - t->start[last];
  return wide * below + wide * (wide + 1) / 2 - own;
}

/* A column goes on with the block of the one before, its child, where few nothings come in so: what
   few columns hold is moved more often than it is calculated with. */
static bool goes_on (const filling *t, int32_t first, int32_t k, int64_t own) {
  return k > first && k - first < WIDEST && t->f->parent[k - 1] == k &&
         nothings (t, first, k, own) <= (k - first < NARROW ? own / 2 : own / FEW);
}

static void find_blocks (filling *t) {
  factor *f = t->f;
  int64_t own = 0;
  for (int32_t k = 0; k < f->n; k++) {
    int64_t column = t->start[k + 1] - t->start[k] + 1;
    int32_t first = k ? f->first[f->n_blocks - 1] : 0;
    own += column;
    if (!goes_on (t, first, k, own)) {
      f->first[f->n_blocks++] = k;
      own = column;
    }
    f->block[k] = f->n_blocks - 1;
  }
  f->first[f->n_blocks] = f->n;
}

static bool make_blocks (filling *t, arena *a, error *err) {
  factor *f = t->f;
  int32_t tallest = 0;
  f->first = NEW (a, f->n + 1, int32_t, err);
  f->block = NEW (a, f->n, int32_t, err);
  f->start = NEW (a, f->n + 1, int64_t, err);
  f->at = NEW (a, f->n + 1, int64_t, err);
  if (!f->first || !f->block || !f->start || !f->at)
    return false;
  find_blocks (t);
  for (int32_t b = 0; b < f->n_blocks; b++) {
    int32_t last = f->first[b + 1] - 1, wide = last - f->first[b] + 1,
            high = wide + (int32_t)(t->start[last + 1] - t->start[last]);
    f->start[b + 1] = f->start[b] + high;
    f->at[b + 1] = f->at[b] + (int64_t)high * wide;
    tallest = high > tallest ? high : tallest;
  }
  f->row = NEW (a, f->start[f->n_blocks], int32_t, err);
  f->value = NEW (a, f->at[f->n_blocks], double, err);
  f->work = NEW (a, 2 * (int64_t)tallest, double, err);
  if (!f->row || !f->value || !f->work)
    return false;
  for (int32_t b = 0; b < f->n_blocks; b++) {
    int32_t *row = f->row + f->start[b], last = f->first[b + 1] - 1;
    for (int32_t k = f->first[b]; k <= last; k++)
      *row++ = k;
    memcpy (row, t->below + t->start[last],
            (size_t)(t->start[last + 1] - t->start[last]) * sizeof *row);
  }
  return true;
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
