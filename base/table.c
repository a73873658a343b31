/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_among (const char *key, const char *const *list) {
  for (; list && *list; list++)
    if (strcmp (*list, key) == 0)
      return true;
  return false;
}

/* The number of rows that a list column stands for; its offsets rise from 0 to the last index. */
static bool list_rows (const json *column, size_t *rows, error *err) {
  json index, offset;
  if (!json_need (column, "index", &index, err) || !json_need (column, "offset", &offset, err) ||
      !json_want_array (&index, err) || !json_want_array (&offset, err))
    return false;
  size_t count = json_count (&offset);
  if (count == 0)
    return json_error (&offset, err, "`offset` needs one entry more than there are rows");
  int64_t before = 0, most = (int64_t)json_count (&index);
  for (size_t i = 0; i < count; i++) {
    json at = json_element (&offset, i);
    int64_t value = -1;
    if (!json_get_int (&at, 0, most, &value, err))
      return false;
    if (value < before || (i == 0 && value != 0) || (i + 1 == count && value != most))
      return json_error (&at, err, "offsets must rise from 0 to %lld, the length of `index`",
                         (long long)most);
    before = value;
  }
  *rows = count - 1;
  return true;
}

static bool open_packed (table *t, const char *const *keys, const char *const *lists, error *err) {
  const char *first = NULL;
  for (int i = 0; keys[i]; i++) {
    json column = json_member (&t->at, keys[i]);
    if (json_is_absent (&column))
      continue;
    size_t rows = 0;
    if (is_among (keys[i], lists)) {
      if (!json_want_object (&column, err) || !list_rows (&column, &rows, err))
        return false;
    } else if (!json_want_array (&column, err))
      return false;
    else
      rows = json_count (&column);
    if (first && rows != t->rows)
      return json_error (&column, err, "this column has %zu rows, `%s` has %zu", rows, first,
                         t->rows);
    t->rows = rows;
    first = keys[i];
  }
  return true;
}

bool table_open (const json *at, const char *const *keys, const char *const *lists, bool strict,
                 const logger *log, table *out, error *err) {
  *out = (table){ .at = *at, .packed = json_is_object (at) };
  if (out->packed)
    return json_known (&out->at, keys, strict, log, err) && open_packed (out, keys, lists, err);
  if (!json_want_array (at, err))
    return false;
  out->rows = json_count (at);
  for (size_t i = 0; i < out->rows; i++) {
    json row = json_element (&out->at, i);
    if (!json_want_object (&row, err) || !json_known (&row, keys, strict, log, err))
      return false;
  }
  return true;
}

json table_cell (const table *t, const char *key, size_t row, table_place *place) {
  if (!t->packed) {
    place->outer = json_element (&t->at, row);
    return json_member (&place->outer, key);
  }
  place->outer = json_member (&t->at, key);
  if (json_is_absent (&place->outer))
    return (json){ .up = &t->at, .key = key };
  return json_element (&place->outer, row);
}

bool table_list (const table *t, const char *key, size_t row, table_place *place, table_slice *out,
                 error *err) {
  *out = (table_slice){ 0 };
  if (!t->packed) {
    out->array = table_cell (t, key, row, place);
    if (json_is_absent (&out->array))
      return true;
    out->count = json_count (&out->array);
    return json_want_array (&out->array, err);
  }
  place->outer = json_member (&t->at, key);
  if (json_is_absent (&place->outer))
    return true;
  json offset = json_member (&place->outer, "offset");
  json from = json_element (&offset, row), to = json_element (&offset, row + 1);
  int64_t first = 0, end = 0; /* in range: table_open has looked */
  if (!json_get_int (&from, 0, INT64_MAX, &first, err) ||
      !json_get_int (&to, 0, INT64_MAX, &end, err))
    return false;
  out->array = json_member (&place->outer, "index");
  out->first = (size_t)first;
  out->count = (size_t)(end - first);
  return true;
}

bool table_error (const table *t, const char *key, size_t row, error *err, const char *format,
                  ...) {
  char text[sizeof err->text];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  table_place place;
  json cell = table_cell (t, key, row, &place);
  return json_error (&cell, err, "%s", text);
}
