/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files that commands read, and how they are read. */
#pragma once

#include <stdio.h>

#include "cli/call/call.h"
#include "trace/plan.h"
#include "trace/trace.h"

/* --strict where the command has it; warnings go to the call's logger. */
read_options call_read_options (call *c);

/* The trace, after a note about its confidence where that is not exact. */
trace *call_trace (call *c, const char *path) MUST_CHECK;
plan *call_plan (call *c, const char *path) MUST_CHECK;

/* A file's name without its folder and endings: what it is called that says no name of its own. */
char *call_stem (call *c, const char *path) MUST_CHECK;

/* The last line of an answer about a plan: how far its trace is to be believed, unless wholly. */
void call_tell_doubt (FILE *to, call *c, const trace *t);
