/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The interior point method, its order of rows, and its factor. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "solver/flow/interior.h"
#include "solver/flow/normal.h"
#include "tests/suite.h"

enum { FEW = 40, GRID = 24 };

/* ---- orders and factors ---- */

static meetings joined (int32_t n, bool (*meet) (int32_t i, int32_t j), arena *a) {
  error err = { 0 };
  int64_t *start = NEW (a, n + 1, int64_t, &err), count = 0;
  int32_t *next = NEW (a, (int64_t)n * n, int32_t, &err);
  ck_assert (start && next);
  for (int32_t i = 0; i < n; i++) {
    for (int32_t j = 0; j < n; j++)
      if (i != j && meet (i, j))
        next[count++] = j;
    start[i + 1] = count;
  }
  return (meetings){ n, start, next };
}

static bool in_a_path (int32_t i, int32_t j) {
  return (i * 7) % 101 - (j * 7) % 101 == 1 || (j * 7) % 101 - (i * 7) % 101 == 1;
}
static bool in_a_star (int32_t i, int32_t j) {
  return i == 5 || j == 5;
}
static bool in_a_grid (int32_t i, int32_t j) {
  int32_t across = i % GRID - j % GRID, down = i / GRID - j / GRID;
  return across * across + down * down == 1;
}
static bool with_all (int32_t i, int32_t j) {
  (void)i, (void)j;
  return true;
}
static bool by_chance (int32_t i, int32_t j) {
  random_state r = random_seed ((uint64_t)(i < j ? i * 1000 + j : j * 1000 + i));
  return random_between (&r, 0, 99) < 5;
}

static const struct {
  bool (*meet) (int32_t i, int32_t j);
  int32_t n;
  int64_t least, most; /* entries of the factor */
} graphs[] = { { in_a_path, 101, 201, 201 },
               { in_a_star, 60, 119, 119 },
               { with_all, 50, 1275, 1275 },
               { in_a_grid, GRID *GRID, 1680, 6000 }, /* 13,548 row by row */
               { by_chance, 200, 200, 12000 } };

enum { GRAPHS = sizeof graphs / sizeof graphs[0] };

CLAIM (rows_are_ordered_so_that_few_entries_come) {
  for (int q = 0; q < GRAPHS; q++) {
    arena *a = arena_new (0);
    error err = { 0 };
    meetings g = joined (graphs[q].n, graphs[q].meet, a);
    int32_t *order = NEW (a, g.n, int32_t, &err);
    bool *met = NEW (a, g.n, bool, &err);
    ck_assert (order && met && order_rows (&g, a, order, &err));
    for (int32_t k = 0; k < g.n; k++) {
      ck_assert (order[k] >= 0 && order[k] < g.n && !met[order[k]]);
      met[order[k]] = true;
    }
    factor *f = factor_new (&g, a, &err);
    ck_assert (f);
    ck_assert_int_ge (factor_entries (f), graphs[q].least);
    ck_assert_int_le (factor_entries (f), graphs[q].most);
    arena_free (a);
  }
}

static void set_numbers (const factor *f, const meetings *g, int times, double *numbers) {
  for (int32_t i = 0; i < g->n; i++) {
    numbers[factor_place (f, i, i)] = times * (1.5 + (double)(g->start[i + 1] - g->start[i]));
    for (int64_t e = g->start[i]; e < g->start[i + 1]; e++)
      numbers[factor_place (f, i, g->next[e])] = times * ((i + g->next[e]) % 2 ? -1 : 0.5);
  }
}

CLAIM (a_factor_solves_and_is_computed_again) {
  for (int q = 0; q < 2 * GRAPHS; q++) {
    arena *a = arena_new (0);
    error err = { 0 };
    meetings g = joined (graphs[q / 2].n, graphs[q / 2].meet, a);
    factor *f = factor_new (&g, a, &err);
    ck_assert (f);
    double *numbers = NEW (a, factor_places (f), double, &err), *x = NEW (a, g.n, double, &err);
    ck_assert (numbers && x);
    for (int times = 1; times <= 1 + q % 2; times++) {
      set_numbers (f, &g, times, numbers);
      factor_compute (f, numbers);
    }
    for (int32_t i = 0; i < g.n; i++)
      x[i] = i % 7 - 3;
    factor_solve (f, x);
    for (int32_t i = 0; i < g.n; i++) {
      double sum = numbers[factor_place (f, i, i)] * x[i];
      for (int64_t e = g.start[i]; e < g.start[i + 1]; e++)
        sum += numbers[factor_place (f, i, g.next[e])] * x[g.next[e]];
      ck_assert_msg (fabs (sum - (i % 7 - 3)) < 1e-9, "row %d: %g", i, sum);
    }
    arena_free (a);
  }
}

/* ---- programs ---- */

typedef struct program {
  ilp_problem p;
  double *row_low, *row_high, *low, *high, *cost, *coef;
  int64_t *start;
  int32_t *row;
} program;

static program room_for (int32_t rows, int32_t columns, int64_t entries, arena *a) {
  error err = { 0 };
  program g = { .row_low = NEW (a, rows, double, &err),
                .row_high = NEW (a, rows, double, &err),
                .low = NEW (a, columns, double, &err),
                .high = NEW (a, columns, double, &err),
                .cost = NEW (a, columns, double, &err),
                .coef = NEW (a, entries, double, &err),
                .start = NEW (a, columns + 1, int64_t, &err),
                .row = NEW (a, entries, int32_t, &err) };
  ck_assert (g.row_low && g.row_high && g.low && g.high && g.cost && g.coef && g.start && g.row);
  g.p = (ilp_problem){ .n_rows = rows,
                       .n_columns = columns,
                       .row_low = g.row_low,
                       .row_high = g.row_high,
                       .low = g.low,
                       .high = g.high,
                       .cost = g.cost,
                       .column_start = g.start,
                       .entry_row = g.row,
                       .entry_coef = g.coef };
  return g;
}

/* Rows and columns of every kind, around a point that they allow. */
static program by_chance_of (uint64_t seed, arena *a) {
  random_state r = random_seed (seed);
  error err = { 0 };
  int32_t rows = 5 + (int32_t)random_between (&r, 0, FEW),
          columns = rows + (int32_t)random_between (&r, 0, FEW);
  program g = room_for (rows, columns, (int64_t)columns * 4, a);
  double *sum = NEW (a, rows, double, &err);
  int64_t n = 0;
  ck_assert (sum);
  for (int32_t c = 0; c < columns; c++) {
    double x = (double)random_between (&r, -20, 20);
    int kind = (int)random_between (&r, 0, 9);
    g.low[c] = kind == 0 ? -HUGE_VAL : x - (double)random_between (&r, 0, 9);
    g.high[c] = kind < 4 ? HUGE_VAL : kind == 4 ? g.low[c] : x + (double)random_between (&r, 0, 9);
    x = kind == 4 ? g.low[c] : x;
    g.cost[c] = kind == 0  ? 0
                : kind < 4 ? (double)random_between (&r, 0, 9)
                           : (double)random_between (&r, -9, 9);
    for (int32_t i = (int32_t)random_between (&r, 0, rows - 1), k = 0; k < 4 && i < rows;
         i += 1 + (int32_t)random_between (&r, 0, rows / 2), k++) {
      g.row[n] = i;
      g.coef[n] = (double)random_between (&r, 1, 5) * (random_between (&r, 0, 1) ? 1 : -1);
      sum[i] += g.coef[n++] * x;
    }
    g.start[c + 1] = n;
  }
  for (int32_t i = 0; i < rows; i++) {
    int kind = (int)random_between (&r, 0, 9);
    g.row_low[i] = kind < 3   ? -HUGE_VAL
                   : kind < 6 ? sum[i]
                              : sum[i] - (double)random_between (&r, 0, 9);
    g.row_high[i] = kind == 0 ? HUGE_VAL : kind < 6 ? sum[i] : kind < 8 ? HUGE_VAL : sum[i] + 3;
  }
  return g;
}

/* What the prices of the rows prove: no answer is below it. */
static double proved (const program *g, const double *y) {
  double sum = 0;
  for (int32_t i = 0; i < g->p.n_rows; i++) {
    double bound = y[i] > 0 ? g->row_low[i] : g->row_high[i];
    sum += fabs (y[i]) < 1e-7 && isinf (bound) ? 0 : y[i] * bound;
  }
  for (int32_t c = 0; c < g->p.n_columns; c++) {
    double d = g->cost[c];
    for (int64_t e = g->start[c]; e < g->start[c + 1]; e++)
      d -= y[g->row[e]] * g->coef[e];
    double bound = d > 0 ? g->low[c] : g->high[c];
    sum += fabs (d) < 1e-7 && isinf (bound) ? 0 : d * bound;
  }
  return sum;
}

CLAIM (it_finds_what_the_simplex_finds) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    program g = by_chance_of (seed, a);
    ilp_options o = { .method = ILP_SIMPLEX };
    ilp_result by_simplex, r;
    ck_assert_msg (ilp_solve (&g.p, &o, a, &by_simplex, &err), "seed %d: %s", (int)seed, err.text);
    ck_assert_msg (interior_solve (&g.p, &o, a, &r, &err), "%s", err.text);
    ck_assert_int_eq (by_simplex.status, ILP_OPTIMAL);
    ck_assert_msg (r.status == ILP_OPTIMAL, "seed %d: %s", (int)seed, ilp_status_name (r.status));
    double size = 1 + fabs (by_simplex.value);
    ck_assert_msg (fabs (r.value - by_simplex.value) < 1e-5 * size, "seed %d: %.9g and %.9g",
                   (int)seed, r.value, by_simplex.value);
    ck_assert_msg (fabs (proved (&g, r.y) - r.value) < 1e-4 * size, "seed %d: %.9g proves %.9g",
                   (int)seed, r.value, proved (&g, r.y));
    ck_assert_int_gt (r.work, 0);
    arena_free (a);
  }
}

/* x0 <= x1 <= ... , each between 0 and 9 by its own bounds; the first wants to be large, the others
 * small. */
static program chain (int32_t rows, arena *a) {
  program g = room_for (rows, rows + 1, 2 * (int64_t)rows, a);
  int64_t n = 0;
  for (int32_t c = 0; c <= rows; c++) {
    g.high[c] = 9;
    g.cost[c] = c == 0 ? -3 : c == rows ? 1 : 0;
    for (int32_t i = c - 1; i <= c; i++)
      if (i >= 0 && i < rows) {
        g.row[n] = i;
        g.coef[n++] = i == c ? 1 : -1;
      }
    g.start[c + 1] = n;
  }
  for (int32_t i = 0; i < rows; i++)
    g.row_low[i] = -HUGE_VAL;
  return g;
}

CLAIM_IN_ARENA (what_has_no_answer_is_said_to_have_failed) {
  ilp_options o = { .method = ILP_INTERIOR };
  ilp_result r;
  program g = chain (30, a);
  g.low[0] = 8, g.high[30] = 3;
  ck_assert (interior_solve (&g.p, &o, a, &r, &err));
  ck_assert_int_eq (r.status, ILP_FAILED);
  g = chain (30, a);
  for (int32_t c = 0; c <= 30; c++)
    g.high[c] = HUGE_VAL;
  ck_assert (interior_solve (&g.p, &o, a, &r, &err));
  ck_assert_int_eq (r.status, ILP_FAILED);
}

CLAIM_IN_ARENA (a_full_column_is_none_of_its_programs) {
  enum { ROWS = 11700 };
  ilp_options o = { .method = ILP_INTERIOR };
  ilp_result r;
  program g = room_for (ROWS, 1, ROWS, a);
  for (int32_t i = 0; i < ROWS; i++) {
    g.row[i] = i;
    g.coef[i] = 1;
    g.row_high[i] = 1;
  }
  g.start[1] = ROWS;
  g.high[0] = 9;
  ck_assert (interior_solve (&g.p, &o, a, &r, &err));
  ck_assert_int_eq (r.status, ILP_FAILED);
  ck_assert_int_eq (r.work, 0);
}

static bool at_last (void *context) {
  int *left = context;
  return --*left < 0;
}

CLAIM (it_stops_when_it_is_told_to) {
  for (int after = 0; after < 4; after++) {
    arena *a = arena_new (0);
    error err = { 0 };
    int left = after;
    ilp_options o = { .method = ILP_INTERIOR, .stop = at_last, .stop_context = &left };
    ilp_result r;
    program g = chain (200, a);
    ck_assert (interior_solve (&g.p, &o, a, &r, &err));
    ck_assert_int_eq (r.status, ILP_STOPPED);
    ck_assert (r.x[0] == 0 && r.x[200] == 0 && r.y[0] == 0);
    arena_free (a);
  }
}

static void listen (void *context, log_level level, const char *text) {
  (void)level;
  *(bool *)context |= strncmp (text, "interior: ", 10) == 0;
}

CLAIM (programs_are_solved_by_it) {
  static const int32_t rows[] = { 20, 16000 };
  for (int i = 0; i < 2; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    bool heard = false;
    logger log = { .say = listen, .context = &heard };
    ilp_options o = { .method = ILP_INTERIOR, .log = &log };
    ilp_result r;
    program g = chain (rows[i], a);
    ck_assert_msg (ilp_solve (&g.p, &o, a, &r, &err), "%s", err.text);
    ck_assert (heard);
    ck_assert_msg (r.status == ILP_OPTIMAL && fabs (r.value + 18) < 1e-5, "%d rows: %s, %g",
                   (int)rows[i], ilp_status_name (r.status), r.value);
    arena_free (a);
  }
}

int main (void) {
  return suite_run ("interior", 60);
}
