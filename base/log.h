/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages on the way, by a callback: the library itself never prints.  A NULL logger is silent. */
#pragma once

#include <stdint.h>

#include "base/error.h"

typedef enum log_level { LOG_DETAIL, LOG_PROGRESS, LOG_WARNING } log_level;

typedef struct logger {
  void (*say) (void *context, log_level level, const char *text);
  void *context;
  /* A plan that is faster than those before it, in numbers; or NULL. */
  void (*found) (void *context, const char *by, int64_t step_ns, int64_t bound_ns);
} logger;

void log_say (const logger *log, log_level level, const char *format, ...) PRINTF_LIKE (3, 4);

/* A logger that puts the file's name before each message. */
typedef struct log_file {
  logger log;
  const logger *to;
  const char *name;
} log_file;

/* NULL where nobody listens. */
const logger *log_of_file (log_file *f, const logger *to, const char *name);

void log_found (const logger *log, const char *by, int64_t step_ns, int64_t bound_ns);
