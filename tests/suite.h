/* A test program: a list of claims, each a libcheck test run in a process of its own. */
#ifndef FERRY_TESTS_SUITE_H
#define FERRY_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* `tests` ends with NULL. The exit status of the program. */
static inline int suite_run (const char *name, const TTest *const *tests, double timeout_s) {
  Suite *suite = suite_create (name);
  TCase *all = tcase_create (name);
  tcase_set_timeout (all, timeout_s);
  for (; *tests; tests++)
    tcase_add_test (all, *tests);
  suite_add_tcase (suite, all);
  SRunner *runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  int failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
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
