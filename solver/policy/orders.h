/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SwapAdvisor's search over the order of the ops: a genetic algorithm whose genome is a priority
   for each op, decoded by list scheduling, and judged by the simulated plan of its planner.  A plan
   carries its order. */
#pragma once

#include "solver/policy/policy.h"

typedef struct orders_options {
  int64_t evaluations; /* most plans that are judged */
  int64_t population, generations;
  int64_t mutation_ppm; /* of a gene */
  uint64_t seed;
} orders_options;

/* Which ops must have run before each: whoever wrote what it reads or writes, and whoever read what
   it writes. */
typedef struct orders_graph {
  int32_t n;
  int32_t *offset, *after; /* per op: the ops that wait for it */
  int32_t *waits_for;      /* per op: how many */
} orders_graph;

bool orders_graph_of (const trace *t, arena *a, orders_graph *out, error *err) MUST_CHECK;
/* Next among the ops that may run is the one of least priority, then index; order has room for
   all. */
bool orders_decode (const orders_graph *g, const int32_t *priority, int32_t *order, arena *scratch,
                    error *err) MUST_CHECK;

/* The best order's answer, with out->order where it is not the trace's own. The given order is one
   of those judged, so the answer is never worse than its. */
bool orders_search (const policy_request *r, const orders_options *o, arena *a, policy_answer *out,
                    error *err) MUST_CHECK;
