/* Messages on the way, by a callback: the library itself never prints.  A NULL logger is silent. */
#ifndef FERRY_BASE_LOG_H
#define FERRY_BASE_LOG_H

#include "base/error.h"

typedef enum log_level { LOG_DETAIL, LOG_PROGRESS, LOG_WARNING } log_level;

typedef struct logger {
  void (*say) (void *context, log_level level, const char *text);
  void *context;
} logger;

void log_say (const logger *log, log_level level, const char *format, ...) PRINTF_LIKE (3, 4);

#endif
