/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A proof as plain figures that can be changed one by one, and written as a plan carries it. */
#pragma once

#include "base/random.h"
#include "trace/prove/proof.h"

enum {
  FORGED_SLOTS = 16,
  FORGED_CLASSES = 8,
  FORGED_SHARES = 256,
  FORGED_PER_CLASS = 5,
  FORGED_REACH = 120
};

/* In the order of trace/prove/evaluation.md; the first five have a list a class. */
typedef enum forged_series {
  FORGED_pending,
  FORGED_host_first,
  FORGED_host,
  FORGED_early_first,
  FORGED_early,
  FORGED_stall_out,
  FORGED_stall_in,
  FORGED_work_out,
  FORGED_work_in,
  FORGED_need_first,
  FORGED_need,
  FORGED_host_limit,
  FORGED_ready,
  FORGED_made,
  FORGED_remake,
  FORGED_cuts, /* from here on of seams */
  FORGED_inner_first,
  FORGED_inner_end,
  FORGED_carry_out,
  FORGED_carry_in,
  FORGED_owed,
  FORGED_owed_work,
  FORGED_SERIES
} forged_series;

typedef struct forged {
  int kind, drops, orders, shift;
  bool any_units, fresh, sections, has_again, seams;
  unsigned again;
  int32_t op, peak, slots, classes, n_shares, n_reach;
  int32_t first[FORGED_SLOTS];
  int64_t reach[2][FORGED_REACH];
  int64_t class_from[FORGED_CLASSES], cycle[FORGED_CLASSES], shares[FORGED_SHARES];
  int64_t dual[FORGED_SERIES][FORGED_CLASSES][FORGED_SLOTS];
} forged;

/* False: too large for this. */
bool forged_of (const proof *p, int32_t n_ops, forged *out);
const char *forged_text (const forged *f, arena *a, error *err) MUST_CHECK;
/* One change; n_ops of the trace that it is about. */
void forged_change (forged *f, int32_t n_ops, random_state *r);
