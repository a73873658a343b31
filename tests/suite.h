/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A test program: claims, each a libcheck test run in a process of its own. A claim is in the
   program by standing in its file; none can be left out of a list. */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

/* A claim that is run for each _i from `first` up to `end`. */
typedef struct suite_row {
  const TTest *test;
  int first, end;
} suite_row;

enum { SUITE_MOST = 64 };
static suite_row suite_rows[SUITE_MOST];
static int suite_count;

static inline void suite_add (const TTest *test, int first, int end) {
  if (suite_count == SUITE_MOST)
    abort ();
  suite_rows[suite_count++] = (suite_row){ test, first, end };
}

#define SUITE_UNUSED __attribute__ ((unused))
#define SUITE_TELL(name, first, end)                             \
  __attribute__ ((constructor)) static void name##_told (void) { \
    suite_add (name, first, end);                                \
  }

#define CLAIM_EACH(name, first, end) \
  static void name##_holds (int _i); \
  START_TEST (name) {                \
    name##_holds (_i);               \
  }                                  \
  END_TEST                           \
  SUITE_TELL (name, first, end)      \
  static void name##_holds (int _i SUITE_UNUSED)
#define CLAIM(name) CLAIM_EACH (name, 0, 1)

/* A claim with an arena `a` and an error `err` of its own. */
#define CLAIM_IN_ARENA(name)                      \
  static void name##_holds (arena *a, error err); \
  START_TEST (name) {                             \
    arena *own = arena_new (0);                   \
    name##_holds (own, (error){ 0 });             \
    arena_free (own);                             \
  }                                               \
  END_TEST                                        \
  SUITE_TELL (name, 0, 1)                         \
  static void name##_holds (arena *a, error err SUITE_UNUSED)

/* Runs all claims, `before` and `after` each a function or NULL. The exit status of the program. */
static inline int suite_run_with (const char *name, SFun before, SFun after, double timeout_s) {
  Suite *suite = suite_create (name);
  TCase *all = tcase_create (name);
  tcase_set_timeout (all, timeout_s);
  tcase_add_checked_fixture (all, before, after);
  for (const suite_row *r = suite_rows; r < suite_rows + suite_count; r++)
    tcase_add_loop_test (all, r->test, r->first, r->end);
  suite_add_tcase (suite, all);
  SRunner *runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  int failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run (const char *name, double timeout_s) {
  return suite_run_with (name, NULL, NULL, timeout_s);
}

/* The same where recorded profiles are at hand; else the status of a test that was skipped. */
static inline int suite_run_real (const char *name, double timeout_s) {
  if (getenv ("FERRY_REAL_TRACES"))
    return suite_run (name, timeout_s);
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
