/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/coding.h"

#include <zlib.h>

#include "base/units.h"

enum { CHUNK = 256 * 1024, GZIP_WINDOW = 15 + 16 };

bool coding_is_gzip (const void *data, int64_t size) {
  const unsigned char *at = data;
  return size >= 2 && at[0] == 0x1f && at[1] == 0x8b;
}

bool coding_is_packed (const void *data, int64_t size) {
  return coding_is_gzip (data, size) || coding_is_zstd (data, size);
}

bool coding_too_large (int64_t limit_bytes, error *err) {
  char limit[UNITS_TEXT];
  return error_set (err, ERR_too_large, "the file is larger than %s when decompressed",
                    units_bytes (limit, limit_bytes));
}

bool coding_is_bomb (int64_t packed_bytes, int64_t bytes, error *err) {
  enum { FREE_BYTES = 16 << 20, MOST_RATIO = 200 };
  if (bytes <= FREE_BYTES || bytes / MOST_RATIO <= packed_bytes)
    return false;
  error_set (err, ERR_input, "the file is more than %d times as large when decompressed",
             MOST_RATIO);
  return true;
}

/* zlib counts in 32 bits: hand it the input in pieces. */
static void feed (z_stream *z, const unsigned char *data, int64_t size, int64_t *given) {
  int64_t piece = size - *given > 1 << 30 ? 1 << 30 : size - *given;
  z->next_in = (unsigned char *)(uintptr_t)(data + *given);
  z->avail_in = (unsigned)piece;
  *given += piece;
}

bool gzip_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out, error *err) {
  z_stream z = { 0 };
  if (inflateInit2 (&z, GZIP_WINDOW) != Z_OK)
    return error_memory (err);
  bool ok = false;
  int64_t given = 0;
  for (;;) {
    if (z.avail_in == 0)
      feed (&z, data, size, &given);
    if (!bytes_room (out, CHUNK, err))
      break;
    z.next_out = (unsigned char *)out->data + out->size;
    z.avail_out = CHUNK;
    int status = inflate (&z, Z_NO_FLUSH);
    out->size += CHUNK - (int64_t)z.avail_out;
    if (out->size > limit_bytes) {
      coding_too_large (limit_bytes, err);
      break;
    }
    if (coding_is_bomb (given - (int64_t)z.avail_in, out->size, err))
      break;
    if (status == Z_STREAM_END) {
      bool more = z.avail_in > 0 || given < size;
      if (!more) {
        ok = true;
        break;
      }
      /* A gzip file may be several, one behind the other. */
      if (inflateReset (&z) != Z_OK) {
        error_set (err, ERR_internal, "zlib cannot start again");
        break;
      }
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && z.avail_in == 0 && given == size && z.avail_out > 0)) {
      error_set (err, ERR_input, "the gzip data ends early, after byte %lld", (long long)size);
      break;
    } else if (status != Z_OK) {
      error_set (err, ERR_input, "the gzip data is damaged near byte %lld",
                 (long long)(given - (int64_t)z.avail_in));
      break;
    }
  }
  inflateEnd (&z);
  return ok;
}

bool gzip_encode (const void *data, int64_t size, bytes *out, error *err) {
  z_stream z = { 0 };
  if (deflateInit2 (&z, 6, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return error_memory (err);
  int64_t given = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (z.avail_in == 0 && given < size)
      feed (&z, data, size, &given);
    if (!bytes_room (out, CHUNK, err))
      break;
    z.next_out = (unsigned char *)out->data + out->size;
    z.avail_out = CHUNK;
    status = deflate (&z, given == size ? Z_FINISH : Z_NO_FLUSH);
    out->size += CHUNK - (int64_t)z.avail_out;
  }
  deflateEnd (&z);
  return status == Z_STREAM_END || error_memory (err);
}
