/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A table on the terminal that drops columns where it would be too wide, and says which. */
#pragma once

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
#define COLUMNS(c, heads) columns_new (c, heads, (int)(sizeof (heads) / sizeof *(heads)))
/* From here on each row is printed when it comes. Prints the heads. */
void columns_start (columns *t);
/* The next cell of a row. */
void columns_put (columns *t, const char *format, ...) PRINTF_LIKE (2, 3);
void columns_bytes (columns *t, int64_t bytes);
void columns_time (columns *t, int64_t ns);
/* The row ends, after its last cell or before, and this follows at that place as it is. */
bool columns_end (columns *t) MUST_CHECK;
bool columns_end_with (columns *t, const char *format, ...) MUST_CHECK PRINTF_LIKE (2, 3);
/* Prints the rows that were kept, and which columns were left out. False: there is no table. */
bool columns_print (columns *t);
