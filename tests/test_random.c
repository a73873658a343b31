/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdint.h>

#include "base/random.h"
#include "tests/suite.h"

/* The first outputs for seed 1234567, as published with the generator's description (splitmix64,
   Rosetta Code "Pseudo-random numbers/Splitmix64"). */
CLAIM (the_sequence_is_splitmix64) {
  static const uint64_t expected[] = { 6457827717110365317u, 3203168211198807973u,
                                       9817491932198370423u, 4593380528125082431u,
                                       16408922859458223821u };
  random_state r = random_seed (1234567);
  for (int i = 0; i < 5; i++)
    ck_assert_uint_eq (random_next (&r), expected[i]);
}

CLAIM (both_ends_of_a_range_come_up_and_nothing_beyond) {
  random_state r = random_seed (1);
  int seen[7] = { 0 };
  for (int i = 0; i < 7000; i++) {
    int64_t x = random_between (&r, -3, 3);
    ck_assert_int_ge (x, -3);
    ck_assert_int_le (x, 3);
    seen[x + 3]++;
  }
  for (int i = 0; i < 7; i++)
    ck_assert_int_gt (seen[i], 850); /* expected 1000, standard deviation 29 */
}

CLAIM (the_widest_range_and_a_single_value_are_ranges_too) {
  random_state r = random_seed (2);
  int negative = 0;
  for (int i = 0; i < 1000; i++) {
    negative += random_between (&r, INT64_MIN, INT64_MAX) < 0;
    ck_assert_int_eq (random_between (&r, 42, 42), 42);
  }
  ck_assert_int_gt (negative, 400);
  ck_assert_int_lt (negative, 600);
}

CLAIM (a_chance_is_met_as_often_as_it_says) {
  random_state r = random_seed (3);
  int often = 0;
  for (int i = 0; i < 10000; i++) {
    ck_assert (!random_chance (&r, 0));
    ck_assert (random_chance (&r, 1000000));
    often += random_chance (&r, 250000);
  }
  ck_assert_int_gt (often, 2200);
  ck_assert_int_lt (often, 2800);
}

int main (void) {
  return suite_run ("random", 20);
}
