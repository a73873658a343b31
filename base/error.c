/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
  const char *name;
  int exit_status;
} codes[ERROR_CODES] = {
#define ERROR(name, exit, when) { #name, exit },
#include "base/error.def"
#undef ERROR
};

void error_one_line (char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      *text = ' ';
}

static void report (error *err, error_code code, const char *where, const char *format,
                    va_list args) {
  if (!err || err->code != ERR_none)
    return;
  err->code = code;
  snprintf (err->where, sizeof err->where, "%s", where);
  vsnprintf (err->text, sizeof err->text, format, args);
  error_one_line (err->where);
  error_one_line (err->text);
}

bool error_set (error *err, error_code code, const char *format, ...) {
  va_list args;
  va_start (args, format);
  report (err, code, "", format, args);
  va_end (args);
  return false;
}

bool error_more (error *err, const char *format, ...) {
  va_list args;
  va_start (args, format);
  if (err)
    vsnprintf (err->more, sizeof err->more, format, args);
  va_end (args);
  if (err)
    error_one_line (err->more);
  return false;
}

bool error_memory (error *err) {
  return error_set (err, ERR_memory, "out of memory");
}

bool error_at (error *err, error_code code, const char *where, const char *format, ...) {
  va_list args;
  va_start (args, format);
  report (err, code, where, format, args);
  va_end (args);
  return false;
}

void error_in_file (error *err, const char *path) {
  if (err && err->code != ERR_none && !err->path[0]) {
    snprintf (err->path, sizeof err->path, "%s", *path ? path : "\"\"");
    error_one_line (err->path);
  }
}

char *error_line (const error *err, char *buffer, int size) {
  char line[32] = "";
  if (err->line > 0)
    snprintf (line, sizeof line, err->path[0] ? ":%d" : "line %d", err->line);
  const char *after_path = err->path[0] || line[0] ? ": " : "";
  const char *after_where = err->where[0] ? ": " : "";
  snprintf (buffer, (size_t)size, "%s%s%s%s%s%s", err->path, line, after_path, err->where,
            after_where, err->text);
  return buffer;
}

const char *error_name (error_code code) {
  return codes[code].name;
}

int error_exit_status (error_code code) {
  return codes[code].exit_status;
}
