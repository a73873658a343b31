/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When a program repeats itself, told from its beats. */
#include "executor/shim/step/period.h"
#include "tests/suite.h"

static beats b;

static void make (void) {
  ck_assert (beats_new (&b, 1024, 4096, 1024));
}

static void drop (void) {
  beats_free (&b);
}

static void op (uint64_t token, int32_t name, int64_t x, int64_t y) {
  static int64_t number;
  const int64_t refs[] = { x, y };
  beat e = {
    .token = beat_token (2 * token, false), .op = number++, .name = name, .n_refs = y < 0 ? 1 : 2
  };
  ck_assert (beats_op (&b, e, refs));
}

static int64_t allocate (int64_t bytes) {
  beats_allocate (&b, bytes);
  return b.n_lives - 1;
}

/* Makes a tensor of a lasting one, uses it, frees it. */
static void step (int64_t lasting) {
  int64_t x = allocate (100);
  op (1, 0, lasting, x);
  int64_t y = allocate (200);
  op (2, 1, x, y);
  beats_release (&b, x);
  op (3, 2, y, lasting);
  beats_release (&b, y);
}

CLAIM (a_step_is_found_when_it_comes_twice) {
  int64_t w = allocate (50), first, end;
  for (int i = 0; i < 12; i++)
    op (9, 7, w, -1); /* so that what lasts is older than two steps */
  step (w);
  ck_assert_int_ne (beats_step (&b, &first, &end), BEATS_CUT);
  step (w);
  step (w);
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_CUT);
  ck_assert_int_eq (end - first, 5);
  ck_assert (beats_at (&b, first)->op < 0); /* it begins where nothing else is alive */
  ck_assert_int_eq (beats_life (&b, beats_at (&b, first)->allocation)->bytes, 100);
}

CLAIM (another_tensor_is_another_beat) {
  int64_t v = allocate (50), w = allocate (50);
  for (int i = 0; i < 3; i++)
    op (9, 7, v, -1);
  op (1, 0, v, -1);
  op (1, 0, w, -1);
  op (1, 0, v, -1);
  ck_assert (!beats_same (&b, 6, 5));
  ck_assert (beats_same (&b, 7, 5));
}

CLAIM (of_an_op_with_lists_only_the_op_counts) {
  int64_t v = allocate (50), w = allocate (50);
  beat e = { .token = beat_token (9, true), .n_refs = 1 },
       other = { .token = beat_token (7, true), .n_refs = 1 };
  ck_assert (beats_op (&b, e, &v));
  e.n_refs = 0;
  ck_assert (beats_op (&b, e, &w));
  ck_assert (beats_op (&b, other, &v));
  ck_assert (beats_same (&b, 3, 2));
  ck_assert (!beats_same (&b, 4, 2));
}

CLAIM (a_part_of_a_longer_step_is_not_the_step) {
  int64_t w = allocate (50), first, end;
  for (int i = 0; i < 30; i++)
    op (9, 7, w, -1);
  for (int i = 0; i < 6; i++) {
    step (w);
    if (i % 2 == 1)
      op (4, 3, w, -1);
  }
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_CUT);
  ck_assert_int_eq (end - first, 11);
}

CLAIM (what_the_next_step_replaces_leaves_no_place_to_begin) {
  int64_t w = allocate (50), old = allocate (60), first, end;
  for (int i = 0; i < 12; i++)
    op (9, 7, w, -1);
  for (int i = 0; i < 6; i++) {
    int64_t next = allocate (60);
    op (1, 0, old, next);
    beats_release (&b, old);
    op (2, 1, next, w);
    old = next;
  }
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_WRAP);
}

CLAIM (the_longest_stretch_is_found_again_in_a_whole_record) {
  int64_t w = allocate (50), first, end;
  for (int i = 0; i < 12; i++)
    op (9, 7, w, -1);
  for (int i = 0; i < 8; i++)
    step (w);
  for (int i = 0; i < 9; i++)
    op (5, 4, w, -1);
  beats_rewind (&b);
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_CUT);
  ck_assert_int_eq (end - first, 5);
}

/* Up a chain and down again; every tensor is freed behind the op that used it last. */
static void chain (int64_t lasting, int length) {
  int64_t x[32];
  for (int i = 0; i < length; i++) {
    x[i] = allocate (100);
    op (1, 0, i ? x[i - 1] : lasting, x[i]);
  }
  for (int i = length - 1; i >= 0; i--) {
    op (2, 1, x[i], lasting);
    beats_release (&b, x[i]);
  }
}

CLAIM (steps_that_are_nearly_alike_are_one) {
  static const int lengths[] = { 12, 11, 10 };
  int64_t w = allocate (50), first, end;
  for (int i = 0; i < 250; i++)
    op (9, 7, w, -1);
  for (int i = 0; i < 12; i++)
    chain (w, lengths[i % 3]);
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_CUT);
  ck_assert_int_eq (end - first, 3 * (12 + 11 + 10));
}

CLAIM (a_free_behind_the_last_op_is_known_a_step_later) {
  int64_t w = allocate (50), first, end;
  for (int i = 0; i < 40; i++)
    op (9, 7, w, -1);
  for (int i = 0; i < 3; i++) {
    int64_t x = allocate (100), y = allocate (100);
    op (1, 0, w, x);
    op (2, 1, x, y);
    if (i < 2) {
      beats_release (&b, x);
      beats_release (&b, y);
    }
  }
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_CUT);
  ck_assert_int_eq (end, b.n - 4);
  ck_assert_int_eq (first, b.n - 8);
}

CLAIM (what_is_freed_at_the_end_of_all_has_lasted) {
  int64_t w = allocate (50), first, end;
  for (int i = 0; i < 12; i++)
    op (9, 7, w, -1);
  for (int i = 0; i < 8; i++)
    step (w);
  beats_release (&b, w);
  beats_rewind (&b);
  ck_assert_int_eq (beats_step (&b, &first, &end), BEATS_CUT);
  ck_assert_int_eq (end - first, 5);
}

int main (void) {
  return suite_run_with ("period", make, drop, 20);
}
