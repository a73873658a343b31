/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces of any number of ops, alike in everything but their length: layers forward and backward,
   an activation each that waits in between, weights with an update. */
#ifndef FERRY_TESTS_BENCH_BIG_TRACE_H
#define FERRY_TESTS_BENCH_BIG_TRACE_H

#include "solver/place/schedule.h"
#include "trace/trace.h"

trace *big_trace (int32_t n_ops, arena *a, error *err) MUST_CHECK;
/* The activations with the longest gaps, at most `most` of them, as wishes. */
bool big_wishes (const trace *t, int32_t most, arena *a, wish **out, int32_t *count,
                 error *err) MUST_CHECK;
device big_device (void);

#endif
