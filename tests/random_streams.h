/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams for a random trace. */
#pragma once

#include "base/random.h"
#include "trace/trace.h"

/* Two to four streams and waits between them, as chance has it. `ordered`: also those that the
   trace's tensors need, so that nothing races. */
bool random_streams (random_state *r, trace *t, bool ordered, arena *a, error *err) MUST_CHECK;
