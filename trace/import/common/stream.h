/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pull reader of JSON text that is too big for a tree: the caller asks for what comes next and
   skips what it does not need; nothing is copied.  The first mistake is remembered with its byte
   and line, after which every call says "no more".

   Besides JSON it takes nan, inf and Infinity where a number may stand: profilers write them. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

enum { STREAM_DEPTH = 128 };

/* A piece of the text.  Of a string: what stands between the quotes, escapes not undone. */
typedef struct slice {
  const char *at;
  int64_t size;
  bool escaped;
} slice;

typedef struct stream {
  const char *text;
  int64_t size, at;
  int depth;
  bool fresh[STREAM_DEPTH];  /* nothing was read yet at this depth */
  bool object[STREAM_DEPTH]; /* else a list */
  error *err;
  bool failed;
  bool cut; /* because the text ends too early */
} stream;

typedef enum stream_kind {
  STREAM_NOTHING, /* the end, or a mistake */
  STREAM_OBJECT,
  STREAM_ARRAY,
  STREAM_TEXT,
  STREAM_NUMBER,
  STREAM_WORD /* true, false, null */
} stream_kind;

stream stream_open (const char *text, int64_t size, error *err);
/* An error here (or at a byte of the text), with its line; always false. */
bool stream_fail (stream *s, const char *format, ...) PRINTF_LIKE (2, 3);
bool stream_fail_at (stream *s, int64_t at, const char *format, ...) PRINTF_LIKE (3, 4);

stream_kind stream_peek (stream *s);
/* while (stream_member (s, &key)) { read or skip the value } after stream_object; both are false
   at the end and after a mistake. */
bool stream_object (stream *s) MUST_CHECK;
bool stream_member (stream *s, slice *key) MUST_CHECK;
bool stream_array (stream *s) MUST_CHECK;
bool stream_element (stream *s) MUST_CHECK;
bool stream_text (stream *s, slice *out) MUST_CHECK;
/* A string, a number or a word as it stands, without the quotes: ids come as either. */
bool stream_scalar (stream *s, slice *out) MUST_CHECK;
bool stream_skip (stream *s);
/* Nothing but white space may follow. */
bool stream_end (stream *s) MUST_CHECK;

bool stream_int (stream *s, int64_t *out) MUST_CHECK;
/* Decimal microseconds to whole nanoseconds, never through a double. */
bool stream_us (stream *s, int64_t *ns) MUST_CHECK;

/* ---- slices ---- */

/* Inline, so that the length of a literal is known: these are most of the time of an import. */
static inline bool slice_is (slice text, const char *word) {
  size_t length = strlen (word);
  return text.size == (int64_t)length && memcmp (text.at, word, length) == 0;
}

static inline bool slice_starts (slice text, const char *word) {
  size_t length = strlen (word);
  return text.size >= (int64_t)length && memcmp (text.at, word, length) == 0;
}

/* Starts with the word, behind which nothing, white space or a comment (#) stands. */
static inline bool slice_begins (slice text, const char *word) {
  int64_t length = (int64_t)strlen (word);
  return slice_starts (text, word) &&
         (text.size == length || memchr (" \t\r\n#", text.at[length], 5) != NULL);
}

/* A decimal number times 10^scale, rounded half away from zero; false: it is none, or too large. */
bool slice_decimal (slice text, int scale, int64_t *out) MUST_CHECK;
/* Escapes undone, control characters and broken UTF-8 replaced by '?': fit for a trace. */
const char *slice_name (slice text, arena *a, error *err) MUST_CHECK;
