/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/api/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns of each kind, of objects in the array; a dot goes into an object. */
static const struct {
  const char *kind, *array, *columns;
} tables[] = {
  { "curves", "points",
    "budget_bytes lower_bound_ns gap predicted.step_ns predicted.baseline_ns predicted.peak_bytes"
    " predicted.host_peak_bytes predicted.d2h_bytes predicted.h2d_bytes" },
  { "comparisons", "rows",
    "label budget_bytes fits lower_bound_ns gap predicted.step_ns predicted.baseline_ns"
    " predicted.peak_bytes predicted.host_peak_bytes predicted.d2h_bytes predicted.h2d_bytes moves"
    " drops note" },
  { "what-if", "rows",
    "device batch budget_bytes link_bytes_per_s answer floor_bytes needs_bytes baseline_ns"
    " lower_bound_ns gap predicted.step_ns predicted.host_peak_bytes predicted.d2h_bytes"
    " predicted.h2d_bytes" },
  { "ranks", "rows", "ranks budget_bytes step_ns alone_step_ns lower_bound_ns pinned_bytes way" },
};
enum { TABLES = sizeof tables / sizeof *tables };

static int table_of (const char *kind) {
  for (int i = 0; i < TABLES; i++)
    if (strcmp (tables[i].kind, kind) == 0)
      return i;
  return -1;
}

bool csv_has (const char *kind) {
  return table_of (kind) >= 0;
}

static bool put (bytes *out, const char *text, size_t n, error *err) {
  return bytes_append (out, text, (int64_t)n, err);
}

/* A text that a spreadsheet would take for a formula is led by an apostrophe. */
static bool put_text (bytes *out, const char *text, error *err) {
  bool ok =
      put (out, "\"", 1, err) && (!strchr ("=+-@", *text) || !*text || put (out, "'", 1, err));
  for (; ok && *text; text++)
    ok = put (out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1, err);
  return ok && put (out, "\"", 1, err);
}

/* The fewest digits that are this number: as the result has them. */
static bool put_real (double value, bytes *out, error *err) {
  char text[40];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf (text, sizeof text, "%.*g", digits, value);
    if (strtod (text, NULL) == value)
      break;
  }
  return put (out, text, strlen (text), err);
}

/* A row has the place of its card in the grid, a table its name. */
static bool put_device (const json *root, const json *cell, bytes *out, error *err) {
  const char *text = "";
  int64_t at = 0;
  json grid = json_member (root, "grid"), all = json_member (&grid, "devices");
  if (!json_get_int (cell, 0, (int64_t)json_count (&all) - 1, &at, err))
    return false;
  json name = json_element (&all, (size_t)at);
  return json_get_text (&name, &text, err) && put_text (out, text, err);
}

static bool put_cell (const json *root, const json *row, const char *name, size_t length, arena *a,
                      bytes *out, error *err) {
  char key[64];
  const char *dot = memchr (name, '.', length), *text = "";
  error ignored = { 0 };
  json inner = *row;
  if (dot) {
    snprintf (key, sizeof key, "%.*s", (int)(dot - name), name);
    inner = json_member (row, key);
    length -= (size_t)(dot + 1 - name);
    name = dot + 1;
  }
  snprintf (key, sizeof key, "%.*s", (int)length, name);
  json cell = json_is_absent (&inner) ? (json){ 0 } : json_member (&inner, key);
  if (json_is_absent (&cell))
    return true;
  if (strcmp (key, "device") == 0 && json_is_int (&cell))
    return put_device (root, &cell, out, err);
  if (json_is_string (&cell))
    return json_get_text (&cell, &text, err) && put_text (out, text, err);
  double value = 0;
  if (!json_is_int (&cell) && json_get_double (&cell, &value, &ignored))
    return put_real (value, out, err);
  text = json_canonical (&cell, true, a, err);
  return text && put (out, text, strlen (text), err);
}

static bool put_row (const json *root, const json *row, const char *columns, arena *a, bytes *out,
                     error *err) {
  for (const char *at = columns; *at;) {
    size_t n = strcspn (at, " ");
    if (row ? !put_cell (root, row, at, n, a, out, err) : !put (out, at, n, err))
      return false;
    at += n + (at[n] != 0);
    if (*at && !put (out, ",", 1, err))
      return false;
  }
  return put (out, "\r\n", 2, err); /* as RFC 4180 has it */
}

bool csv_write (const char *kind, const bytes *result, bytes *out, error *err) {
  arena *a = arena_new (0);
  json_document *d = a ? json_open (result->data, result->size, err) : NULL;
  json root = d ? json_root (d) : (json){ 0 };
  json host = json_member (&root, "host");
  int it = table_of (json_is_absent (&host) ? kind : "ranks");
  json rows = d ? json_member (&root, tables[it].array) : (json){ 0 };
  bool ok = d && put_row (&root, NULL, tables[it].columns, a, out, err);
  for (size_t i = 0; ok && i < json_count (&rows); i++) {
    json row = json_element (&rows, i);
    ok = put_row (&root, &row, tables[it].columns, a, out, err);
  }
  json_close (d);
  arena_free (a);
  return ok;
}
