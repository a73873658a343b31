/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files whole: read with gzip and zstd undone (seen from the first bytes), written so that a reader
   finds the old file or the new one, never half of one.  "-" is standard input or output. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct bytes {
  char *data; /* malloc'ed, with a NUL after the last byte; free with bytes_free */
  int64_t size, capacity;
} bytes;

typedef enum file_coding { FILE_PLAIN, FILE_GZIP, FILE_ZSTD } file_coding;

/* limit_bytes bounds what comes out of decompression too; <= 0: 4 GiB. */
bool file_read (const char *path, int64_t limit_bytes, bytes *out, error *err) MUST_CHECK;
/* The file as it lies on disk, compressed or not. */
bool file_read_raw (const char *path, int64_t limit_bytes, bytes *out, error *err) MUST_CHECK;
/* The bytes of a mark of UTF-8 in front of a text, which says nothing: 3, or 0. */
int64_t file_mark (const char *text, int64_t size);
/* file_read from memory; a plain text is copied. */
bool file_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out,
                  error *err) MUST_CHECK;
bool file_write (const char *path, const void *data, int64_t size, file_coding coding,
                 error *err) MUST_CHECK;
/* The same with the coding that its path ends in; frees the text. */
bool file_store (const char *path, bytes *text, error *err) MUST_CHECK;
/* All of it into an open file. */
bool file_put (int fd, const void *data, int64_t size, error *err) MUST_CHECK;
/* Has file_write any chance? For those who work long before there is something to write. */
bool file_creatable (const char *path, error *err) MUST_CHECK;
/* By its ending: .gz, .zst, else plain. */
file_coding file_coding_of (const char *path);

bool bytes_append (bytes *b, const void *data, int64_t size, error *err) MUST_CHECK;
/* Room for `more` bytes behind the last; the caller adds to size what it used. */
bool bytes_room (bytes *b, int64_t more, error *err) MUST_CHECK;
void bytes_free (bytes *b);
