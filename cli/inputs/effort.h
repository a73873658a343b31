/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How hard a search tries: the same three options wherever a command searches for plans. */
#ifndef FERRY_CLI_INPUTS_EFFORT_H
#define FERRY_CLI_INPUTS_EFFORT_H

#include "cli/call/call.h"

/* clang-format off */
#define OPTIONS_OF_EFFORT(without) \
  { 0, "effort", "low|normal|high", "of the search behind each plan; without it, " without }, \
  { 0, "limit", "TICKS", "the effort in simulated events, or, with cuts or drops, in all there is to " \
    "do; the same ticks give the same plan", RANGE_TICKS }, \
  { 0, "seconds", "N", "the search stops after them, with what it has; then a second run may find " \
    "another plan", { UNITS_COUNT, 1, INT32_MAX } }
/* clang-format on */

/* Sets the ticks where one of the first two was given, 0 for normal effort, and the deadline of
   stopping_asked where there are seconds. */
bool effort_read (call *c, int64_t *limit_ticks) MUST_CHECK;

#endif
