/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The numbers behind a figure as rows and columns: what tsv writes and what a page shows as a
   table. Exact whole numbers, and the unit in the column's name: "x_ns", "step_ns", "held_bytes".
 */
#pragma once

#include "base/arena.h"
#include "plot/figure.h"

typedef struct table_cell {
  const char *text; /* not NULL: this, else the value where has */
  int64_t value;
  bool has;
} table_cell;

typedef struct figure_table {
  const char **columns;
  figure_unit *units; /* of a column's values */
  table_cell *cells;  /* n_rows rows of n_columns */
  int32_t n_columns, n_rows;
} figure_table;

/* Series: one row an x, one column a series (two of a band). Lanes: one row a span. */
bool table_of (const figure *f, arena *a, figure_table *out, error *err) MUST_CHECK;

/* "_ns", "_bytes", "_ppm" or "". */
const char *table_suffix (figure_unit unit);
