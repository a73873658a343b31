/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A variant that does less: each further part of an op and each op that runs again takes its time,
   so stretches of a cut are left whole again, or recompute entries are left out, many at once
   first, while what is left is judged to be faster. */
#pragma once

#include "solver/attempt/variant.h"

/* Says what a variant takes, in step_ns; exactly only where that is below beat_ns. variant_try is
   one. */
typedef bool narrow_judge (const trace *t, const variant *v, const solve_options *o,
                           int64_t beat_ns, arena *scratch, variant_value *out, error *err);

typedef struct narrowed {
  variant v;
  variant_value value; /* as it is judged */
  int64_t ticks;       /* as those of searches for cuts and drops */
  int32_t tried;
} narrowed;

/* Ops of its sections that stay cut; or its entries that stay, by quick plans. Until the ticks are
   spent, or what is left to try saves next to nothing. The sections, or the entries, are in `a`. */
bool narrow_cut (const trace *t, const solve_options *o, narrow_judge *judge, int64_t limit_ticks,
                 arena *a, arena *scratch, narrowed *of, error *err) MUST_CHECK;
bool narrow_drops (const trace *t, const solve_options *o, int64_t limit_ticks, arena *a,
                   arena *scratch, narrowed *of, error *err) MUST_CHECK;
