/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A test program: a list of claims, each a libcheck test run in a process of its own. */
#ifndef FERRY_TESTS_SUITE_H
#define FERRY_TESTS_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs one case. The exit status of the program. */
static inline int suite_finish (const char *name, TCase *all, double timeout_s) {
  Suite *suite = suite_create (name);
  tcase_set_timeout (all, timeout_s);
  suite_add_tcase (suite, all);
  SRunner *runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  int failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* `tests` ends with NULL. */
static inline int suite_run (const char *name, const TTest *const *tests, double timeout_s) {
  TCase *all = tcase_create (name);
  for (; *tests; tests++)
    tcase_add_test (all, *tests);
  return suite_finish (name, all, timeout_s);
}

/* A claim that is run for each _i from `first` up to `end`, or once where both are 0. */
typedef struct suite_row {
  const TTest *test;
  int first, end;
} suite_row;

/* `rows` ends with NULL; before and after each run, a function or NULL. */
static inline int suite_run_rows (const char *name, const suite_row *rows, SFun before, SFun after,
                                  double timeout_s) {
  TCase *all = tcase_create (name);
  tcase_add_checked_fixture (all, before, after);
  for (; rows->test; rows++)
    tcase_add_loop_test (all, rows->test, rows->first, rows->end ? rows->end : 1);
  return suite_finish (name, all, timeout_s);
}

/* The same where recorded profiles are at hand; else the status of a test that was skipped. */
static inline int suite_run_real (const char *name, const suite_row *rows, double timeout_s) {
  if (getenv ("FERRY_REAL_TRACES"))
    return suite_run_rows (name, rows, NULL, NULL, timeout_s);
  puts ("skipped: FERRY_REAL_TRACES is not set");
  return 77;
}

/* How many cases to try; in the long mode FERRY_CASES says it. */
static inline int suite_cases (int usual) {
  const char *text = getenv ("FERRY_CASES");
  return text ? (int)strtol (text, NULL, 10) : usual;
}

/* The whole message of an error is this. */
#define ck_says(err, expected)                                              \
  do {                                                                      \
    char line_[sizeof (error)];                                             \
    ck_assert_str_eq (error_line ((err), line_, sizeof line_), (expected)); \
  } while (0)

#endif
