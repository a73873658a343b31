/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An order, sections and recompute entries turn a trace into another one, in which nothing is
   special: every part of an op is an op, every piece of a tensor a tensor.  Who has the trace, the
   three lists and section_ns rebuilds it exactly. */
#pragma once

#include "trace/plan.h"
#include "trace/trace.h"

/* Which items of the batch, of which op or tensor of the original trace; whole: [0, batch). */
typedef struct origin {
  int32_t index;
  int64_t first_item, end_item;
  bool copy; /* an op of a recompute entry, or a tensor that one made */
} origin;

typedef struct rewritten {
  const trace *trace; /* the original itself where there is nothing to rewrite */
  const origin *ops;  /* one a rewritten op */
  const origin *tensors;
} rewritten;

/* The wishes; all 0: the trace as it is. */
typedef struct rewriting {
  const section *sections;
  const recompute *recomputes;
  int32_t n_sections, n_recomputes;
  int64_t section_ns;
} rewriting;

/* An error's place is a JSON pointer into a plan ("/sections/0", "/recompute/3/ops/1"). */
bool trace_rewrite (const trace *t, const rewriting *r, arena *a, rewritten *out,
                    error *err) MUST_CHECK;
/* The same with a plan's own lists and device, its order first. */
bool plan_rewrite (const trace *t, const plan *p, arena *a, rewritten *out, error *err) MUST_CHECK;
/* Its order and sections alone: the trace that its recompute entries are about. */
bool plan_cut (const trace *t, const plan *p, arena *a, rewritten *out, error *err) MUST_CHECK;
