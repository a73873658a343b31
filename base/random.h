/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seeded random numbers, the same on every machine (splitmix64). */
#pragma once

#include <stdint.h>

typedef struct random_state {
  uint64_t state;
} random_state;

random_state random_seed (uint64_t seed);
uint64_t random_next (random_state *r);
/* Uniform in [low, high], both included. */
int64_t random_between (random_state *r, int64_t low, int64_t high);
/* True in `ppm` of a million cases. */
int random_chance (random_state *r, int64_t ppm);

/* A hash of one number more. */
static inline uint64_t random_mix (uint64_t h, int64_t x) {
  h = (h ^ (uint64_t)x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}
