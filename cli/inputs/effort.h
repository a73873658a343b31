/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How hard a search tries: the same three options wherever a command searches for plans. */
#pragma once

#include "cli/call/call.h"
#include "solver/options/options.h"

/* clang-format off */
#define OPTIONS_OF_EFFORT(without) \
  { 0, "effort", "quick|normal|thorough", "how long to search for each plan; default: " without }, \
  { 0, "limit", "TICKS", "the effort in simulated events or their like; the same ticks give the same " \
    "plan", RANGE_TICKS }, \
  { 0, "seconds", "N", "stop the search after N seconds; then a second run may find " \
    "another plan", { UNITS_COUNT, 1, INT32_MAX } }
/* clang-format on */

/* In the order of search_level. */
extern const char *const effort_words[];

/* Sets the ticks where they were given, or no end where only seconds were, with the deadline of
   stopping_asked; else the level, which is `without` where nothing was. */
bool effort_read (call *c, search_level without, int64_t *limit_ticks,
                  search_level *level) MUST_CHECK;
/* The same for searches with ticks of their own, a number for each level. */
bool effort_read_ticks (call *c, const int64_t ticks[LEVEL_THOROUGH + 1],
                        int64_t *limit_ticks) MUST_CHECK;
