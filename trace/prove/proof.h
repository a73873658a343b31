/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A proof as read: what prove.c takes from prove_read.c. */
#pragma once

#include "trace/rewrite/loosen.h"
#include "trace/prove/prove.h"

enum { PROOF_CLASSES = 8, PROOF_DUAL_BITS = 30, PROOF_COEF_BITS = 24 };

/* Ways that the plans it speaks of may use beside copies over the link. */
typedef enum proof_drops { PROOF_DROPS_none, PROOF_DROPS_allowed, PROOF_DROPS_only } proof_drops;

typedef enum proof_kind { PROOF_compute, PROOF_crossing, PROOF_flow } proof_kind;

/* Duals x 2^30. Of a series per class, class c has the slots [c * slots, (c + 1) * slots). */
typedef struct proof {
  proof_kind kind;
  bool any_units;
  int32_t op; /* of a crossing */
  int shift;
  int32_t slots, classes;
  int32_t *first; /* slots + 1: the first op of each, and n_ops */
  int64_t class_from[PROOF_CLASSES], cycle[PROOF_CLASSES];
  int64_t *pending, *host_first, *host, *early_first, *early; /* per class */
  int64_t *stall_out, *stall_in, *work_out, *work_in, *need_first, *need, *host_limit;
  proof_drops drops;
  bool fresh;    /* of plans whose copies keep nothing beyond its last use */
  int32_t peak;  /* a tensor dropped over this op is made again behind it; NO_OP: anywhere */
  bool sections; /* it speaks of every cut with these orders */
  loose_orders orders;
  uint8_t *again; /* per op: what it wrote last may be dropped; NULL: any */
  int64_t *ready, *made, *remake, *shares;
  int32_t n_shares;
  bool seams; /* slots may meet inside a run of loose ops */
  int64_t *cuts, *inner_first, *inner_end, *carry_out, *carry_in, *owed, *owed_work; /* per slot */
  int64_t *reach_inner, *reach_next; /* per seam and slot of its run before it */
  int32_t n_reach;
} proof;

/* The ops of the traces that a proof may speak of. */
typedef struct proof_ops {
  int32_t rewritten;              /* as the plan rewrites it */
  int32_t cut;                    /* in which only sections are made: with drops */
  int32_t loosened[LOOSE_ORDERS]; /* of every cut */
} proof_ops;

bool proof_read (const char *text, const proof_ops *n, arena *a, proof *out, error *err) MUST_CHECK;
