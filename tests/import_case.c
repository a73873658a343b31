/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/import_case.h"
#include "trace/import/import.h"

#include <stdlib.h>
#include <string.h>

static void begin (import_case *c, const char *name) {
  c->file = (import_text){ name, c->text.data, c->text.size, IMPORT_FORMATS };
  c->job = (import_job){ .files = &c->file,
                         .n_files = 1,
                         .options = IMPORT_DEFAULTS,
                         .a = arena_new (0),
                         .scratch = arena_new (0),
                         .report = &c->report,
                         .err = &c->err };
}

void import_case_open (import_case *c, const char *path) {
  char line[sizeof (error)];
  memset (c, 0, sizeof *c);
  ck_assert_msg (file_read (path, 0, &c->text, &c->err), "%s",
                 error_line (&c->err, line, sizeof line));
  begin (c, "file");
}

void import_case_text (import_case *c, const char *name, const void *data, int64_t size) {
  memset (c, 0, sizeof *c);
  ck_assert (bytes_append (&c->text, data, size, &c->err));
  begin (c, name);
}

void import_case_close (import_case *c) {
  bytes_free (&c->text);
  arena_free (c->job.a);
  arena_free (c->job.scratch);
}

enum { MOST_ARENAS = 1 << 16 }; /* a file may be cut at every byte */

/* Traces are handed back by many small helpers, each with an arena of its own: those of a test end
   with its process. */
static struct {
  arena *at[MOST_ARENAS];
  int count;
} lasting;

static void end_all (void) {
  while (lasting.count)
    arena_free (lasting.at[--lasting.count]);
}

arena *import_arena (void) {
  ck_assert_int_lt (lasting.count, MOST_ARENAS);
  if (lasting.count == 0)
    atexit (end_all);
  return lasting.at[lasting.count++] = arena_new (0);
}

trace *import_good (const char *text, import_report *report) {
  error err = { 0 };
  char line[sizeof (error)];
  trace *t = NULL;
  import_source source = { "a.json", text, (int64_t)strlen (text) };
  bool ok = import_memory (&source, 1, NULL, import_arena (), &t, report, &err);
  ck_assert_msg (ok && t, "%s", error_line (&err, line, sizeof line));
  return t;
}

int64_t tensor_named (const trace *t, const char *name) {
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (strcmp (t->tensors[i].name, name) == 0)
      return i;
  return -1;
}

bool list_holds (const index_list *l, int64_t tensor) {
  for (int32_t i = 0; i < l->count; i++)
    if (l->at[i] == tensor)
      return true;
  return false;
}
