/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The half of test_driver that must not see cuda.h. */
#include <check.h>
#include <stddef.h>
#include <string.h>

#include "executor/driver/driver.h"

extern const int own_layouts[];
extern void add_own_tests (TCase *c);

const int own_layouts[] = {
#define CONSTANT(name, value)
#define LAYOUT(type, bytes) (int)sizeof (type),
#include "executor/driver/consts.def"
#undef CONSTANT
#undef LAYOUT
  0
};

START_TEST (a_library_that_is_not_there_is_unreachable) {
  driver d;
  error err = { 0 };
  ck_assert (!driver_open (&d, "libno-such-driver.so.1", &err));
  ck_assert_int_eq (err.code, ERR_unreachable);
  ck_assert_ptr_nonnull (strstr (err.text, "FERRY_EMU"));
}
END_TEST

START_TEST (a_library_without_the_entries_names_the_first_one_missing) {
  driver d;
  error err = { 0 };
  ck_assert (!driver_open (&d, "libm.so.6", &err));
  ck_assert_int_eq (err.code, ERR_unreachable);
  ck_assert_ptr_nonnull (strstr (err.text, "has no cuInit"));
}
END_TEST

START_TEST (a_path_without_end_is_refused) {
  driver d;
  error err = { 0 };
  char path[400];
  memset (path, 'x', sizeof path);
  path[sizeof path - 1] = 0;
  ck_assert (!driver_open (&d, path, &err));
  ck_assert_int_eq (err.code, ERR_usage);
}
END_TEST

START_TEST (our_structures_have_their_fields_where_the_driver_looks) {
  ck_assert_int_eq (offsetof (CUmemAllocationProp, location), 8);
  ck_assert_int_eq (offsetof (CUmemAllocationProp, win32HandleMetaData), 16);
  ck_assert_int_eq (offsetof (CUmemAccessDesc, flags), 8);
  ck_assert_int_eq (offsetof (CUlaunchConfig, hStream), 32);
  ck_assert_int_eq (offsetof (CUlaunchConfig, attrs), 40);
}
END_TEST

void add_own_tests (TCase *c) {
  tcase_add_test (c, our_structures_have_their_fields_where_the_driver_looks);
  tcase_add_test (c, a_library_that_is_not_there_is_unreachable);
  tcase_add_test (c, a_library_without_the_entries_names_the_first_one_missing);
  tcase_add_test (c, a_path_without_end_is_refused);
}
