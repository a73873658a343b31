/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/common/stream.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/file.h"
#include "base/utf8.h"

stream stream_open (const char *text, int64_t size, error *err) {
  return (stream){ .text = text, .size = size, .at = file_mark (text, size), .err = err };
}

/* Lines are counted only when there is something to complain about. */
bool stream_fail_at (stream *s, int64_t at, const char *format, ...) {
  if (s->failed)
    return false;
  s->failed = true;
  if (s->err && s->err->code == ERR_none) {
    char text[400];
    va_list args;
    va_start (args, format);
    vsnprintf (text, sizeof text, format, args);
    va_end (args);
    if (at > s->size)
      at = s->size;
    int line = 1;
    for (int64_t i = 0; i < at; i++)
      line += s->text[i] == '\n';
    error_set (s->err, ERR_input, "byte %lld: %s", (long long)at, text);
    s->err->line = line;
  }
  return false;
}

bool stream_fail (stream *s, const char *format, ...) {
  char text[400];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  return stream_fail_at (s, s->at, "%s", text);
}

static bool ended (stream *s) {
  s->cut |= !s->failed;
  return stream_fail_at (s, s->size,
                         "the text ends in the middle: was the profiler killed, or the copy cut?");
}

static int next_char (stream *s) {
  while (s->at < s->size) {
    char c = s->text[s->at];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
      return (unsigned char)c;
    s->at++;
  }
  return -1;
}

stream_kind stream_peek (stream *s) {
  if (s->failed)
    return STREAM_NOTHING;
  int c = next_char (s);
  switch (c) {
  case -1:
    ended (s);
    return STREAM_NOTHING;
  case '{':
    return STREAM_OBJECT;
  case '[':
    return STREAM_ARRAY;
  case '"':
    return STREAM_TEXT;
  case 't':
  case 'f':
    return STREAM_WORD;
  case 'n': /* null, or nan */
    return s->at + 1 < s->size && s->text[s->at + 1] == 'u' ? STREAM_WORD : STREAM_NUMBER;
  case 'N':
  case 'i':
  case 'I':
  case '-':
    return STREAM_NUMBER;
  default:
    if (c >= '0' && c <= '9')
      return STREAM_NUMBER;
    stream_fail (s, "a value was expected, not '%c'", c);
    return STREAM_NOTHING;
  }
}

static bool open_level (stream *s, stream_kind kind, const char *what) {
  stream_kind found = stream_peek (s);
  if (s->failed)
    return false;
  if (found != kind)
    return stream_fail (s, "%s was expected", what);
  if (s->depth == STREAM_DEPTH)
    return stream_fail (s, "nested deeper than %d levels", STREAM_DEPTH);
  s->at++;
  s->object[s->depth] = kind == STREAM_OBJECT;
  s->fresh[s->depth++] = true;
  return true;
}

bool stream_object (stream *s) {
  return open_level (s, STREAM_OBJECT, "an object");
}

bool stream_array (stream *s) {
  return open_level (s, STREAM_ARRAY, "a list");
}

/* Past the comma, or past the closing bracket (false). */
static bool advance (stream *s, char close) {
  if (s->failed)
    return false;
  assert (s->depth > 0);
  int c = next_char (s);
  if (c < 0)
    return ended (s);
  bool *fresh = &s->fresh[s->depth - 1];
  if (c == close) {
    s->at++;
    s->depth--;
    return false;
  }
  if (!*fresh) {
    if (c != ',')
      return stream_fail (s, "',' or '%c' was expected, not '%c'", close, c);
    s->at++;
    if (next_char (s) == close)
      return stream_fail (s, "a value was expected, not '%c'", close);
  }
  *fresh = false;
  return true;
}

static bool quoted (stream *s, slice *out) {
  int64_t start = s->at + 1, at = start;
  bool escaped = false;
  const char *end = memchr (s->text + at, '"', (size_t)(s->size - at));
  const char *escape = end ? memchr (s->text + at, '\\', (size_t)(end - (s->text + at))) : NULL;
  if (!end)
    return ended (s);
  at = end - s->text;
  if (escape) { /* the quote may be escaped itself: from here on, one by one */
    escaped = true;
    at = escape - s->text;
    while (at < s->size && s->text[at] != '"')
      at += s->text[at] == '\\' ? 2 : 1;
    if (at >= s->size)
      return ended (s);
  }
  *out = (slice){ s->text + start, at - start, escaped };
  s->at = at + 1;
  return true;
}

bool stream_element (stream *s) {
  return advance (s, ']');
}

bool stream_member (stream *s, slice *key) {
  if (!advance (s, '}'))
    return false;
  int c = next_char (s);
  if (c < 0)
    return ended (s);
  if (c != '"')
    return stream_fail (s, "a key was expected, not '%c'", c);
  if (!quoted (s, key))
    return false;
  c = next_char (s);
  if (c < 0)
    return ended (s);
  if (c != ':')
    return stream_fail (s, "':' was expected, not '%c'", c);
  s->at++;
  return true;
}

bool stream_text (stream *s, slice *out) {
  stream_kind kind = stream_peek (s);
  if (s->failed)
    return false;
  if (kind != STREAM_TEXT)
    return stream_fail (s, "a string was expected");
  return quoted (s, out);
}

static bool is_bare (char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

static bool word_is (slice text, const char *word) {
  size_t length = strlen (word);
  return text.size == (int64_t)length && strncasecmp (text.at, word, length) == 0;
}

static bool is_number (slice text) {
  const char *at = text.at, *end = at + text.size;
  if (at < end && *at == '-')
    at++;
  slice rest = { at, end - at, false };
  if (word_is (rest, "nan") || word_is (rest, "inf") || word_is (rest, "infinity"))
    return true;
  const char *digits = at;
  while (at < end && *at >= '0' && *at <= '9')
    at++;
  if (at == digits)
    return false;
  if (at < end && *at == '.') {
    digits = ++at;
    while (at < end && *at >= '0' && *at <= '9')
      at++;
    if (at == digits)
      return false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < end && (*at == '+' || *at == '-'))
      at++;
    digits = at;
    while (at < end && *at >= '0' && *at <= '9')
      at++;
    if (at == digits)
      return false;
  }
  return at == end;
}

bool stream_scalar (stream *s, slice *out) {
  stream_kind kind = stream_peek (s);
  if (s->failed)
    return false;
  if (kind == STREAM_TEXT)
    return quoted (s, out);
  if (kind != STREAM_NUMBER && kind != STREAM_WORD)
    return stream_fail (s, "a number or a string was expected");
  int64_t at = s->at;
  while (at < s->size && is_bare (s->text[at]))
    at++;
  *out = (slice){ s->text + s->at, at - s->at, false };
  if (at == s->size && s->depth > 0)
    return ended (s);
  if (kind == STREAM_WORD
          ? !(slice_is (*out, "true") || slice_is (*out, "false") || slice_is (*out, "null"))
          : !is_number (*out))
    return stream_fail (s, "'%.*s' is no value", (int)(out->size < 40 ? out->size : 40), out->at);
  s->at = at;
  return true;
}

bool stream_skip (stream *s) {
  int base = s->depth;
  do {
    slice ignored;
    stream_kind kind = stream_peek (s);
    bool ok = kind == STREAM_OBJECT  ? stream_object (s)
              : kind == STREAM_ARRAY ? stream_array (s)
                                     : stream_scalar (s, &ignored);
    while (ok && s->depth > base &&
           !(s->object[s->depth - 1] ? stream_member (s, &ignored) : stream_element (s)))
      ok = !s->failed;
    if (!ok)
      return false;
  } while (s->depth > base);
  return !s->failed;
}

bool stream_end (stream *s) {
  if (s->failed)
    return false;
  if (next_char (s) >= 0)
    return stream_fail (s, "nothing may follow the end of the document");
  return true;
}

bool stream_int (stream *s, int64_t *out) {
  slice text;
  int64_t at = s->at;
  if (!stream_scalar (s, &text))
    return false;
  if (!slice_decimal (text, 0, out))
    return stream_fail_at (s, at, "a whole number was expected, not '%.*s'",
                           (int)(text.size < 40 ? text.size : 40), text.at);
  return true;
}

bool stream_us (stream *s, int64_t *ns) {
  slice text;
  int64_t at = s->at;
  if (!stream_scalar (s, &text))
    return false;
  if (!slice_decimal (text, 3, ns))
    return stream_fail_at (s, at, "a time in microseconds was expected, not '%.*s'",
                           (int)(text.size < 40 ? text.size : 40), text.at);
  return true;
}

/* [+-]digits, behind the e. */
static bool add_exponent (const char *at, const char *end, int64_t *exponent) {
  bool down = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+'))
    at++;
  if (at == end)
    return false;
  int64_t value = 0;
  for (; at < end; at++) {
    if (*at < '0' || *at > '9' || value > 10000)
      return false;
    value = value * 10 + (*at - '0');
  }
  *exponent += down ? -value : value;
  return true;
}

/* [-]digits[.digits][e[+-]digits] */
bool slice_decimal (slice text, int scale, int64_t *out) {
  assert (scale >= 0 && out);
  if (text.size == 0)
    return false;
  const char *at = text.at, *end = at + text.size;
  bool negative = at < end && *at == '-';
  if (negative)
    at++;
  /* the exponent first, since it moves the point */
  const char *stop = at;
  while (stop < end && *stop != 'e' && *stop != 'E')
    stop++;
  int64_t exponent = scale;
  if (stop < end && !add_exponent (stop + 1, end, &exponent))
    return false;
  int64_t value = 0, after_point = 0;
  bool point = false, any = false, half = false, rounded = false;
  for (; at < stop; at++) {
    if (*at == '.' && !point) {
      point = true;
      continue;
    }
    if (*at < '0' || *at > '9')
      return false;
    any = true;
    if (point && after_point >= exponent) { /* the first digit past the last decides */
      if (!rounded)
        half = *at >= '5';
      rounded = true;
      continue;
    }
    after_point += point;
    if (__builtin_mul_overflow (value, 10, &value) ||
        __builtin_add_overflow (value, *at - '0', &value))
      return false;
  }
  if (!any)
    return false;
  for (; after_point < exponent && value; after_point++)
    if (__builtin_mul_overflow (value, 10, &value))
      return false;
  for (; after_point > exponent && value; after_point--) { /* a negative exponent */
    half = value % 10 >= 5;
    value /= 10;
  }
  if (after_point > exponent)
    half = false;
  if (half && __builtin_add_overflow (value, 1, &value))
    return false;
  *out = negative ? -value : value;
  return true;
}

static int hex_digit (char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* Bytes of the character at `at`; 0: it is none, or a control character. */
static int printable_length (const char *at, int64_t left) {
  return (unsigned char)*at < 0x20 || *at == 0x7f ? 0 : utf8_length (at, left);
}

/* The four digits behind \u; -1: they are not four. */
static int hex_four (slice text, int64_t at) {
  int code = 0;
  for (int d = 0; d < 4; d++) {
    int digit = at + d < text.size ? hex_digit (text.at[at + d]) : -1;
    if (digit < 0)
      return -1;
    code = code * 16 + digit;
  }
  return code;
}

/* The character escaped at `at`, behind \u; two escapes make one beyond the first 2^16.  *at moves
   behind it.  '?' stands for what is none, or a control character. */
static int escaped_char (slice text, int64_t *at) {
  int code = hex_four (text, *at);
  *at = *at + 4 < text.size ? *at + 4 : text.size;
  if (code >= 0xd800 && code < 0xdc00 && *at + 1 < text.size && text.at[*at] == '\\' &&
      text.at[*at + 1] == 'u') {
    int low = hex_four (text, *at + 2);
    if (low >= 0xdc00 && low < 0xe000) {
      *at += 6;
      return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
  }
  return code < 0x20 || code == 0x7f || (code >= 0xd800 && code < 0xe000) ? '?' : code;
}

/* Bytes written. */
static int put_utf8 (char *to, int code) {
  int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const int marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
  for (int i = n - 1; i > 0; i--, code >>= 6)
    to[i] = (char)(0x80 | (code & 0x3f));
  to[0] = (char)(marks[n] | code);
  return n;
}

const char *slice_name (slice text, arena *a, error *err) {
  char *name = NEW (a, text.size + 1, char, err);
  if (!name)
    return NULL;
  int64_t size = 0;
  for (int64_t i = 0; i < text.size;) {
    char c = text.at[i];
    if (c == '\\' && text.escaped && i + 1 < text.size) {
      char e = text.at[i + 1];
      i += 2;
      if (e == 'u')
        size += put_utf8 (name + size, escaped_char (text, &i));
      else
        name[size++] = e == '"' || e == '\\' || e == '/' ? e : ' ';
      continue;
    }
    int n = printable_length (text.at + i, text.size - i);
    if (n == 0) {
      name[size++] = '?';
      i++;
    }
    for (; n > 0; n--)
      name[size++] = text.at[i++];
  }
  name[size] = 0;
  return name;
}
