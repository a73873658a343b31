/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry advise TRACE --host NAME`: how many ranks of a job fit a host. */
#pragma once

#include "cli/call/call.h"
#include "solver/fleet/node.h"

/* --slowdown, --rank-memory and --ranks. */
bool node_asked (call *c, node_question *out) MUST_CHECK;
/* The advice as JSON, planned here; what was tried as a table where `shows`. */
bool node_advise (call *c, bool shows, bytes *out) MUST_CHECK;
/* How many, in what, and what it costs, in one sentence. */
void node_print (const node_facts *f, const node_question *q, const node_answer *a);
