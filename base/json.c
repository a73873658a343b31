/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/utf8.h"

/* ---- reading ---- */

json_document *json_open (const char *text, int64_t size, error *err) {
  json_error_t said;
  bool memory;
  int mark = (int)file_mark (text, size);
  json_t *root = json_load_text (text ? text + mark : "", size - mark, &said, &memory);
  if (!root) {
    if (memory)
      error_memory (err);
    else if (size <= mark)
      error_set (err, ERR_input, "empty, where JSON is expected");
    else
      error_set (err, ERR_input, "not JSON: %s (byte %d)", said.text, said.position + mark);
    if (err && err->line == 0 && said.line > 0 && size > mark)
      err->line = said.line;
  }
  return (json_document *)root;
}

void json_close (json_document *d) {
  json_decref ((json_t *)d);
}

json json_root (const json_document *d) {
  return (json){ .value = d };
}

static const json_t *value_of (const json *j) {
  return j->value;
}

bool json_is_absent (const json *j) {
  return !j->value || json_is_null (value_of (j));
}

/* Jansson has macros of these names; ours are functions. */
#undef json_is_object
#undef json_is_array
#undef json_is_string
#undef json_is_int
bool json_is_object (const json *j) {
  return j->value && json_typeof (value_of (j)) == JSON_OBJECT;
}

bool json_is_array (const json *j) {
  return j->value && json_typeof (value_of (j)) == JSON_ARRAY;
}

bool json_is_string (const json *j) {
  return j->value && json_typeof (value_of (j)) == JSON_STRING;
}

bool json_is_int (const json *j) {
  return j->value && json_typeof (value_of (j)) == JSON_INTEGER;
}

/* Writes the pointer of j, its parents first; stops quietly when the room is used up. */
static size_t write_pointer (const json *j, char *text, size_t size) {
  if (!j->up)
    return 0;
  size_t used = write_pointer (j->up, text, size);
  if (used + 2 >= size)
    return used;
  text[used++] = '/';
  if (!j->key)
    used += (size_t)snprintf (text + used, size - used, "%zu", j->index);
  else
    for (const char *at = j->key; *at && used + 3 < size; at++) {
      if (*at == '~' || *at == '/') {
        text[used++] = '~';
        text[used++] = *at == '~' ? '0' : '1';
      } else
        text[used++] = *at;
    }
  if (used >= size)
    used = size - 1;
  text[used] = 0;
  return used;
}

bool json_error (const json *j, error *err, const char *format, ...) {
  char where[sizeof err->where] = "";
  char text[sizeof err->text];
  write_pointer (j, where, sizeof where);
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  return error_at (err, ERR_input, where, "%s", text);
}

static const char *kind_of (const json *j) {
  static const char *const kinds[] = { "an object",  "an array", "a text", "a whole number",
                                       "a fraction", "true",     "false",  "null" };
  return j->value ? kinds[json_typeof (value_of (j))] : "absent";
}

json json_member (const json *object, const char *key) {
  const json_t *value = json_is_object (object) ? json_object_get (value_of (object), key) : NULL;
  return (json){ .value = value, .up = object, .key = key };
}

bool json_need (const json *object, const char *key, json *out, error *err) {
  if (!json_want_object (object, err))
    return false;
  *out = json_member (object, key);
  return !json_is_absent (out) || json_error (object, err, "`%s` is missing", key);
}

json json_element (const json *array, size_t index) {
  return (json){ .value = json_array_get (value_of (array), index), .up = array, .index = index };
}

size_t json_count (const json *j) {
  return json_is_array (j)    ? json_array_size (value_of (j))
         : json_is_object (j) ? json_object_size (value_of (j))
                              : 0;
}

bool json_want_object (const json *j, error *err) {
  return json_is_object (j) || json_error (j, err, "an object is needed here, not %s", kind_of (j));
}

bool json_want_array (const json *j, error *err) {
  return json_is_array (j) || json_error (j, err, "an array is needed here, not %s", kind_of (j));
}

bool json_get_int (const json *j, int64_t low, int64_t high, int64_t *out, error *err) {
  if (json_is_absent (j))
    return true;
  if (!json_is_int (j))
    return json_error (j, err, "a whole number is needed here, not %s", kind_of (j));
  int64_t value = json_integer_value (value_of (j));
  if (value < low || value > high)
    return json_error (j, err, "%" PRId64 " is not between %" PRId64 " and %" PRId64, value, low,
                       high);
  *out = value;
  return true;
}

bool json_get_int32 (const json *j, int32_t low, int32_t high, int32_t *out, error *err) {
  int64_t value = *out;
  if (!json_get_int (j, low, high, &value, err))
    return false;
  *out = (int32_t)value;
  return true;
}

bool json_get_bool (const json *j, bool *out, error *err) {
  if (json_is_absent (j))
    return true;
  const json_t *value = value_of (j);
  if (!json_is_boolean (value))
    return json_error (j, err, "true or false is needed here, not %s", kind_of (j));
  *out = json_is_true (value);
  return true;
}

/* Jansson refuses U+0000, so a text ends where C thinks it does. */
static bool is_clean (const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20)
      return false;
  return true;
}

static bool text_is_clean (const json_t *value) {
  return is_clean (json_string_value (value));
}

bool json_get_text (const json *j, const char **out, error *err) {
  if (json_is_absent (j))
    return true;
  if (!json_is_string (j))
    return json_error (j, err, "a text is needed here, not %s", kind_of (j));
  if (!text_is_clean (value_of (j)))
    return json_error (j, err, "the text holds a control character");
  *out = json_string_value (value_of (j));
  return true;
}

bool json_get_double (const json *j, double *out, error *err) {
  if (json_is_absent (j))
    return true;
  if (!json_is_number (value_of (j)))
    return json_error (j, err, "a number is needed here, not %s", kind_of (j));
  *out = json_number_value (value_of (j));
  return true;
}

bool json_get_word (const json *j, const char *const *words, int *out, error *err) {
  const char *text = NULL;
  if (!json_get_text (j, &text, err))
    return false;
  if (!text)
    return true;
  char list[256] = "";
  size_t used = 0;
  for (int i = 0; words[i]; i++) {
    if (strcmp (words[i], text) == 0) {
      *out = i;
      return true;
    }
    if (used < sizeof list)
      used += (size_t)snprintf (list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
  }
  return json_error (j, err, "`%.60s` is not one of: %s", text, list);
}

bool json_get_ints (const json *array, int64_t low, int64_t high, int64_t absent, int64_t *out,
                    size_t count, error *err) {
  for (size_t i = 0; i < count; i++) {
    json at = json_element (array, i);
    out[i] = absent;
    if (!json_get_int (&at, low, high, &out[i], err))
      return false;
  }
  return true;
}

bool json_known (const json *object, const char *const *keys, bool strict, const logger *log,
                 error *err) {
  const char *key;
  json_t *value;
  json_object_foreach ((json_t *)(uintptr_t)object->value, key, value) {
    bool found = false;
    for (int i = 0; keys[i] && !found; i++)
      found = strcmp (keys[i], key) == 0;
    if (found)
      continue;
    json at = json_member (object, key);
    if (strict)
      return json_error (&at, err, "unknown key");
    char where[256] = "";
    write_pointer (&at, where, sizeof where);
    log_say (log, LOG_WARNING, "%s: unknown key, ignored", where);
  }
  return true;
}

static bool canonical_allows (const json *j, bool reals, error *err) {
  const json_t *value = value_of (j);
  const char *key;
  json_t *member;
  switch (json_typeof (value)) {
  case JSON_OBJECT:
    json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
      json at = json_member (j, key);
      if (!is_clean (key))
        return json_error (j, err, "a key holds a control character");
      if (!canonical_allows (&at, reals, err))
        return false;
    }
    return true;
  case JSON_ARRAY:
    for (size_t i = 0; i < json_array_size (value); i++) {
      json at = json_element (j, i);
      if (!canonical_allows (&at, reals, err))
        return false;
    }
    return true;
  case JSON_REAL:
    return reals || json_error (j, err, "numbers are whole here");
  case JSON_STRING:
    return text_is_clean (value) || json_error (j, err, "the text holds a control character");
  default:
    return true;
  }
}

const char *json_canonical (const json *j, bool reals, arena *a, error *err) {
  if (!canonical_allows (j, reals, err))
    return NULL;
  size_t flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY;
  size_t size = json_dumpb (value_of (j), NULL, 0, flags);
  char *text = size ? arena_alloc (a, (int64_t)size + 1, 1, err) : NULL;
  if (!text || json_dumpb (value_of (j), text, size, flags) != size) {
    error_memory (err);
    return NULL;
  }
  return text;
}

/* ---- writing ---- */

enum { MOST_DEPTH = 64 };

/* The NUL behind the text is written by json_finish: most pieces are a few bytes. */
static void put (json_writer *w, const char *text, size_t size) {
  if (w->failed || !bytes_room (&w->out, (int64_t)size, NULL)) {
    w->failed = true;
    return;
  }
  memcpy (w->out.data + w->out.size, text, size);
  w->out.size += (int64_t)size;
}

static void put_line (json_writer *w) {
  static const char blanks[] = "\n                                ";
  if (w->depth <= w->pretty_depth && w->pretty_depth > 0)
    put (w, blanks, 1 + 2 * (size_t)(w->depth < 16 ? w->depth : 16));
}

static void before_value (json_writer *w) {
  if (w->after_key) {
    w->after_key = false;
    return;
  }
  if (w->comma[w->depth])
    put (w, ",", 1);
  w->comma[w->depth] = true;
  if (w->depth > 0)
    put_line (w);
}

void json_begin (json_writer *w, int pretty_depth) {
  *w = (json_writer){ .pretty_depth = pretty_depth };
}

static void open_level (json_writer *w, char bracket) {
  before_value (w);
  put (w, &bracket, 1);
  assert (w->depth + 1 < MOST_DEPTH);
  w->depth++;
  w->comma[w->depth] = false;
#ifndef NDEBUG
  w->last_key[w->depth][0] = 0;
#endif
}

static void close_level (json_writer *w, char bracket) {
  bool any = w->comma[w->depth];
  w->depth--;
  /* the closing bracket stands on a line of its own where the members did */
  if (any && w->depth + 1 <= w->pretty_depth)
    put_line (w);
  put (w, &bracket, 1);
}

void json_open_object (json_writer *w) {
  open_level (w, '{');
}

void json_close_object (json_writer *w) {
  close_level (w, '}');
}

void json_open_array (json_writer *w) {
  open_level (w, '[');
}

void json_close_array (json_writer *w) {
  close_level (w, ']');
}

/* Names of files, and texts that were cut to fit, may hold bytes that are no UTF-8; JSON must not.
 */
static void put_quoted (json_writer *w, const char *text) {
  put (w, "\"", 1);
  const char *from = text;
  for (const char *at = text;; at++) {
    unsigned char c = (unsigned char)*at;
    int length = utf8_length (at, 4);
    if (c >= 0x20 && c != '"' && c != '\\' && length > 0) {
      at += length - 1;
      continue;
    }
    put (w, from, (size_t)(at - from));
    if (c == 0)
      break;
    char escape[8] = "?";
    if (length > 0)
      snprintf (escape, sizeof escape, c < 0x20 ? "\\u%04x" : "\\%c", c);
    put (w, escape, strlen (escape));
    from = at + 1;
  }
  put (w, "\"", 1);
}

void json_put_key (json_writer *w, const char *key) {
#ifndef NDEBUG
  assert (strcmp (w->last_key[w->depth], key) < 0 && "object keys are written in sorted order");
  size_t length = strnlen (key, sizeof w->last_key[0] - 1);
  memcpy (w->last_key[w->depth], key, length);
  w->last_key[w->depth][length] = 0;
#endif
  before_value (w);
  put_quoted (w, key);
  if (w->pretty_depth > 0)
    put (w, ": ", 2);
  else
    put (w, ":", 1);
  w->after_key = true;
}

void json_put_int (json_writer *w, int64_t value) {
  char digits[24];
  char *at = digits + sizeof digits;
  uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  before_value (w);
  do
    *--at = (char)('0' + left % 10);
  while (left /= 10);
  if (value < 0)
    *--at = '-';
  put (w, at, (size_t)(digits + sizeof digits - at));
}

void json_put_bool (json_writer *w, bool value) {
  json_put_raw (w, value ? "true" : "false");
}

void json_put_null (json_writer *w) {
  json_put_raw (w, "null");
}

void json_put_text (json_writer *w, const char *text) {
  if (!text) {
    json_put_null (w);
    return;
  }
  before_value (w);
  put_quoted (w, text);
}

void json_put_fixed (json_writer *w, double value, int decimals) {
  char text[400]; /* the largest double has 309 digits before the point */
  if (!isfinite (value)) {
    json_put_null (w);
    return;
  }
  snprintf (text, sizeof text, "%.*f", decimals, value);
  json_put_raw (w, text);
}

void json_put_raw (json_writer *w, const char *text) {
  before_value (w);
  put (w, text, strlen (text));
}

void json_add_int (json_writer *w, const char *key, int64_t value) {
  json_put_key (w, key);
  json_put_int (w, value);
}

void json_add_bool (json_writer *w, const char *key, bool value) {
  json_put_key (w, key);
  json_put_bool (w, value);
}

void json_add_text (json_writer *w, const char *key, const char *text) {
  json_put_key (w, key);
  json_put_text (w, text);
}

void json_add_fixed (json_writer *w, const char *key, double value, int decimals) {
  json_put_key (w, key);
  json_put_fixed (w, value, decimals);
}

void json_add_share (json_writer *w, const char *key, int64_t ppm) {
  json_add_fixed (w, key, (double)ppm / 1e6, 6);
}

void json_add_raw (json_writer *w, const char *key, const char *text) {
  json_put_key (w, key);
  json_put_raw (w, text);
}

bool json_finish (json_writer *w, bytes *out, error *err) {
  assert (w->depth == 0 || w->failed);
  put (w, w->pretty_depth > 0 ? "\n" : "", w->pretty_depth > 0);
  if (w->failed) {
    bytes_free (&w->out);
    return error_memory (err);
  }
  w->out.data[w->out.size] = 0; /* bytes_room keeps a place for it */
  *out = w->out;
  w->out = (bytes){ 0 };
  return true;
}
