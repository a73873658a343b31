/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a JSON file in either of two forms: an array of objects, or an object of columns (the
   packed form, in which a list is { "index": [..], "offset": [..] }).  A reader asks for cells and
   need not know which it is. */
#pragma once

#include "base/json.h"

typedef struct table {
  json at;
  bool packed;
  size_t rows;
} table;

/* The parents of a cell, for its pointer; lives as long as the cell is used. */
typedef struct table_place {
  json outer, inner;
} table_place;

/* Part of a JSON array: elements [first, first + count). */
typedef struct table_slice {
  json array;
  size_t first, count;
} table_slice;

/* `at` must outlive the table. `lists` are those of `keys` that hold lists; NULL ends either. */
bool table_open (const json *at, const char *const *keys, const char *const *lists, bool strict,
                 const logger *log, table *out, error *err) MUST_CHECK;

json table_cell (const table *t, const char *key, size_t row, table_place *place);
bool table_list (const table *t, const char *key, size_t row, table_place *place, table_slice *out,
                 error *err) MUST_CHECK;

/* An error at one cell. */
bool table_error (const table *t, const char *key, size_t row, error *err, const char *format, ...)
    PRINTF_LIKE (5, 6);
