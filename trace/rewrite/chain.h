/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A longest path of a step of several streams, as a trace of one: what every plan of the step does
   with its ops and tensors is something that a plan of the path could do, in no more time.  So a
   bound of the path is one of the step (trace/prove/evaluation.md). */
#pragma once

#include "trace/trace.h"

/* Tensors keep their numbers. Of one stream: the trace itself. */
bool trace_chain (const trace *t, arena *a, const trace **out, error *err) MUST_CHECK;
