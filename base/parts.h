/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several files in one text, the form in which HTTP carries them (multipart, RFC 2046 and 7578). */
#pragma once

#include "base/arena.h"
#include "base/file.h"

typedef struct part {
  const char *name; /* of its file, without folders */
  const char *data; /* not a copy */
  int64_t size;
} part;

enum { PARTS_LINE = 80 }; /* bytes of a boundary, with its NUL */

/* Does the text begin like one of several parts? */
bool parts_are (const char *data, int64_t size);
/* At most `most` of them; one more is an error. */
bool parts_read (const char *data, int64_t size, arena *a, part *out, int most, int *n,
                 error *err) MUST_CHECK;
/* The same parts make the same bytes: what divides them is their digest. */
bool parts_write (const part *parts, int n, bytes *out, char boundary[PARTS_LINE],
                  error *err) MUST_CHECK;
