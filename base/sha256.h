/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SHA-256 (FIPS 180-4), as a stream.  A digest names a trace; nothing here is a secret. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
  uint32_t state[8];
  uint64_t length;
  uint8_t block[64];
} sha256;

enum { SHA256_TEXT = 65 };

void sha256_start (sha256 *s);
void sha256_add (sha256 *s, const void *data, size_t size);
/* Ends the stream; `text` gets 64 lower case hexadecimal digits. */
void sha256_text (sha256 *s, char text[SHA256_TEXT]);
