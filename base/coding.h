/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only doors to zlib and libzstd. */
#pragma once

#include "base/file.h"

bool coding_is_gzip (const void *data, int64_t size);
bool coding_is_zstd (const void *data, int64_t size);
bool coding_is_packed (const void *data, int64_t size); /* either */
bool gzip_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out,
                  error *err) MUST_CHECK;
bool gzip_encode (const void *data, int64_t size, bytes *out, error *err) MUST_CHECK;
bool zstd_decode (const void *data, int64_t size, int64_t limit_bytes, bytes *out,
                  error *err) MUST_CHECK;
bool zstd_encode (const void *data, int64_t size, bytes *out, error *err) MUST_CHECK;

/* Shared by both decoders: the one line about what is too large. */
bool coding_too_large (int64_t limit_bytes, error *err);
/* Beyond 16 MiB no trace and no profile is more than 200 times as large as it is packed: what is,
   is refused long before it fills the memory. */
bool coding_is_bomb (int64_t packed_bytes, int64_t bytes, error *err) MUST_CHECK;
