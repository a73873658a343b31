/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fuzzers found once, and files that are odd in a way worth keeping, through the loaders. */
#include <dirent.h>
#include <stdio.h>

#include "tests/fuzz.h"
#include "tests/suite.h"

static int replay (int kind, const char *name) {
  char folder[512], path[1024];
  int count = 0;
  const char *srcdir = getenv ("srcdir");
  snprintf (folder, sizeof folder, "%s/tests/corpus/%s", srcdir ? srcdir : ".", name);
  DIR *d = opendir (folder);
  ck_assert_msg (d != NULL, "%s cannot be read", folder);
  for (const struct dirent *e; (e = readdir (d));) {
    bytes raw = { 0 };
    if (e->d_name[0] == '.')
      continue;
    snprintf (path, sizeof path, "%s/%s", folder, e->d_name);
    FILE *f = fopen (path, "rb");
    ck_assert_ptr_nonnull (f);
    ck_assert (bytes_room (&raw, 1 << 20, NULL));
    size_t size = fread (raw.data, 1, 1 << 20, f);
    fclose (f);
    fuzz_one (kind, (const uint8_t *)raw.data, size);
    bytes_free (&raw);
    count++;
  }
  closedir (d);
  return count;
}

CLAIM (the_corpus_of_the_loaders_holds) {
  ck_assert_int_gt (replay (A_TRACE, "trace"), 0);
  ck_assert_int_gt (replay (A_DEVICE, "device"), 0);
  ck_assert_int_gt (replay (A_PLAN, "plan"), 0);
}

int main (void) {
  return suite_run ("corpus", 60);
}
