/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Results that nobody has used for a long time are deleted, and with them the files that nothing
   names any more.  A trace goes when it has no owner, and no job that is yet to run needs it. */
#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/store/inner.h"

enum { HOUR_MS = 3600000 };

bool store_saw (store *s, const char *job, error *err) {
  sql_rows rows;
  number_text now = store_number (store_now_ms ()), late = store_number (store_now_ms () - HOUR_MS);
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  ok = ok && STORE_READ (s, "select 1 from seen where job = $1 and at_ms > cast($2 as bigint)", a,
                         &rows, err, job, late.text);
  if (ok && !rows.rows) /* once an hour is often enough */
    ok = STORE_RUN (s,
                    "insert into seen (job, at_ms) values ($1, $2)"
                    " on conflict (job) do update set at_ms = excluded.at_ms",
                    NULL, NULL, err, job, now.text);
  arena_free (a);
  return ok;
}

/* Rows first: a file that is named by a row is always there. */
static bool drop_rows (store *s, const char *before, error *err) {
  static const char *const statements[] = {
    "delete from job where state in ('done', 'failed', 'cancelled')"
    " and finished_ms < cast($1 as bigint) and not exists (select 1 from seen"
    " where seen.job = job.id and seen.at_ms >= cast($1 as bigint))",
    "delete from promise where created_ms < cast($1 as bigint)",
    "delete from trace where created_ms < cast($1 as bigint)"
    " and not exists (select 1 from owner where owner.object = trace.id)"
    " and not exists (select 1 from job where job.state in ('queued', 'running')"
    " and job.request like '%' || trace.id || '%')",
    "delete from naming where not exists (select 1 from trace where trace.id = naming.trace)",
    "delete from alias where not exists (select 1 from trace where trace.id = alias.trace)",
    /* It would answer the same upload, without a trace; the digest is behind `{"body":"`. */
    ("delete from job where kind = 'imports' and state = 'done' and not exists"
     " (select 1 from alias where alias.body = substr (job.request, 10, 64))"),
    "delete from placed where at_ms < cast($1 as bigint)",
    "delete from turn where at_ms < cast($1 as bigint)",
    "delete from event where not exists (select 1 from job where job.id = event.job)",
    "delete from seen where not exists (select 1 from job where job.id = seen.job)",
    "delete from due where not exists (select 1 from job where job.id = due.job)",
    "delete from origin where not exists (select 1 from job where job.id = origin.job)",
    ("delete from owner where not exists (select 1 from job where job.id = owner.object)"
     " and not exists (select 1 from trace where trace.id = owner.object)"),
  };
  if (!store_begin (s, err))
    return false;
  bool ok = true;
  for (size_t i = 0; ok && i < sizeof statements / sizeof *statements; i++) {
    int n = strstr (statements[i], "$1") != NULL;
    ok = store_inside (s, statements[i], &before, n, NULL, NULL, err);
  }
  return store_end (s, ok, err);
}

static int by_text (const void *a, const void *b) {
  return strcmp (a, b);
}

/* Every 64 hexadecimal digits in a row of what names files. */
static bool add_names (const char *text, bytes *names, error *err) {
  for (size_t n; text && *text; text += n ? n : 1) {
    n = strspn (text, "0123456789abcdef");
    if (n == DIGEST_TEXT - 1 &&
        (!bytes_append (names, text, (int64_t)n, err) || !bytes_append (names, "", 1, err)))
      return false;
  }
  return true;
}

static bool find_named (store *s, bytes *names, error *err) {
  sql_rows rows;
  arena *a = arena_new (0);
  bool ok = a || error_memory (err);
  ok = ok && store_read (s,
                         "select outcome from job where outcome is not null union all"
                         " select request from job where state in ('queued', 'running') union all"
                         " select id from trace",
                         NULL, 0, a, &rows, err);
  for (int i = 0; ok && i < rows.rows; i++)
    ok = add_names (sql_cell (&rows, i, 0), names, err);
  arena_free (a);
  if (ok && names->size)
    qsort (names->data, (size_t)names->size / DIGEST_TEXT, DIGEST_TEXT, by_text);
  return ok;
}

static bool is_named (const bytes *names, const char *digest) {
  return names->size &&
         bsearch (digest, names->data, (size_t)names->size / DIGEST_TEXT, DIGEST_TEXT, by_text);
}

/* A young file may be of a job whose row is not there yet. */
static bool drop_files (store *s, const bytes *names, int64_t before_ms, error *err) {
  char folder[256], path[600];
  struct stat is;
  snprintf (folder, sizeof folder, "%s/blobs", s->folder);
  DIR *all = opendir (folder);
  bool ok = all || error_set (err, ERR_file, "the state folder %s cannot be read", folder);
  for (struct dirent *e; ok && (e = readdir (all));) {
    snprintf (path, sizeof path, "%s/%s", folder, e->d_name);
    if (strlen (e->d_name) != DIGEST_TEXT - 1 || stat (path, &is) != 0 ||
        is.st_mtim.tv_sec * 1000 >= before_ms || is_named (names, e->d_name))
      continue;
    unlink (path);
    if (s->driver->shared)
      ok = STORE_RUN (s, "delete from blob where digest = $1", NULL, NULL, err, e->d_name);
  }
  if (all)
    closedir (all);
  return ok;
}

bool store_sweep (store *s, int64_t keep_ms, error *err) {
  assert (s && keep_ms >= 0);
  bytes names = { 0 };
  int64_t before_ms = store_now_ms () - keep_ms;
  bool ok = drop_rows (s, store_number (before_ms).text, err) && find_named (s, &names, err) &&
            drop_files (s, &names, before_ms, err);
  bytes_free (&names);
  return ok;
}
