/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/random.h"
#include "base/sha256.h"
#include "tests/suite.h"

static const char *digest (const void *data, size_t size, char text[SHA256_TEXT]) {
  sha256 s;
  sha256_start (&s);
  sha256_add (&s, data, size);
  sha256_text (&s, text);
  return text;
}

/* Messages and digests of FIPS 180-2, appendix B, and of NIST's examples. */
CLAIM (published_vectors_hold) {
  static const char *const vectors[][2] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
  };
  char text[SHA256_TEXT];
  for (int i = 0; i < 3; i++)
    ck_assert_str_eq (digest (vectors[i][0], strlen (vectors[i][0]), text), vectors[i][1]);
}

CLAIM (a_million_letters_have_the_published_digest) {
  char block[1000], text[SHA256_TEXT];
  memset (block, 'a', sizeof block);
  sha256 s;
  sha256_start (&s);
  for (int i = 0; i < 1000; i++)
    sha256_add (&s, block, sizeof block);
  sha256_text (&s, text);
  ck_assert_str_eq (text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

CLAIM (pieces_of_any_size_give_the_same_digest) {
  unsigned char data[700];
  char whole[SHA256_TEXT], text[SHA256_TEXT];
  random_state r = random_seed (11);
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (unsigned char)random_next (&r);
  for (size_t size = 0; size <= sizeof data; size += 9) {
    digest (data, size, whole);
    sha256 s;
    sha256_start (&s);
    for (size_t at = 0; at < size;) {
      size_t piece = (size_t)random_between (&r, 0, 130);
      piece = piece < size - at ? piece : size - at;
      sha256_add (&s, data + at, piece);
      at += piece;
    }
    sha256_text (&s, text);
    ck_assert_str_eq (text, whole);
  }
}

int main (void) {
  return suite_run ("sha256", 20);
}
