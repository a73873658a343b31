/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void log_say (const logger *log, log_level level, const char *format, ...) {
  if (!log || !log->say)
    return;
  char text[1024];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  error_one_line (text);
  log->say (log->context, level, text);
}

static void say_of_file (void *context, log_level level, const char *text) {
  const log_file *f = context;
  log_say (f->to, level, "%s: %s", strcmp (f->name, "-") == 0 ? "standard input" : f->name, text);
}

const logger *log_of_file (log_file *f, const logger *to, const char *name) {
  *f = (log_file){ .log = { .say = say_of_file, .context = f }, .to = to, .name = name };
  return to && to->say ? &f->log : NULL;
}

void log_found (const logger *log, const char *by, int64_t step_ns, int64_t bound_ns) {
  if (log && log->found)
    log->found (log->context, by, step_ns, bound_ns);
}
