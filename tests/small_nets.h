/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small relatives of the zoo's networks that can be calculated in a test, and ways to cut them and
   to make things again that do not come from the planner: all that the rules of rewriting let. */
#pragma once

#include "trace/rewrite/rewrite.h"
#include "trace/zoo/zoo.h"

typedef struct small_net {
  const char *name;
  int64_t batch, image, seq, width_divisor, depth_divisor, classes;
  zoo_optimizer optimizer;
  bool explicit_attention;
} small_net;

enum { SMALL_NETS = 7 };
extern const small_net small_nets[SMALL_NETS]; /* one of each family */

/* These fail the test where something is wrong. */
trace *small_trace (const small_net *s, arena *a);
rewritten small_rewrite (const trace *t, const section *sections, int32_t n_sections,
                         const recompute *entries, int32_t n_entries, arena *a);

/* The longest stretches of ops that can run in so many parts, up to `most` ops each; depth first,
   those that may. Returns how many; `out` has room for one an op. */
int32_t small_cut (const trace *t, int64_t parts, section_order order, int32_t most, section *out,
                   arena *a);
/* Entries for every op that can be made again on its own, as many as go together; cut is the trace
   after its sections. `out` has room for one an op of it. */
int32_t small_copies (const trace *t, const section *sections, int32_t n_sections, const trace *cut,
                      recompute *out, arena *a);
