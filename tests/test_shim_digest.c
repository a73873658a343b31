/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "executor/shim/digest/digest.h"
#include "tests/suite.h"

enum { WORDS = 512, BYTES = WORDS * 8 };

static void fill (uint64_t *to, uint64_t seed) {
  for (int i = 0; i < WORDS; i++)
    to[i] = (seed + (uint64_t)i) * 0x9e3779b97f4a7c15u;
}

CLAIM (each_bit_counts) {
  uint64_t w[WORDS];
  fill (w, 1);
  uint64_t was = digest_of (w, BYTES);
  for (int bit = 0; bit < BYTES * 8; bit++) {
    ((unsigned char *)w)[bit / 8] ^= (unsigned char)(1 << bit % 8);
    ck_assert_uint_ne (digest_of (w, BYTES), was);
    ((unsigned char *)w)[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  ck_assert_uint_eq (digest_of (w, BYTES), was);
}

CLAIM (places_count) {
  uint64_t w[WORDS], swapped;
  fill (w, 2);
  uint64_t was = digest_of (w, BYTES);
  for (int i = 1; i < WORDS; i++) {
    swapped = w[0], w[0] = w[i], w[i] = swapped;
    ck_assert_uint_ne (digest_of (w, BYTES), was);
    swapped = w[0], w[0] = w[i], w[i] = swapped;
  }
}

/* In a sum, changes of the highest bits of two words would cancel if they were not mixed. */
CLAIM (signs_that_change_in_pairs_count) {
  uint64_t w[WORDS];
  fill (w, 3);
  uint64_t was = digest_of (w, BYTES);
  static const uint64_t signs[] = { (uint64_t)1 << 63, (uint64_t)1 << 31,
                                    (uint64_t)1 << 63 | (uint64_t)1 << 31 };
  for (int s = 0; s < 3; s++)
    for (int i = 0; i < 64; i++)
      for (int j = i + 1; j < 64; j++) {
        w[i] ^= signs[s], w[j] ^= signs[s];
        ck_assert_uint_ne (digest_of (w, BYTES), was);
        w[i] ^= signs[s], w[j] ^= signs[s];
      }
}

CLAIM (an_end_below_a_word_counts) {
  uint64_t w[WORDS];
  fill (w, 4);
  for (int64_t bytes = BYTES - 7; bytes < BYTES; bytes++) {
    uint64_t was = digest_of (w, bytes);
    ((unsigned char *)w)[bytes]++;
    ck_assert_uint_eq (digest_of (w, bytes), was);
    ((unsigned char *)w)[bytes]--;
    ((unsigned char *)w)[bytes - 1]++;
    ck_assert_uint_ne (digest_of (w, bytes), was);
    ((unsigned char *)w)[bytes - 1]--;
  }
}

/* For digest.sh: the kernel's text, or the digest of standard input. */
static int say (const char *asked) {
  static char text[1 << 16];
  if (strcmp (asked, "ptx") == 0)
    fputs (digest_ptx, stdout);
  else
    printf ("%016llx\n",
            (unsigned long long)digest_of (text, (int64_t)fread (text, 1, sizeof text, stdin)));
  return 0;
}

int main (int argc, char **argv) {
  if (argc > 1)
    return say (argv[1]);
  return suite_run ("shim_digest", 20);
}
