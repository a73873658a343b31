/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The digest of every shipped trace against tests/canonical.py, which shares nothing with it; and
   all forms of a trace have one digest. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/suite.h"
#include "trace/trace.h"

enum { LINE = 4096 };

/* Calls `each` with what canonical.py says of every trace at `paths`; returns how many. */
static int ask (const char *paths, void (*each) (const char *digest, char *path)) {
  char line[LINE], command[LINE];
  const char *root = getenv ("srcdir");
  root = root ? root : ".";
  snprintf (command, sizeof command,
            "cd '%s' && PYTHONDONTWRITEBYTECODE=1 "
            "python3 tests/canonical.py %s",
            root, paths);
  FILE *answer = popen (command, "r");
  ck_assert_ptr_nonnull (answer);
  int n = 0;
  while (fgets (line, sizeof line, answer)) {
    line[strcspn (line, "\n")] = 0;
    char *path = strstr (line, "  ");
    ck_assert_ptr_nonnull (path);
    *path = 0;
    each (line, path + 2);
    n++;
  }
  int status = pclose (answer);
  ck_assert_int_eq (status, 0);
  return n;
}

static char full[LINE + 256]; /* a test has a process of its own */

static trace *load (const char *path, arena *a) {
  error err = { 0 };
  const char *root = getenv ("srcdir");
  snprintf (full, sizeof full, "%s/%s", *path == '/' || !root ? "" : root, path);
  trace *t = trace_load (*path == '/' || !root ? path : full, NULL, a, &err);
  ck_assert_msg (t != NULL, "%s: %s", path, err.text);
  return t;
}

static void same_digest (const char *digest, char *path) {
  error err = { 0 };
  arena *a = arena_new (0);
  ck_assert_ptr_nonnull (a);
  trace *t = load (path, a);
  char seen[TRACE_DIGEST];
  ck_assert (trace_digest (t, seen, &err));
  ck_assert_msg (strcmp (seen, digest) == 0, "%s: %s, canonical.py says %s", path, seen, digest);
  arena_free (a);
}

CLAIM (python_gives_every_shipped_trace_the_same_digest) {
  int n = ask ("data tests/cases/machine", same_digest);
  ck_assert_int_ge (n, 5);
}

CLAIM (packed_plain_and_compressed_have_one_digest) {
  static const char *const endings[] = { "json", "json.gz", "json.zst" };
  static const char *const names[] = { "wrapping", "depth-section", "recompute" };
  error err = { 0 };
  char folder[] = "/tmp/ferry-digest-XXXXXX", path[LINE], paths[LINE] = "";
  ck_assert_ptr_nonnull (mkdtemp (folder));
  for (int i = 0; i < 3; i++)
    for (int packed = 0; packed < 2; packed++)
      for (int e = 0; e < 3; e++) {
        arena *a = arena_new (0);
        ck_assert_ptr_nonnull (a);
        char digest[TRACE_DIGEST], again[TRACE_DIGEST];
        snprintf (path, sizeof path, "tests/cases/machine/%s/trace.json", names[i]);
        trace *t = load (path, a);
        ck_assert (trace_digest (t, digest, &err));
        snprintf (path, sizeof path, "%s/%d-%d.%s", folder, i, packed, endings[e]);
        ck_assert (trace_store (t, path, packed ? TRACE_PACKED : TRACE_PLAIN, &err));
        ck_assert (trace_digest (load (path, a), again, &err));
        ck_assert_str_eq (digest, again);
        arena_free (a);
      }
  snprintf (paths, sizeof paths, "%s", folder);
  int n = ask (paths, same_digest);
  for (int i = 0; i < 18; i++) {
    snprintf (path, sizeof path, "%s/%d-%d.%s", folder, i / 6, i / 3 % 2, endings[i % 3]);
    unlink (path);
  }
  rmdir (folder);
  ck_assert_int_eq (n, 18);
}

int main (void) {
  FILE *python = popen ("command -v python3 >/dev/null", "r");
  if (!python || pclose (python))
    return 77; /* skipped */
  return suite_run ("digest", 60);
}
