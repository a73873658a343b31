/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of a step with recompute entries, guessed in a small part of the time that rewriting,
   scheduling and simulating it take: where every tensor lives is counted exactly, and what is then
   over the budget goes over the link by a greedy rule, as if bytes were a fluid.  Only ranks sets
   of drops against each other; nothing of it is ever shown. */
#pragma once

#include "trace/device.h"
#include "trace/plan.h"
#include "trace/uses.h"

/* State that all sets of one trace share. */
typedef struct drops_pricing {
  const trace *trace;
  int32_t *touched_of, *touched; /* per op the tensors that it needs there, as trace/uses says */
  int64_t *room;                 /* per tensor: bytes, in granules where it is not in the pool */
  int64_t pool_below_bytes, granule_bytes;
  double out_ns, in_ns; /* a byte on the link */
  double copy_ns;       /* beside its bytes */
  int64_t least_bytes;  /* smaller ones stay */
  bool swaps;           /* bytes over the budget may leave */
} drops_pricing;

typedef struct drops_price {
  int32_t n_ops;
  int64_t compute_ns;    /* exact */
  int64_t stall_ns;      /* guessed */
  int64_t lacking_bytes; /* over the budget at the worst op, whatever leaves; 0: it may fit */
} drops_price;

bool drops_pricing_of (const trace *t, const uses *u, const device *d, bool swaps, arena *a,
                       drops_pricing *out, error *err) MUST_CHECK;

bool drops_price_of (const drops_pricing *p, const recompute *entries, int32_t n_entries,
                     int64_t budget_bytes, arena *scratch, drops_price *out, error *err) MUST_CHECK;
