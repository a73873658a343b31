/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's table: its prototypes against cuda.h where that exists, and its errors. */
#include "config.h"

#ifdef HAVE_CUDA_H
#include <cuda.h>
#endif

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "executor/driver/types.h"

/* With cuda.h included, the names in these rows are cuda.h's own types. */
#ifdef HAVE_CUDA_H
#define DRIVER(field, symbol, must, parameters)                                                \
  _Static_assert(__builtin_types_compatible_p (__typeof__ (&symbol), CUresult (*) parameters), \
                 #symbol);
#include "executor/driver/driver.def"
#undef DRIVER
#define CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);
#define LAYOUT(type, bytes) _Static_assert(sizeof (type) == (bytes), #type);
#include "executor/driver/consts.def"
#undef CONSTANT
#undef LAYOUT
#endif

/* A second file without cuda.h has our own layouts; see test_driver_own.c. */
extern const int own_layouts[];

START_TEST (our_structures_are_as_large_as_the_table_says) {
  int i = 0;
#define CONSTANT(name, value)
#define LAYOUT(type, bytes) ck_assert_int_eq (own_layouts[i++], bytes);
#include "executor/driver/consts.def"
#undef CONSTANT
#undef LAYOUT
  ck_assert_int_eq (own_layouts[i], 0);
}
END_TEST

int main (void) {
  Suite *s = suite_create ("driver");
  TCase *c = tcase_create ("driver");
  tcase_add_test (c, our_structures_are_as_large_as_the_table_says);
  extern void add_own_tests (TCase *);
  add_own_tests (c);
  suite_add_tcase (s, c);
  SRunner *r = srunner_create (s);
  srunner_run_all (r, CK_ENV);
  int failed = srunner_ntests_failed (r);
  srunner_free (r);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
