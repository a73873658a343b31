/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers of a command: a result to standard output or a file, notes to standard error. */
#include <stdarg.h>
#include <string.h>

#include "base/file.h"
#include "cli/call/call.h"

bool call_is_stdout (const char *path) {
  return path && strcmp (path, "-") == 0;
}

const char *call_rank_path (call *c, const char *file, int32_t rank) {
  const char *name = strrchr (file, '/'), *dot = strchr (name ? name + 1 : file, '.');
  if (rank == 0 || call_is_stdout (file))
    return file;
  int before = dot ? (int)(dot - file) : (int)strlen (file);
  return arena_format (c->arena, &c->err, "%.*s.%d%s", before, file, rank, dot ? dot : "");
}

bool call_write (call *c, const char *path, const void *data, int64_t size) {
  call_clear_line (c);
  if (path && strcmp (path, "-") != 0)
    return file_write (path, data, size, file_coding_of (path), &c->err);
  if (size > 0)
    fwrite (data, 1, (size_t)size, stdout);
  return true; /* main looks at stdout once, at the end */
}

bool call_print_json (call *c, json_writer *w) {
  bytes text = { 0 };
  if (!json_finish (w, &text, &c->err))
    return false;
  bool ok = call_write (c, NULL, text.data, text.size);
  bytes_free (&text);
  return ok;
}

bool call_print_text (call *c, const char *key, const char *text) {
  json_writer w;
  json_begin_object (&w, 1);
  json_add_text (&w, key, text);
  json_close_object (&w);
  return call_print_json (c, &w);
}

bool call_json_beside (call *c, const char *option) {
  const char *path = c->json ? call_text (c, option) : option;
  return (path && strcmp (path, "-") != 0) ||
         call_usage (c, "with --json the answer is on standard output: give --%s FILE for the rest",
                     option);
}

void call_note (const call *c, const char *format, ...) {
  if (c->quiet)
    return;
  char text[4096];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  error_one_line (text); /* names of files may hold anything */
  call_clear_line (c);
  fprintf (stderr, "ferry: %s\n", text);
}

bool call_usage (call *c, const char *format, ...) {
  char text[sizeof c->err.text];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  return error_set (&c->err, ERR_usage, "%s", text);
}

int call_failed (const call *c) {
  return error_exit_status (c->err.code);
}
