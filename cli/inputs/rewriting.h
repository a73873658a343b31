/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options by which a user allows less than the trace does, and says where stays may lie: the same
   wherever plans are made. */
#ifndef FERRY_CLI_INPUTS_REWRITING_H
#define FERRY_CLI_INPUTS_REWRITING_H

#include "cli/call/call.h"
#include "solver/options/allowed.h"

/* clang-format off */
#define OPTIONS_OF_REWRITING \
  { 0, "swap-only", NULL, "copies only: as --sections off --recompute off --order as-is" }, \
  { 0, "sections", "auto|off|N", "run ops along the batch in parts that fit best, or in N; " \
    "default: auto where the trace's ops have parts", { UNITS_COUNT, 2, MOST_PARTS } }, \
  { 0, "recompute", "off|cheap|auto|only", "drop what can be made again: outputs of cheap ops, any, " \
    "or any and swap nothing; default: auto unless the trace only knows what ops touch" }, \
  { 0, "order", "as-is|updates|any", "the ops in the order of the trace; or also each update as soon " \
    "as its gradient is final; or also any order that keeps every value; default: any unless the " \
    "trace only knows what ops touch" }
#define OPTION_PLACEMENT \
  { 0, "placement", "granules|arena|auto", "map granules, keep each stay in one stretch of an arena, " \
    "or auto: granules, and where that is not near the bound, an arena if it is faster; default: " \
    "auto" }
/* clang-format on */

/* From the default to what the user allows; t NULL: of traces that are still to be made. */
bool rewriting_read (call *c, const trace *t, allowed *out) MUST_CHECK;
/* "allowed: swaps, ops in parts" */
bool rewriting_print (FILE *to, call *c, const allowed *x) MUST_CHECK;
bool placement_read (call *c, places_mode *out) MUST_CHECK;

#endif
