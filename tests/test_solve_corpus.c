/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the planner's fuzzer found once, and inputs that reach far, through solve and the policies.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "tests/solve_fuzz.h"
#include "tests/suite.h"

START_TEST (the_corpus_of_the_planner_holds) {
  const char *srcdir = getenv ("srcdir");
  char folder[512], path[1024];
  int count = 0;
  snprintf (folder, sizeof folder, "%s/tests/corpus/solve", srcdir ? srcdir : ".");
  DIR *d = opendir (folder);
  ck_assert_msg (d != NULL, "%s cannot be read", folder);
  for (const struct dirent *e; (e = readdir (d));) {
    error err = { 0 };
    bytes raw = { 0 };
    if (e->d_name[0] == '.')
      continue;
    snprintf (path, sizeof path, "%s/%s", folder, e->d_name);
    ck_assert_msg (file_read_raw (path, 1 << 20, &raw, &err), "%s", err.text);
    solve_fuzz ((const uint8_t *)raw.data, (size_t)raw.size);
    bytes_free (&raw);
    count++;
  }
  closedir (d);
  ck_assert_int_gt (count, 10);
}
END_TEST

int main (void) {
  const TTest *const tests[] = { the_corpus_of_the_planner_holds, NULL };
  return suite_run ("the planner's corpus", tests, 120);
}
