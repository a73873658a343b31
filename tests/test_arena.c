/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "tests/suite.h"

CLAIM_IN_ARENA (memory_is_zeroed_and_aligned) {
  for (int size = 1; size < 3000; size += 7) {
    unsigned char *p = arena_alloc (a, size, 1, &err);
    ck_assert_ptr_nonnull (p);
    ck_assert_uint_eq ((uintptr_t)p % alignof (max_align_t), 0);
    for (int i = 0; i < size; i++)
      ck_assert_int_eq (p[i], 0);
    memset (p, 0xff, (size_t)size);
  }
}

CLAIM_IN_ARENA (memory_given_back_is_zeroed_when_it_is_handed_out_again) {
  for (int round = 0; round < 20; round++) {
    arena_mark here = arena_here (a);
    int64_t used = arena_used_bytes (a);
    for (int i = 0; i < 50; i++) {
      int count = 1 + (round * 131 + i * 977) % 5000;
      unsigned char *p = arena_alloc (a, count, 1, &err);
      for (int k = 0; k < count; k++)
        ck_assert_int_eq (p[k], 0);
      memset (p, 0xaa, (size_t)count);
    }
    arena_back (a, here);
    ck_assert_int_eq (arena_used_bytes (a), used);
  }
}

CLAIM_IN_ARENA (things_before_a_mark_survive_going_back) {
  char *kept = arena_string (a, "kept", &err);
  arena_mark outer = arena_here (a);
  char *middle = arena_string (a, "middle", &err);
  arena_mark inner = arena_here (a);
  ck_assert_ptr_nonnull (arena_alloc (a, 1 << 20, 1, &err));
  arena_back (a, inner);
  ck_assert_str_eq (middle, "middle");
  arena_back (a, outer);
  ck_assert_str_eq (kept, "kept");
}

CLAIM_IN_ARENA (a_mark_of_an_empty_arena_empties_it) {
  arena_mark empty = arena_here (a);
  ck_assert_ptr_nonnull (arena_alloc (a, 100000, 8, &err));
  arena_back (a, empty);
  ck_assert_int_eq (arena_used_bytes (a), 0);
  ck_assert_int_ge (arena_peak_bytes (a), 800000);
  ck_assert_ptr_nonnull (arena_alloc (a, 1, 1, &err));
}

CLAIM (the_limit_holds_to_the_byte_and_is_named) {
  error err = { 0 };
  arena *a = arena_new (64 * 1024);
  ck_assert_ptr_nonnull (arena_alloc (a, 64 * 1024, 1, &err));
  ck_assert_ptr_null (arena_alloc (a, 1, 1, &err));
  ck_assert_int_eq (err.code, ERR_memory);
  ck_says (&err, "this needs more than the memory limit of 64.0 KiB");
  arena_free (a);
}

CLAIM_IN_ARENA (a_table_whose_size_overflows_is_refused) {
  ck_assert_ptr_null (arena_alloc (a, INT64_MAX / 4, 8, &err));
  ck_says (&err, "a table of 2305843009213693951 rows is too large");
}

CLAIM (the_fuse_fails_the_nth_allocation_and_all_after_it) {
  for (int n = 1; n <= 10; n++) {
    arena *a = arena_new (0);
    arena_fuse (a, n);
    for (int i = 1; i <= 12; i++) {
      error err = { 0 };
      void *p = arena_alloc (a, 1, 1, &err);
      ck_assert_int_eq (p != NULL, i < n);
      ck_assert_int_eq (err.code, i < n ? ERR_none : ERR_memory);
    }
    arena_fuse (a, 0);
    error err = { 0 };
    ck_assert_ptr_nonnull (arena_alloc (a, 1, 1, &err));
    arena_free (a);
  }
}

CLAIM_IN_ARENA (growing_keeps_what_was_there) {
  int32_t *things = NULL;
  int64_t capacity = 0;
  for (int32_t i = 0; i < 10000; i++) {
    things = arena_grow (a, things, &capacity, i + 1, sizeof *things, &err);
    ck_assert_ptr_nonnull (things);
    ck_assert_int_gt (capacity, i);
    things[i] = i * 3;
  }
  for (int32_t i = 0; i < 10000; i++)
    ck_assert_int_eq (things[i], i * 3);
}

CLAIM_IN_ARENA (a_failed_growth_leaves_the_things_alone) {
  int64_t capacity = 0;
  int32_t *things = arena_grow (a, NULL, &capacity, 8, sizeof *things, &err);
  things[7] = 7;
  arena_fuse (a, 1);
  ck_assert_ptr_null (arena_grow (a, things, &capacity, 9, sizeof *things, &err));
  ck_assert_int_eq (capacity, 8);
  ck_assert_int_eq (things[7], 7);
}

CLAIM_IN_ARENA (texts_are_formatted_and_copied) {
  ck_assert_str_eq (arena_format (a, &err, "%s-%d", "op", 41), "op-41");
  ck_assert_str_eq (arena_string_n (a, "conv1_1.fwd", 5, &err), "conv1");
  ck_assert_str_eq (arena_string (a, "", &err), "");
}

CLAIM_IN_ARENA (nested_marks_return_to_the_same_use_whatever_is_between) {
  enum { DEEP = 40 };
  random_state r = random_seed (7);
  for (int round = 0; round < 50; round++) {
    arena_mark marks[DEEP];
    int64_t used[DEEP];
    for (int i = 0; i < DEEP; i++) {
      marks[i] = arena_here (a);
      used[i] = arena_used_bytes (a);
      for (int64_t k = random_between (&r, 0, 5); k > 0; k--)
        ck_assert_ptr_nonnull (arena_alloc (a, random_between (&r, 0, 20000), 1, &err));
    }
    for (int i = DEEP - 1; i >= 0; i--) {
      arena_back (a, marks[i]);
      ck_assert_int_eq (arena_used_bytes (a), used[i]);
    }
  }
}

int main (void) {
  return suite_run ("arena", 20);
}
