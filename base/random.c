/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/random.h"

#include <assert.h>

random_state random_seed (uint64_t seed) {
  return (random_state){ seed };
}

uint64_t random_next (random_state *r) {
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int64_t random_between (random_state *r, int64_t low, int64_t high) {
  assert (low <= high);
  uint64_t span = (uint64_t)high - (uint64_t)low + 1;
  if (span == 0)
    return (int64_t)random_next (r);
  /* The high half of a product: a bias below 2^-64 x span, and no division. */
  return (int64_t)((uint64_t)low + (uint64_t)(((unsigned __int128)random_next (r) * span) >> 64));
}

int random_chance (random_state *r, int64_t ppm) {
  return random_between (r, 0, 999999) < ppm;
}
