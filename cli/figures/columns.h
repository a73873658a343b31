/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A table on the terminal that drops columns where it would be too wide, and says which. */
#ifndef FERRY_CLI_FIGURES_COLUMNS_H
#define FERRY_CLI_FIGURES_COLUMNS_H

#include "cli/call/call.h"

enum { COLUMNS_MOST = 16 };

/* clang-format off */
#define OPTION_WIDE { 0, "wide", NULL, "all columns, however narrow the terminal is" }
/* clang-format on */

typedef struct column {
  const char *head;
  int drop;  /* those with the largest number go first; 0: never */
  bool left; /* aligned; else right */
  int width; /* of a table whose rows are not waited for; a longer cell makes its row longer */
} column;

typedef struct columns columns;

columns *columns_new (call *c, const column *at, int count);
/* From here on each row is printed when it comes. Prints the heads. */
void columns_start (columns *t);
/* The next row's cells, as many as there are columns; copied. A cell NULL ends the row, and `rest`
   (or NULL) follows at that place as it is. */
bool columns_row (columns *t, const char *const *cells, const char *rest) MUST_CHECK;
/* Prints the rows that were kept, and which columns were left out. */
void columns_print (columns *t);

#endif
