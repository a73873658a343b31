/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a plan with any durations at all and looks whether memory is used twice.  It knows the three
   queues and nothing of how safe or live are decided. */
#pragma once

#include "tests/random_case.h"

enum { BRUTE_STEPS = 4 };

typedef enum brute_queue { BRUTE_OP, BRUTE_OUT, BRUTE_IN } brute_queue;

/* place: the op, or the place in out_order or in_order; step from 0. */
typedef int64_t brute_duration (void *context, brute_queue queue, int32_t step, int32_t place);

typedef enum brute_verdict { BRUTE_FINE, BRUTE_HANGS, BRUTE_OVERLAPS } brute_verdict;

typedef struct brute brute;

/* What does not depend on durations is worked out once. */
brute *brute_new (const random_case *c, arena *a, error *err) MUST_CHECK;
brute_verdict brute_run (brute *b, brute_duration *duration, void *context);
