/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan as one walk: the ops and copies of a step, each with what it waits for, in an order in
   which one thread can issue them.  Whatever an item waits for in its own step stands before it, so
   no wait is for something that is not issued yet.  Every executor walks a plan by this list. */
#pragma once

#include "trace/rewrite/rewrite.h"
#include "trace/walk/demands.h"
#include "trace/walk/stays.h"

#define WALK_FORMAT "ferry-walk/1"

typedef struct walk_item {
  walk_queue queue;
  int32_t position; /* in its queue: an op, or a place in out_order or in_order */
  int32_t index;    /* the op of the rewritten trace, or the move */
  /* The number of ops of its step that are issued before it. At most 0 for a copy in that only
     waits for the step before: there it can be issued behind `ops` + this many ops. */
  int32_t behind;
  int32_t remake;                  /* of an op: the recompute entry that it belongs to, or -1 */
  int32_t stay;                    /* left by a copy out, begun by a copy in; an op's workspace;
                                      -1: none */
  int32_t first_demand, n_demands; /* the plan's waits */
  int32_t first_wait, n_waits;     /* those of them that no others imply */
} walk_item;

typedef struct walk {
  const rewritten *rewritten;
  const plan *plan;
  units units;
  stay_map stays;
  walk_item *items; /* one step, in order of issue */
  int32_t n_items;
  walk_wait *demands, *waits;
  int32_t count[WALK_QUEUES];
  int32_t *place[WALK_QUEUES]; /* of the item at each position, in `items` */
  bool *awaited[WALK_QUEUES];  /* somebody waits for it: it needs an event */
} walk;

/* The plan has passed check; one that hangs is still an error. */
bool walk_make (const rewritten *rw, const plan *p, arena *a, walk *out, error *err) MUST_CHECK;

/* The format of trace/walk/format.md, for executors that are not linked with this code. */
bool walk_text (const walk *w, const trace *original, bytes *out, error *err) MUST_CHECK;
