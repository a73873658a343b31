/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan as three queues of items with waits, in an order in which a host can issue them: whatever
   an item waits for in its own step stands before it, so no wait is ever for something not yet
   issued, and nothing is issued twice.  What other waits imply is not waited for. */
#ifndef FERRY_EXECUTOR_REPLAY_PROGRAM_H
#define FERRY_EXECUTOR_REPLAY_PROGRAM_H

#include "trace/plan.h"
#include "trace/rewrite/rewrite.h"

typedef enum program_queue { QUEUE_OPS, QUEUE_OUTS, QUEUE_INS, QUEUES } program_queue;

/* For the end of the item at a place in a queue, `lag` steps ago (0 to 2). */
typedef struct program_wait {
  program_queue queue;
  int32_t position, lag;
} program_wait;

typedef struct program_item {
  program_queue queue;
  int32_t position;                /* in its queue: an op, or a place in out_order or in_order */
  int32_t index;                   /* the op or the move */
  int32_t first_demand, n_demands; /* the plan's waits */
  int32_t first_wait, n_waits;     /* those of them that no others imply */
} program_item;

typedef struct program {
  program_item *items; /* one step, in order of issue */
  int32_t n_items;
  program_wait *demands, *waits;
  int32_t count[QUEUES];
  int32_t *place[QUEUES]; /* of the item at each position, in `items` */
  bool *awaited[QUEUES];  /* somebody waits for it: it needs an event */
} program;

/* The plan has passed check; one that hangs is still told as an error. */
bool program_make (const rewritten *rw, const plan *p, arena *a, program *out,
                   error *err) MUST_CHECK;

#endif
