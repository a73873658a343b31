/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options by which a user allows less than the trace does, and says where stays may lie: the same
   wherever plans are made. */
#pragma once

#include "cli/call/call.h"
#include "solver/options/allowed.h"

/* clang-format off */
#define OPTIONS_OF_REWRITING \
  { 0, "swap-only", NULL, "copies only: as --sections off --recompute off --order as-is" }, \
  { 0, "sections", "auto|off|N", \
    "cut ops along the batch into as many parts as fit best, into none, or into N; default: " \
    "auto where the trace's ops have parts", { UNITS_COUNT, 2, MOST_PARTS } }, \
  { 0, "recompute", "off|cheap|auto|only", \
    "which tensors may be dropped and computed again: none, outputs of cheap ops, any, or any " \
    "without swapping; default: auto unless the trace only knows what ops touch" }, \
  { 0, "order", "as-is|updates|any", \
    "order of the ops: that of the trace, also with updates moved up to their gradients, or " \
    "any that keeps every value; default: any unless the trace only knows what ops touch" }
#define OPTION_PLACEMENT \
  { 0, "placement", "granules|arena|auto", \
    "memory as granules that are mapped one by one, as one arena, or whichever is faster; " \
    "default: auto" }
/* clang-format on */

/* From the default to what the user allows; t NULL: of traces that are still to be made. */
bool rewriting_read (call *c, const trace *t, allowed *out) MUST_CHECK;
/* "allowed: swaps, ops in parts" */
bool rewriting_print (FILE *to, call *c, const allowed *x) MUST_CHECK;
bool placement_read (call *c, places_mode *out) MUST_CHECK;
