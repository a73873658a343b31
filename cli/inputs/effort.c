/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/effort.h"

#include "cli/inputs/stopping.h"

#define LOW_TICKS ((int64_t)50000)
#define HIGH_TICKS ((int64_t)64000000)
#define UNLIMITED_TICKS (INT64_MAX / 4)

bool effort_read (call *c, int64_t *limit_ticks) {
  static const char *const words[] = { "low", "normal", "high", NULL };
  static const int64_t ticks[] = { LOW_TICKS, 0, HIGH_TICKS };
  int effort = 1;
  int64_t seconds = 0;
  if (!call_word (c, "effort", words, &effort) || !call_quantity (c, "seconds", &seconds))
    return false;
  if (call_text (c, "effort") && call_text (c, "limit"))
    return error_set (&c->err, ERR_usage, "give --effort or --limit, not both");
  if (call_text (c, "effort"))
    *limit_ticks = ticks[effort];
  else if (seconds && !call_text (c, "limit"))
    *limit_ticks = UNLIMITED_TICKS;
  if (seconds)
    stopping_after (c, seconds);
  return call_quantity (c, "limit", limit_ticks);
}
