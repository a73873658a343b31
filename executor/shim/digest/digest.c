/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/digest/digest.h"

#include <string.h>

/* One word: its place decides how it is mixed.  The finalizer of splitmix64, since signs that
   change in pairs must not cancel in the sum. */
static uint64_t mixed (uint64_t word, uint64_t index) {
  uint64_t x = word ^ (index + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

uint64_t digest_of (const void *at, int64_t bytes) {
  const char *from = at;
  uint64_t sum = 0, word, index = 0;
  for (; bytes >= 8; bytes -= 8, from += 8) {
    memcpy (&word, from, 8);
    sum += mixed (word, index++);
  }
  if (bytes == 0)
    return sum;
  word = 0;
  memcpy (&word, from, (size_t)bytes);
  return sum + mixed (word, index);
}
