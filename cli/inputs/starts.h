/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --from: plans that are known before the search begins. */
#pragma once

#include "cli/call/call.h"
#include "solver/ask/ask.h"

/* Reads them into the question, which is complete but for them; a note says of each that is no plan
   here why it is none. given, planned: the trace as it is, and as its executor can follow it. */
bool starts_read (call *c, const trace *given, const trace *planned, ask *q) MUST_CHECK;
