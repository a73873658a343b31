/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/effort.h"

#include "cli/inputs/stopping.h"

#define UNLIMITED_TICKS (INT64_MAX / 4)

const char *const effort_words[] = { "normal", "quick", "thorough", NULL };

bool effort_read (call *c, search_level without, int64_t *limit_ticks, search_level *level) {
  int word = (int)without;
  int64_t seconds = 0;
  if (!call_word (c, "effort", effort_words, &word) || !call_quantity (c, "seconds", &seconds))
    return false;
  if (call_text (c, "effort") && call_text (c, "limit"))
    return call_usage (c, "give --effort or --limit, not both");
  *level = (search_level)word;
  if (seconds && !call_text (c, "effort") && !call_text (c, "limit"))
    *limit_ticks = UNLIMITED_TICKS;
  if (seconds)
    stopping_after (c, seconds);
  return call_quantity (c, "limit", limit_ticks);
}

bool effort_read_ticks (call *c, const int64_t ticks[LEVEL_THOROUGH + 1], int64_t *limit_ticks) {
  search_level level;
  *limit_ticks = 0;
  if (!effort_read (c, LEVEL_QUICK, limit_ticks, &level))
    return false;
  *limit_ticks = *limit_ticks ? *limit_ticks : ticks[level];
  return true;
}
