/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sections and recompute a second time: slow, obvious, written from docs/formats.md and
   docs/machine-model.md alone.  The oracle of trace/rewrite/rewrite; it shares its types and
   nothing else.
 */
#pragma once

#include "trace/rewrite/rewrite.h"

/* Always a new trace, also where there is nothing to rewrite. */
bool ref_rewrite (const trace *t, const section *sections, int32_t n_sections,
                  const recompute *recomputes, int32_t n_recomputes, int64_t section_ns, arena *a,
                  rewritten *out, error *err) MUST_CHECK;
