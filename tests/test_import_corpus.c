/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every input that a fuzzer once found, or that is odd in a way worth keeping, is imported again.
 */
#include <dirent.h>
#include <stdio.h>

#include "base/file.h"
#include "tests/import_fuzz.h"
#include "tests/suite.h"

static const char *const kinds[] = { "json", "pickle", "chakra", "text" };

CLAIM_EACH (the_corpus_is_imported_or_refused_without_harm, 0, 4) {
  char folder[3000], path[4000];
  const char *root = getenv ("srcdir");
  snprintf (folder, sizeof folder, "%s/tests/corpus/import_%s", root ? root : ".", kinds[_i]);
  DIR *d = opendir (folder);
  ck_assert_msg (d != NULL, "%s is missing", folder);
  int n = 0;
  for (struct dirent *e = readdir (d); e; e = readdir (d)) {
    bytes text;
    error err = { 0 };
    if (e->d_name[0] == '.')
      continue;
    snprintf (path, sizeof path, "%s/%s", folder, e->d_name);
    ck_assert (file_read_raw (path, 0, &text, &err));
    import_fuzz ((const uint8_t *)text.data, (size_t)text.size);
    bytes_free (&text);
    n++;
  }
  closedir (d);
  ck_assert_int_gt (n, 0);
}

int main (void) {
  return suite_run ("import corpus", 20);
}
