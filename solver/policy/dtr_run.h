/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step run once under the rule of dynamic tensor rematerialization: no plan ahead.  While what an
   op writes has no room, the tensor with the least cost for its bytes and the time since its last
   use goes; what an op misses is made again on demand.  Kirisame et al., ICLR 2021. */
#pragma once

#include "trace/plan.h"
#include "trace/uses.h"

/* The cost of a tensor: that of its own writers; with it the sums of the classes of gone neighbours
   that it touches; or all that would run for it, and all gone that would need it first. */
typedef enum dtr_cost { DTR_OWN, DTR_CLASSES, DTR_ALL } dtr_cost;

/* How much the cost counts beside bytes and staleness. The rule as published has it as it is; of
   several runs the best is taken, and on long unrolled steps its root or square did better. */
typedef enum dtr_weight { DTR_AS_IS, DTR_ROOT, DTR_SQUARE, DTR_WEIGHTS } dtr_weight;

typedef struct dtr_request {
  const trace *trace;
  const uses *uses;
  const int64_t *room;  /* per tensor: its bytes against the budget */
  const uint8_t *may;   /* per op: its outputs may go; NULL: any */
  int64_t budget_bytes; /* of tensors and workspaces */
  int64_t floor_bytes;  /* smaller tensors stay */
  dtr_cost cost;
  dtr_weight weight;
  bool keeps;                   /* as remake_rule's */
  bool (*stop) (void *context); /* true ends the run where it is; or NULL */
  void *stop_context;
} dtr_request;

typedef struct dtr_answer {
  recompute *entries;
  int32_t n_entries;
  int64_t replaced;      /* tensors that entries brought back */
  int64_t lacking_bytes; /* at the worst moment; 0: everything had room */
  int64_t again_ns;      /* of ops that ran again */
} dtr_answer;

/* Ends early, and lacks, where far more would run again than the step has, and where it is stopped.
 */
bool dtr_run (const dtr_request *q, arena *a, dtr_answer *out, error *err) MUST_CHECK;
