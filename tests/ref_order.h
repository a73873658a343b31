/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of ops a second time: slow, obvious, from docs/formats.md alone, pair by pair.  The
   oracle of trace/rewrite/order; it shares its types and nothing else. */
#pragma once

#include "trace/rewrite/rewrite.h"

/* The op at each place, n_ops of them; NULL: the runs are not all ops, each once. */
int32_t *ref_order (const trace *t, const plan *p, arena *a, error *err) MUST_CHECK;
/* No two ops that meet in a tensor, one of them writing it, have changed sides. */
bool ref_order_keeps (const trace *t, const int32_t *order);

/* All of plan_rewrite. */
bool ref_plan_rewrite (const trace *t, const plan *p, arena *a, rewritten *out,
                       error *err) MUST_CHECK;
