/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON in and out: the only door to Jansson.

   Reading walks the document with a `json` on the stack per level, each pointing at its parent, so
   that a complaint can name its place as a JSON pointer (RFC 6901) at no cost while all is well.
   Writing is a stream into a byte buffer; the writer's caller gives object keys in sorted order,
   which is checked, so that the same thing is always the same text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

/* ---- reading ---- */

typedef struct json_document json_document; /* malloc'ed by Jansson; free with json_close */

typedef struct json {
  const void *value; /* Jansson's; NULL: absent */
  const struct json *up;
  const char *key;
  size_t index;
} json;

/* Duplicate keys, NaN, depth beyond 2048, and text behind the document are errors. */
json_document *json_open (const char *text, int64_t size, error *err) MUST_CHECK;
void json_close (json_document *d);
json json_root (const json_document *d);

bool json_is_absent (const json *j); /* absent, or null */
bool json_is_object (const json *j);
bool json_is_array (const json *j);
bool json_is_string (const json *j);
bool json_is_int (const json *j);

/* The member of an object; an absent one has a NULL value.  The object must outlive the result. */
json json_member (const json *object, const char *key);
/* The same, an error where it is absent. */
bool json_need (const json *object, const char *key, json *out, error *err) MUST_CHECK;
json json_element (const json *array, size_t index);
size_t json_count (const json *array_or_object); /* 0 for anything else */

bool json_want_object (const json *j, error *err) MUST_CHECK;
bool json_want_array (const json *j, error *err) MUST_CHECK;

/* Values; where the value is absent, *out is left as the caller set it (the default). */
bool json_get_int (const json *j, int64_t low, int64_t high, int64_t *out, error *err) MUST_CHECK;
bool json_get_int32 (const json *j, int32_t low, int32_t high, int32_t *out, error *err) MUST_CHECK;
bool json_get_bool (const json *j, bool *out, error *err) MUST_CHECK;
/* The text lives as long as the document; control characters are refused. */
bool json_get_text (const json *j, const char **out, error *err) MUST_CHECK;
bool json_get_double (const json *j, double *out, error *err) MUST_CHECK;
/* One of a list of words (NULL ends it); *out is its place. */
bool json_get_word (const json *j, const char *const *words, int *out, error *err) MUST_CHECK;
/* Many ints at once, NULL where an element is null: `absent` stands for it. */
bool json_get_ints (const json *array, int64_t low, int64_t high, int64_t absent, int64_t *out,
                    size_t count, error *err) MUST_CHECK;

/* The same of a member, by its key. */
static inline MUST_CHECK bool json_read_int (const json *object, const char *key, int64_t low,
                                             int64_t high, int64_t *out, error *err) {
  json j = json_member (object, key);
  return json_get_int (&j, low, high, out, err);
}
static inline MUST_CHECK bool json_read_bool (const json *object, const char *key, bool *out,
                                              error *err) {
  json j = json_member (object, key);
  return json_get_bool (&j, out, err);
}
static inline MUST_CHECK bool json_read_text (const json *object, const char *key, const char **out,
                                              error *err) {
  json j = json_member (object, key);
  return json_get_text (&j, out, err);
}
static inline MUST_CHECK bool json_read_word (const json *object, const char *key,
                                              const char *const *words, int *out, error *err) {
  json j = json_member (object, key);
  return json_get_word (&j, words, out, err);
}

/* Any key but these (NULL ends the list) is a warning, or an error where `strict`. */
bool json_known (const json *object, const char *const *keys, bool strict, const logger *log,
                 error *err) MUST_CHECK;
/* An error at this place. */
bool json_error (const json *j, error *err, const char *format, ...) PRINTF_LIKE (3, 4);

/* The value as compact text, keys sorted by their bytes, in the arena.  Real numbers are refused
   unless `reals`. */
const char *json_canonical (const json *j, bool reals, arena *a, error *err) MUST_CHECK;

/* ---- writing ---- */

typedef struct json_writer {
  bytes out;
  int depth;
  int pretty_depth; /* one member a line down to this depth, compact below */
  bool comma[64];
  bool failed; /* a buffer could not grow; json_finish says so */
  bool after_key;
#ifndef NDEBUG
  char last_key[64][64];
#endif
} json_writer;

void json_begin (json_writer *w, int pretty_depth); /* 0: all compact */
void json_open_object (json_writer *w);
void json_close_object (json_writer *w);
void json_open_array (json_writer *w);
void json_close_array (json_writer *w);
void json_put_key (json_writer *w, const char *key);
void json_put_int (json_writer *w, int64_t value);
void json_put_bool (json_writer *w, bool value);
void json_put_null (json_writer *w);
void json_put_text (json_writer *w, const char *text); /* NULL: null */
/* Fixed decimals, so that the text does not depend on the C library; not finite: null. */
void json_put_fixed (json_writer *w, double value, int decimals);
void json_put_raw (json_writer *w, const char *text); /* JSON already */

/* A key and its value. */
void json_add_int (json_writer *w, const char *key, int64_t value);
void json_add_bool (json_writer *w, const char *key, bool value);
void json_add_text (json_writer *w, const char *key, const char *text);
void json_add_fixed (json_writer *w, const char *key, double value, int decimals);
void json_add_share (json_writer *w, const char *key, int64_t ppm); /* as a fraction */
void json_add_raw (json_writer *w, const char *key, const char *text);
/* The document is one object, which is begun too. */
static inline void json_begin_object (json_writer *w, int pretty_depth) {
  json_begin (w, pretty_depth);
  json_open_object (w);
}
/* A key, and its value is begun. */
static inline void json_add_object (json_writer *w, const char *key) {
  json_put_key (w, key);
  json_open_object (w);
}
static inline void json_add_array (json_writer *w, const char *key) {
  json_put_key (w, key);
  json_open_array (w);
}
static inline void json_add_indices (json_writer *w, const char *key, const int32_t *at,
                                     int32_t count) {
  json_add_array (w, key);
  for (int32_t i = 0; i < count; i++)
    json_put_int (w, at[i]);
  json_close_array (w);
}

/* The text moves to *out (free with bytes_free). */
bool json_finish (json_writer *w, bytes *out, error *err) MUST_CHECK;
