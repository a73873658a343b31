/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn (uint32_t x, int by) {
  return x >> by | x << (32 - by);
}

/* One round; the eight words are renamed by the caller instead of moved. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                     \
  do {                                                                                       \
    uint32_t t1 =                                                                            \
        h + (turn (e, 6) ^ turn (e, 11) ^ turn (e, 25)) + (g ^ (e & (f ^ g))) + k[i] + w[i]; \
    d += t1;                                                                                 \
    h = t1 + (turn (a, 2) ^ turn (a, 13) ^ turn (a, 22)) + ((a & b) | (c & (a | b)));        \
  } while (0)

static void mix (uint32_t state[8], const uint8_t block[64]) {
  uint32_t w[64];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (turn (x, 7) ^ turn (x, 18) ^ x >> 3) + w[i - 7] +
           (turn (y, 17) ^ turn (y, 19) ^ y >> 10);
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; i += 8) {
    ROUND (a, b, c, d, e, f, g, h, i);
    ROUND (h, a, b, c, d, e, f, g, i + 1);
    ROUND (g, h, a, b, c, d, e, f, i + 2);
    ROUND (f, g, h, a, b, c, d, e, i + 3);
    ROUND (e, f, g, h, a, b, c, d, i + 4);
    ROUND (d, e, f, g, h, a, b, c, i + 5);
    ROUND (c, d, e, f, g, h, a, b, i + 6);
    ROUND (b, c, d, e, f, g, h, a, i + 7);
  }
  uint32_t done[8] = { a, b, c, d, e, f, g, h };
  for (int i = 0; i < 8; i++)
    state[i] += done[i];
}

void sha256_start (sha256 *s) {
  static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
  memcpy (s->state, first, sizeof first);
  s->length = 0;
}

void sha256_add (sha256 *s, const void *data, size_t size) {
  const uint8_t *from = data;
  size_t held = s->length % 64;
  s->length += size;
  while (size) {
    if (held == 0 && size >= 64) { /* whole blocks need no copy */
      mix (s->state, from);
      from += 64;
      size -= 64;
      continue;
    }
    size_t part = 64 - held < size ? 64 - held : size;
    memcpy (s->block + held, from, part);
    from += part;
    size -= part;
    held += part;
    if (held == 64) {
      mix (s->state, s->block);
      held = 0;
    }
  }
}

void sha256_text (sha256 *s, char text[SHA256_TEXT]) {
  static const uint8_t padding[64] = { 0x80 };
  uint64_t bits = s->length * 8;
  uint8_t tail[8];
  for (int i = 0; i < 8; i++)
    tail[i] = (uint8_t)(bits >> (56 - 8 * i));
  size_t held = s->length % 64;
  sha256_add (s, padding, held < 56 ? 56 - held : 120 - held);
  sha256_add (s, tail, sizeof tail);
  for (int i = 0; i < 8; i++)
    snprintf (text + (size_t)8 * (size_t)i, 9, "%08x", (unsigned)s->state[i]);
}
