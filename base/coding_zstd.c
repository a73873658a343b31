/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/coding.h"

#include <zstd.h>

enum { LEVEL = 3 };

bool coding_is_zstd (const void *data, int64_t size) {
  const unsigned char *at = data;
  return size >= 4 && at[0] == 0x28 && at[1] == 0xb5 && at[2] == 0x2f && at[3] == 0xfd;
}

bool zstd_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out, error *err) {
  ZSTD_DStream *stream = ZSTD_createDStream ();
  if (!stream)
    return error_memory (err);
  bool ok = false;
  ZSTD_inBuffer in = { data, (size_t)size, 0 };
  size_t chunk = ZSTD_DStreamOutSize ();
  for (;;) {
    if (!bytes_room (out, (int64_t)chunk, err))
      break;
    ZSTD_outBuffer room = { out->data + out->size, chunk, 0 };
    size_t left = ZSTD_decompressStream (stream, &room, &in);
    out->size += (int64_t)room.pos;
    if (ZSTD_isError (left)) {
      error_set (err, ERR_input, "the zstd data is damaged near byte %lld: %s", (long long)in.pos,
                 ZSTD_getErrorName (left));
      break;
    }
    if (out->size > limit_bytes) {
      coding_too_large (limit_bytes, err);
      break;
    }
    if (coding_is_bomb ((int64_t)in.pos, out->size, err))
      break;
    /* A frame that fills the last chunk to the byte is done: another call would start a new one. */
    if (in.pos == in.size && (left == 0 || room.pos < chunk)) {
      ok = left == 0;
      if (!ok)
        error_set (err, ERR_input, "the zstd data ends early, after byte %lld", (long long)size);
      break;
    }
  }
  ZSTD_freeDStream (stream);
  return ok;
}

bool zstd_encode (const void *data, int64_t size, bytes *out, error *err) {
  size_t bound = ZSTD_compressBound ((size_t)size);
  if (!bytes_room (out, (int64_t)bound, err))
    return false;
  size_t used = ZSTD_compress (out->data + out->size, bound, data, (size_t)size, LEVEL);
  if (ZSTD_isError (used))
    return error_set (err, ERR_memory, "zstd cannot compress this: %s", ZSTD_getErrorName (used));
  out->size += (int64_t)used;
  return true;
}
