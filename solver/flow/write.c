/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The flow program for others: names, LP text, and the arrays that the solver takes. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "solver/flow/flow.h"

static const char *const row_letters[ROW_KINDS] = {
#define FLOW_ROW(name, letter, per_class) letter,
#define FLOW_COLUMN(name, letter)
#include "solver/flow/flow.def"
#undef FLOW_ROW
#undef FLOW_COLUMN
};

static const char *const column_letters[COLUMN_KINDS] = {
#define FLOW_ROW(name, letter, per_class)
#define FLOW_COLUMN(name, letter) letter,
#include "solver/flow/flow.def"
#undef FLOW_ROW
#undef FLOW_COLUMN
};

static const bool row_per_class[ROW_KINDS] = {
#define FLOW_ROW(name, letter, per_class) per_class,
#define FLOW_COLUMN(name, letter)
#include "solver/flow/flow.def"
#undef FLOW_ROW
#undef FLOW_COLUMN
};

const char *flow_row_name (const flow *f, int32_t row, char name[FLOW_NAME]) {
  assert (row >= 0 && row < f->n_rows);
  int kind = f->row_kind[row], at = f->row_at[row];
  if (kind != ROW_cycle && row_per_class[kind])
    snprintf (name, FLOW_NAME, "%s_%d_%d", row_letters[kind], at / f->n_classes, at % f->n_classes);
  else
    snprintf (name, FLOW_NAME, "%s_%d", row_letters[kind], at);
  return name;
}

const char *flow_column_name (const flow *f, int32_t column, char name[FLOW_NAME]) {
  assert (column >= 0 && column < f->n_columns);
  int kind = f->column_kind[column], at = f->column_at[column];
  if (kind >= COLUMN_stall)
    snprintf (name, FLOW_NAME, "%s_%d", column_letters[kind], at);
  else
    snprintf (name, FLOW_NAME, "%s_%d_%d", column_letters[kind], at / f->n_classes,
              at % f->n_classes);
  return name;
}

static double amount (int64_t grains) {
  return ldexp ((double)grains, -FLOW_UNIT_BITS);
}

static double coefficient (int64_t x) {
  return ldexp ((double)x, -COEF_BITS);
}

/* True if the rows say it too: what is pending, on the host or early at the end of a slot adds up
   to the bytes of the gaps open there, and a flow comes out of a level or of what is released. Such
   a bound costs the interior point method a row of its own and proves nothing (a tenth to a third
   of its time).  host_first and early keep theirs, which cut off something.  A flow while compute
   works may have no row of time: then its bound is the row. */
static bool high_is_implied (const flow *f, int32_t column) {
  int32_t slot = f->column_at[column] / f->n_classes;
  switch (f->column_kind[column]) {
  case COLUMN_pending:
  case COLUMN_host:
  case COLUMN_early_first:
  case COLUMN_stall:
  case COLUMN_stall_out:
  case COLUMN_stall_in:
    return true;
  case COLUMN_work_out:
    return f->row[ROW_work_out][slot] >= 0;
  case COLUMN_work_in:
    return f->row[ROW_work_in][slot] >= 0;
  default:
    return false;
  }
}

bool flow_problem (const flow *f, arena *a, ilp_problem *out, error *err) {
  assert (f->n_columns >= 0 && out);
  double *row_low = NEW (a, f->n_rows, double, err), *row_high = NEW (a, f->n_rows, double, err);
  double *low = NEW (a, f->n_columns, double, err), *high = NEW (a, f->n_columns, double, err);
  double *cost = NEW (a, f->n_columns, double, err);
  double *coef = NEW (a, f->n_entries, double, err);
  if (!row_low || !row_high || !low || !high || !cost || !coef)
    return false;
  for (int32_t r = 0; r < f->n_rows; r++) {
    row_low[r] = f->row_sense[r] >= 0 ? amount (f->row_limit[r]) : -HUGE_VAL;
    row_high[r] = f->row_sense[r] <= 0 ? amount (f->row_limit[r]) : HUGE_VAL;
  }
  for (int32_t c = 0; c < f->n_columns; c++) {
    low[c] = amount (f->low[c]);
    high[c] = high_is_implied (f, c) ? HUGE_VAL : amount (f->high[c]);
    cost[c] = coefficient (f->cost[c]);
  }
  for (int64_t e = 0; e < f->n_entries; e++)
    coef[e] = coefficient (f->entry_coef[e]);
  *out = (ilp_problem){ .n_rows = f->n_rows,
                        .n_columns = f->n_columns,
                        .row_low = row_low,
                        .row_high = row_high,
                        .low = low,
                        .high = high,
                        .cost = cost,
                        .column_start = f->column_start,
                        .entry_row = f->entry_row,
                        .entry_coef = coef };
  return true;
}

/* ---- LP text ---- */

typedef struct writer {
  bytes *out;
  error *err;
  bool ok;
  int terms; /* on this line */
} writer;

static void say (writer *w, const char *format, ...) PRINTF_LIKE (2, 3);
static void say (writer *w, const char *format, ...) {
  char text[256];
  va_list args;
  va_start (args, format);
  int n = vsnprintf (text, sizeof text, format, args);
  va_end (args);
  assert (n >= 0 && n < (int)sizeof text);
  w->ok = w->ok && bytes_append (w->out, text, n, w->err);
}

/* Signed decimals that read back to the same double. */
static void term (writer *w, double x, const char *name) {
  if (w->terms++ % 8 == 7)
    say (w, "\n  ");
  if (x == 1 || x == -1)
    say (w, " %c %s", x < 0 ? '-' : '+', name);
  else
    say (w, " %c %.17g %s", x < 0 ? '-' : '+', fabs (x), name);
}

/* The matrix by rows. */
static bool by_rows (const flow *f, arena *a, int64_t **start, int32_t **column, int64_t **coef,
                     error *err) {
  *start = NEW (a, (int64_t)f->n_rows + 2, int64_t, err);
  *column = NEW (a, f->n_entries, int32_t, err);
  *coef = NEW (a, f->n_entries, int64_t, err);
  if (!*start || !*column || !*coef)
    return false;
  int64_t *next = *start + 1;
  for (int64_t e = 0; e < f->n_entries; e++)
    next[f->entry_row[e] + 1]++;
  for (int32_t r = 0; r < f->n_rows; r++)
    next[r + 1] += next[r];
  for (int32_t c = 0; c < f->n_columns; c++)
    for (int64_t e = f->column_start[c]; e < f->column_start[c + 1]; e++) {
      int64_t to = next[f->entry_row[e]]++;
      (*column)[to] = c;
      (*coef)[to] = f->entry_coef[e];
    }
  return true;
}

static void write_rows (writer *w, const flow *f, const int64_t *start, const int32_t *column,
                        const int64_t *coef) {
  char name[FLOW_NAME];
  for (int32_t r = 0; r < f->n_rows; r++) {
    say (w, " %s:", flow_row_name (f, r, name));
    w->terms = 0;
    for (int64_t e = start[r]; e < start[r + 1]; e++)
      term (w, coefficient (coef[e]), flow_column_name (f, column[e], name));
    say (w, " %s %.17g\n",
         f->row_sense[r] < 0   ? "<="
         : f->row_sense[r] > 0 ? ">="
                               : "=",
         amount (f->row_limit[r]));
  }
}

bool flow_write_lp (const flow *f, bytes *out, error *err) {
  writer w = { .out = out, .err = err, .ok = true };
  char name[FLOW_NAME];
  int64_t *start, *coef;
  int32_t *column;
  arena *a = arena_made (err);
  if (!a)
    return false;
  if (!by_rows (f, a, &start, &column, &coef, err)) {
    arena_free (a);
    return false;
  }
  say (&w, "\\ stall of a step; 1 is %.17g bytes, or the time they take on the way out\n",
       ldexp (1, FLOW_UNIT_BITS - f->link.shift));
  say (&w, "Minimize\n stall:");
  for (int32_t c = 0; c < f->n_columns; c++)
    if (f->cost[c])
      term (&w, coefficient (f->cost[c]), flow_column_name (f, c, name));
  say (&w, "\nSubject To\n");
  write_rows (&w, f, start, column, coef);
  say (&w, "Bounds\n");
  for (int32_t c = 0; c < f->n_columns; c++)
    say (&w, " %.17g <= %s <= %.17g\n", amount (f->low[c]), flow_column_name (f, c, name),
         amount (f->high[c]));
  say (&w, "End\n");
  arena_free (a);
  return w.ok;
}
