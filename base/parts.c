/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/parts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/sha256.h"

enum { MOST_BOUNDARY = 72, MOST_HEAD = 4096, MOST_NAME = 256 };

/* The bytes of the first line with its dashes, or 0: no boundary stands there. */
static int64_t boundary_of (const char *data, int64_t size) {
  int64_t most = size < MOST_BOUNDARY ? size : MOST_BOUNDARY;
  const char *end = most > 2 ? memmem (data, (size_t)most, "\r\n", 2) : NULL;
  return end && end - data > 2 && memcmp (data, "--", 2) == 0 ? end - data : 0;
}

bool parts_are (const char *data, int64_t size) {
  int64_t line = boundary_of (data, size);
  return line && size - line > 10 && strncasecmp (data + line + 2, "content-", 8) == 0;
}

/* `filename` of a head, else `name`; the head is no text by itself. */
static const char *name_of (const char *head, int64_t size, arena *a, error *err) {
  static const char *const marks[] = { "filename=\"", " name=\"" };
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    size_t length = strlen (marks[i]);
    const char *at = memmem (head, (size_t)size, marks[i], length);
    const char *from = at ? at + length : NULL;
    const char *end = at ? memchr (from, '"', (size_t)(head + size - from)) : NULL;
    if (!end)
      continue;
    for (const char *p = from; p < end; p++)
      if (*p == '/' || *p == '\\')
        from = p + 1;
    if (end > from)
      return arena_string_n (a, from, (size_t)(end - from), err);
  }
  return arena_string (a, "part", err);
}

static bool malformed (int number, const char *wrong, error *err) {
  return error_set (err, ERR_input, "part %d of the multipart body %s", number, wrong);
}

/* Between its head and the next boundary; `at` moves behind that. */
static bool read_part (const char *data, int64_t size, int64_t line, int64_t *at, arena *a,
                       part *out, int number, error *err) {
  const char *head = data + *at;
  int64_t left = size - *at, most = left < MOST_HEAD ? left : MOST_HEAD;
  const char *behind = memmem (head, (size_t)most, "\r\n\r\n", 4);
  if (!behind)
    return malformed (number, "has no end of its head", err);
  const char *from = behind + 4;
  const char *end = from - 2; /* an empty part's line end is that of its head */
  for (;;) {
    end = memmem (end, (size_t)(data + size - end), "\r\n--", 4);
    if (!end || data + size - end < line + 4)
      return malformed (number, "has no boundary behind it", err);
    if (memcmp (end + 2, data, (size_t)line) == 0)
      break;
    end++;
  }
  *out = (part){ name_of (head, behind - head, a, err), from, end > from ? end - from : 0 };
  *at = end + 2 + line - data;
  return out->name;
}

bool parts_read (const char *data, int64_t size, arena *a, part *out, int most, int *n,
                 error *err) {
  int64_t line = boundary_of (data, size), at = line;
  *n = 0;
  if (!line)
    return error_set (err, ERR_input, "the body is no multipart body: it begins with no boundary");
  while (size - at >= 2 && memcmp (data + at, "\r\n", 2) == 0) {
    part one;
    at += 2;
    if (*n == most)
      return error_set (err, ERR_input, "the body has more than %d files", most);
    if (!read_part (data, size, line, &at, a, &one, *n + 1, err))
      return false;
    out[(*n)++] = one;
  }
  return size - at >= 2 && memcmp (data + at, "--", 2) == 0
             ? true
             : malformed (*n, "is the last, and nothing ends it", err);
}

/* Its last folder's end on, and nothing that would end the head's quotes. */
static void plain_name (const char *name, char to[MOST_NAME]) {
  const char *folder = strrchr (name, '/');
  snprintf (to, MOST_NAME, "%s", folder ? folder + 1 : name);
  for (char *p = to; *p; p++)
    if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
      *p = '_';
}

bool parts_write (const part *parts, int n, bytes *out, char boundary[PARTS_LINE], error *err) {
  char digest[SHA256_TEXT], head[512], name[MOST_NAME];
  sha256 hash;
  sha256_start (&hash);
  for (int i = 0; i < n; i++)
    sha256_add (&hash, parts[i].data, (size_t)parts[i].size);
  sha256_text (&hash, digest);
  snprintf (boundary, PARTS_LINE, "ferry-%.48s", digest);
  for (int i = 0; i < n; i++) {
    plain_name (parts[i].name, name);
    int length = snprintf (head, sizeof head,
                           "%s--%s\r\nContent-Disposition: form-data; name=\"file\"; "
                           "filename=\"%s\"\r\nContent-Type: application/octet-stream\r\n\r\n",
                           i ? "\r\n" : "", boundary, name);
    if (!bytes_append (out, head, length, err) ||
        !bytes_append (out, parts[i].data, parts[i].size, err))
      return false;
  }
  int length = snprintf (head, sizeof head, "\r\n--%s--\r\n", boundary);
  return bytes_append (out, head, length, err);
}
