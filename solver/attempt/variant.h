/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A way to rewrite a step before anything moves: sections and recompute entries, as in a plan. What
   it would cost is asked in three ways, each dearer than the one before: can it fit, what does its
   program say, and what does a plan reach. */
#pragma once

#include "solver/flow/step.h"
#include "solver/options/options.h"
#include "trace/rewrite/rewrite.h"

typedef struct variant {
  const char *name; /* the strategy that proposed it */
  section *sections;
  recompute *recomputes;
  int32_t n_sections, n_recomputes;
} variant;

/* Everything that is known of a variant. */
typedef struct variant_value {
  bool legal;          /* the rewriting is accepted */
  int64_t compute_ns;  /* of the rewritten trace */
  int64_t floor_bytes; /* no smaller budget has a plan */
  int32_t n_ops;
  int64_t over_bytes; /* bytes that the budget lacks, if nothing fits */
  int64_t bound_ns;   /* of its plans; INT64_MAX: none fits */
  int64_t step_ns;    /* of the greedy plans tried; INT64_MAX: none */
  int64_t ticks;      /* spent on that, in simulated events or their like */
} variant_value;

/* A step as a variant makes it: the trace, and it counted in bytes as any plan may. */
typedef struct rewritten_step {
  rewritten rw;
  counted_step step;
} rewritten_step;

/* The same entries, whatever the sections. */
bool variant_same_drops (const variant *a, const variant *b);
/* The same sections as one of the others, whatever the entries. */
bool variant_has_cuts_of (const variant *v, const variant *others, int32_t count);

bool variant_rewrite (const trace *t, const variant *v, const solve_options *o, arena *a,
                      rewritten_step *out, error *err) MUST_CHECK;

/* Rewrites and counts; bound_ns is then the larger of compute and what must cross. */
bool variant_look (const trace *t, const variant *v, const solve_options *o, arena *scratch,
                   variant_value *out, error *err) MUST_CHECK;
/* That, and the bound of the variant's program; rough: not refined. */
bool variant_bound (const trace *t, const variant *v, const solve_options *o, bool rough,
                    arena *scratch, variant_value *out, error *err) MUST_CHECK;
/* That look, and the best of a few greedy plans, simulated, where the look leaves hope to take less
   than beat_ns; 0: any. */
bool variant_try (const trace *t, const variant *v, const solve_options *o, int64_t beat_ns,
                  arena *scratch, variant_value *out, error *err) MUST_CHECK;
