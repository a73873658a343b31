/* The only doors to zlib and libzstd. */
#ifndef FERRY_BASE_CODING_H
#define FERRY_BASE_CODING_H

#include "base/file.h"

bool coding_is_gzip (const void *data, int64_t size);
bool coding_is_zstd (const void *data, int64_t size);
bool gzip_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out,
                  error *err) MUST_CHECK;
bool gzip_encode (const void *data, int64_t size, bytes *out, error *err) MUST_CHECK;
bool zstd_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out,
                  error *err) MUST_CHECK;
bool zstd_encode (const void *data, int64_t size, bytes *out, error *err) MUST_CHECK;

/* Shared by both decoders: the one line about a bomb. */
bool coding_too_large (int64_t limit_bytes, error *err);

#endif
