/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From tensors that are dropped to the recompute lists of a plan: which ops run again, in which
   entry, and what their copies replace. */
#pragma once

#include "solver/policy/policy.h"

/* True if the tensor can be made again for op `before`: one op wrote it, from scratch, and what
   that op read can be had. */
bool policy_can_drop (const policy_view *v, int32_t tensor, int32_t before);

/* Drops that cannot be made again are left out; *kept says how many were taken. */
bool policy_recomputes (policy_view *v, const policy_choice *c, recompute **out, int32_t *count,
                        int64_t *kept, error *err) MUST_CHECK;

/* The peak once these drops have rewritten the trace. */
bool policy_peak (policy_view *v, const policy_choice *c, int64_t *out, error *err) MUST_CHECK;
