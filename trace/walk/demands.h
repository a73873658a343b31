/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The waits of each op and copy, as docs/machine-model.md defines them: for the end of an item of
   another queue, in this step or one or two before.  (An item also waits for the one before
   it in its own queue.) */
#pragma once

#include "trace/plan.h"

typedef enum walk_queue { WALK_OPS, WALK_OUTS, WALK_INS, WALK_QUEUES } walk_queue;

extern const char *const walk_queue_names[WALK_QUEUES];

/* For the end of the item at a place in a queue, `lag` steps ago (0 to 2). */
typedef struct walk_wait {
  walk_queue queue;
  int32_t position, lag;
  bool implied; /* by others: who waits for those need not wait for this one */
} walk_wait;

enum { WALK_MOST_DEMANDS = 3 }; /* of one item */

typedef struct demands {
  const plan *plan;
  int32_t count[WALK_QUEUES];
  int32_t *out_place; /* of a move in out_order; -1: clean */
  int32_t *last_in;   /* of an op: the last place in in_order that it waits for, or -1 */
  int32_t *outs;      /* of an op: its row of op_waits, or NO_WAIT */
} demands;

/* The plan may be one that nobody has checked: an index of what is not there is an error. */
bool demands_make (const plan *p, int32_t n_ops, arena *a, demands *out, error *err) MUST_CHECK;
/* How many there are, and which. */
int32_t demands_of (const demands *d, walk_queue queue, int32_t position,
                    walk_wait out[WALK_MOST_DEMANDS]);
/* A wait as a count: how many items of its queue must have ended, relative to the step. */
int64_t demands_count (const demands *d, const walk_wait *w);
