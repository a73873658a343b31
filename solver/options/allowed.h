/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All that a plan may do beside swapping: run ops in sections, make tensors again, move ops. */
#pragma once

#include "solver/options/options.h"
#include "trace/trace.h"

typedef struct allowed {
  sections_mode sections;
  int64_t section_parts; /* of SECTIONS_FIXED */
  sections_orders section_orders;
  recompute_mode recompute;
  order_mode order;
} allowed;

/* Nothing beside copies. */
#define SWAPS_ALONE \
  { .sections = SECTIONS_OFF, .recompute = RECOMPUTE_OFF, .order = ORDER_AS_IS }

/* The default: everything that the trace can tell is safe. One that only knows which tensors an op
   touches does not say what may be made again or moved; sections need ops that run in parts; ops of
   several streams are neither cut nor moved. */
allowed allowed_by (const trace *t);

/* The most parts in which any op may run; 1: no op can be cut. */
int64_t allowed_most_parts (const trace *t);

/* Everything that any trace may allow. */
#define ALL_ALLOWED \
  { .sections = SECTIONS_AUTO, .recompute = RECOMPUTE_AUTO, .order = ORDER_ANY }

/* All of `x`, as far as `most` has it; false where nothing is left: x has no drops, and `most` no
   swaps. */
bool allowed_cut (const allowed *x, const allowed *most, allowed *out);
bool allowed_is_same (const allowed *x, const allowed *y);
/* Every plan that x allows is one that y allows. */
bool allowed_is_within (const allowed *x, const allowed *y);

/* Is anything allowed beside swapping? */
bool allowed_rewrites (const allowed *x);

/* All plans with such cuts and drops, in the order of the trace. */
cover allowed_cover (const solve_options *o);

void allowed_into (const allowed *x, solve_options *o);
allowed allowed_of (const solve_options *o);

/* The words of the options --recompute, --order, --section-order and --placement, NULL at the end;
   in the order of the modes. */
extern const char *const recompute_words[], *const order_words[], *const section_order_words[],
                                                                      *const places_words[];

/* "allowed": {"order": "any", "recompute": "auto", "sections": "off"}, as the options would spell
   it. */
void allowed_write (json_writer *w, const allowed *x);
/* "swaps, recomputed tensors, ops in parts, ops in any order" */
const char *allowed_text (const allowed *x, arena *a, error *err);
