/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The door to GLPK: answers, and leaving it in the middle of one. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "solver/flow/solved.h"
#include "tests/suite.h"

/* Goods from n makers to n shops: each maker has what each shop wants, at random costs. */
typedef struct transport {
  int32_t n;
  ilp_problem p;
} transport;

static transport transport_of (int32_t n, bool whole, uint64_t seed, arena *a) {
  error err = { 0 };
  random_state r = random_seed (seed);
  int32_t columns = n * n;
  double *low = NEW (a, columns, double, &err), *high = NEW (a, columns, double, &err);
  double *cost = NEW (a, columns, double, &err), *coef = NEW (a, 2 * columns, double, &err);
  double *limit = NEW (a, 2 * n, double, &err);
  int64_t *start = NEW (a, columns + 1, int64_t, &err);
  int32_t *row = NEW (a, 2 * columns, int32_t, &err);
  bool *is_whole = NEW (a, columns, bool, &err);
  ck_assert_msg (low && high && cost && coef && limit && start && row && is_whole, "%s", err.text);
  for (int32_t c = 0; c < columns; c++) {
    high[c] = 1;
    cost[c] = (double)random_between (&r, 1, 1000);
    is_whole[c] = whole;
    start[c + 1] = 2 * (c + 1);
    row[2 * c] = c / n;
    row[2 * c + 1] = n + c % n;
    coef[2 * c] = coef[2 * c + 1] = 1;
  }
  for (int32_t i = 0; i < 2 * n; i++)
    limit[i] = 1;
  return (transport){ n,
                      { .n_rows = 2 * n,
                        .n_columns = columns,
                        .row_low = limit,
                        .row_high = limit,
                        .low = low,
                        .high = high,
                        .cost = cost,
                        .column_start = start,
                        .entry_row = row,
                        .entry_coef = coef,
                        .whole = whole ? is_whole : NULL } };
}

static bool at_last (void *context) {
  int *left = context;
  return --*left < 0;
}

static const ilp_method methods[] = { ILP_INTERIOR, ILP_SIMPLEX, ILP_INTEGER };

CLAIM_IN_ARENA (all_methods_find_one_value) {
  double values[3];
  transport t = transport_of (12, true, 3, a);
  for (int i = 0; i < 3; i++) {
    error err = { 0 };
    ilp_result r;
    ilp_options o = { .method = methods[i] };
    ck_assert_msg (ilp_solve (&t.p, &o, a, &r, &err), "%s", err.text);
    ck_assert_int_eq (r.status, ILP_OPTIMAL);
    values[i] = r.value;
  }
  for (int i = 1; i < 3; i++)
    ck_assert_msg (fabs (values[i] - values[0]) < 1e-4 * values[0], "%.9g and %.9g", values[i],
                   values[0]);
}

/* Stopped at the first question, the second, ... until there are no more: each time there is an
   answer that says so, and the next program is solved as if nothing had been. */
CLAIM (stopped_anywhere_it_says_so_and_works_again) {
  for (int m = 0; m < 2; m++) {
    int stopped = 0;
    double value = 0;
    for (int after = 0; after < 60; after++) {
      arena *a = arena_new (0);
      error err = { 0 };
      int left = after;
      transport t = transport_of (30, false, 5, a);
      ilp_result r, again;
      ilp_options o = { .method = methods[m], .stop = at_last, .stop_context = &left };
      ilp_options plain = { .method = methods[m] };
      ck_assert_msg (ilp_solve (&t.p, &o, a, &r, &err), "%s", err.text);
      ck_assert_int_eq (err.code, ERR_none);
      ck_assert_int_eq (r.status == ILP_STOPPED, left < 0);
      stopped += r.status == ILP_STOPPED;
      for (int32_t i = 0; r.status == ILP_STOPPED && i < t.p.n_columns; i++)
        ck_assert (r.x[i] == 0);
      for (int32_t i = 0; r.status == ILP_STOPPED && i < t.p.n_rows; i++)
        ck_assert (r.y[i] == 0);
      if (r.status != ILP_STOPPED)
        ck_assert_int_eq (r.status, ILP_OPTIMAL);
      if (after % 8 == 0) {
        ck_assert_msg (ilp_solve (&t.p, &plain, a, &again, &err), "%s", err.text);
        ck_assert_int_eq (again.status, ILP_OPTIMAL);
        ck_assert (value == 0 || again.value == value);
        value = again.value;
      }
      arena_free (a);
    }
    ck_assert_int_gt (stopped, 3);
    ck_assert_int_lt (stopped, 60);
  }
}

static void say_nothing (void *context, log_level level, const char *text) {
  (void)level;
  *(int *)context += text != NULL;
}

/* Somebody who listens, or not, changes nothing of what it says that it took. */
CLAIM (what_a_program_takes_is_counted_and_the_same_each_time) {
  for (int m = 0; m < 2; m++) {
    int64_t last = 0;
    for (int n = 10; n <= 40; n += 10) {
      arena *a = arena_new (0);
      error err = { 0 };
      int lines = 0;
      logger log = { .say = say_nothing, .context = &lines };
      transport t = transport_of (n, false, 7, a);
      ilp_result quiet, heard;
      ilp_options o = { .method = methods[m] };
      ck_assert_msg (ilp_solve (&t.p, &o, a, &quiet, &err), "%s", err.text);
      o.log = &log;
      ck_assert_msg (ilp_solve (&t.p, &o, a, &heard, &err), "%s", err.text);
      ck_assert_int_gt (lines, 0);
      ck_assert_int_eq (quiet.work, heard.work);
      ck_assert_int_gt (quiet.work, last);
      last = quiet.work;
      arena_free (a);
    }
  }
}

/* Whole numbers that make branching hard: sums of odd weights that are to hit a number. */
CLAIM_IN_ARENA (an_integer_answer_survives_a_stop) {
  enum { N = 40 };
  double row_low[1] = { 0 }, row_high[1], low[N] = { 0 }, high[N], cost[N], coef[N];
  int64_t start[N + 1];
  int32_t row[N] = { 0 };
  bool whole[N];
  random_state r = random_seed (11);
  double sum = 0;
  for (int i = 0; i < N; i++) {
    coef[i] = (double)(2 * random_between (&r, 5000, 50000));
    cost[i] = -coef[i] - (double)random_between (&r, 0, 9);
    high[i] = 1;
    whole[i] = true;
    start[i] = i;
    sum += coef[i];
  }
  start[N] = N;
  row_high[0] = 2 * floor (sum / 4) + 1;
  ilp_problem p = { .n_rows = 1,
                    .n_columns = N,
                    .row_low = row_low,
                    .row_high = row_high,
                    .low = low,
                    .high = high,
                    .cost = cost,
                    .column_start = start,
                    .entry_row = row,
                    .entry_coef = coef,
                    .whole = whole };
  int left = 400;
  ilp_result x;
  ilp_options o = { .method = ILP_INTEGER, .stop = at_last, .stop_context = &left };
  ck_assert_msg (ilp_solve (&p, &o, a, &x, &err), "%s", err.text);
  ck_assert_int_eq (x.status, ILP_FEASIBLE);
  double carried = 0, value = 0;
  for (int i = 0; i < N; i++) {
    ck_assert (x.x[i] == 0 || x.x[i] == 1);
    carried += coef[i] * x.x[i];
    value += cost[i] * x.x[i];
  }
  ck_assert (carried <= row_high[0]);
  ck_assert (fabs (value - x.value) < 1e-6 * fabs (value));
  ck_assert (x.bound <= x.value);
}

/* A program comes back as it was answered, without the solver; another one in one figure does not,
   nor one that was stopped, nor one after so many others that it is forgotten. */
CLAIM_IN_ARENA (what_was_solved_is_not_solved_again) {
  int lines = 0, left = 1;
  logger log = { .say = say_nothing, .context = &lines };
  ilp_options o = { .method = ILP_INTERIOR, .log = &log };
  ilp_options stopped = { .method = ILP_INTERIOR, .stop = at_last, .stop_context = &left };
  transport t = transport_of (20, false, 11, a);
  ilp_result first, again, other;
  solved_programs *s = solved_new (&err);
  ck_assert (s && solved_or_solve (s, &t.p, &stopped, a, &first, &err));
  ck_assert_int_eq (first.status, ILP_STOPPED);
  ck_assert (solved_or_solve (s, &t.p, &o, a, &first, &err));
  ck_assert_int_eq (first.status, ILP_OPTIMAL);
  ck_assert_int_gt (lines, 0);
  lines = 0;
  ck_assert (solved_or_solve (s, &t.p, &o, a, &again, &err));
  ck_assert_int_eq (lines, 0);
  ck_assert (again.x != first.x && again.y != first.y);
  ck_assert (memcmp (again.x, first.x, (size_t)t.p.n_columns * sizeof *first.x) == 0);
  ck_assert (memcmp (again.y, first.y, (size_t)t.p.n_rows * sizeof *first.y) == 0);
  ck_assert (again.value == first.value && again.status == first.status);
  ck_assert_int_eq (again.work, first.work);
  for (int i = 0; i < 60; i++) {
    lines = 0;
    ((double *)t.p.cost)[7] += 1;
    ck_assert (solved_or_solve (s, &t.p, &o, a, &other, &err));
    ck_assert_int_gt (lines, 0);
  }
  lines = 0;
  ((double *)t.p.cost)[7] -= 60;
  ck_assert (solved_or_solve (s, &t.p, &o, a, &again, &err));
  ck_assert_int_gt (lines, 0);
  ck_assert (again.value == first.value);
  solved_free (s);
}

int main (void) {
  return suite_run ("ilp", 60);
}
