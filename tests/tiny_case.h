/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tiny random traces, all plans of which can be tried. */
#pragma once

#include "base/random.h"
#include "trace/plan.h"

enum { TINY_GRANULE = 512 };

typedef struct tiny_case {
  trace *trace;
  device device;
  int64_t budget_bytes;
} tiny_case;

/* A few ops and tensors, every copy of which takes a whole number of nanoseconds; no shared rate,
   no groups, no pool. False without an error: nothing has to move, or nothing can. */
bool tiny_make (uint64_t seed, arena *a, tiny_case *out, error *err) MUST_CHECK;

/* The same with more ops and tensors, of any multiple of 64 bytes: many are smaller than a granule. */
bool tiny_make_odd (uint64_t seed, arena *a, tiny_case *out, error *err) MUST_CHECK;

/* As tiny_make, but any activation can be made again and, where it says so, most ops can run in two
   or three parts; the budget may be below what a whole op needs. */
bool tiny_make_cut (uint64_t seed, bool parts, int32_t most_ops, arena *a, tiny_case *out,
                    error *err) MUST_CHECK;

/* Granules at the fullest op with all there, and at the op that needs most by itself. */
void tiny_levels (const trace *t, int64_t *peak, int64_t *floor);
/* How many granules have an idle time, once for each of these. */
int64_t tiny_idle (const trace *t);
/* One with a link on which any multiple of 64 bytes takes whole nanoseconds, without latency. */
void tiny_device (random_state *r, device *out);
