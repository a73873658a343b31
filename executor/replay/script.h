/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One step of a walk as the driver calls that make it, worked out before the first step: what is
   launched with which parameters, what is copied from where to where, which item's event is
   recorded or waited for.  Launches that follow each other are one entry, so that an op of a plan
   that moves nothing costs the host its launch and no decision. */
#pragma once

#include "executor/kernels/kernels.h"
#include "trace/walk/walk.h"
#include "executor/room/room.h"

typedef enum script_kind {
  SCRIPT_LAUNCH,
  SCRIPT_CALCULATE, /* the op at `place`, or, where nobody calculates, the launch that takes its
                       time */
  SCRIPT_WAIT,
  SCRIPT_MEET, /* an op with which a step begins waits until all other ranks have ended the one
                  before */
  SCRIPT_COLLECTIVE, /* the op at `place` waits until all ranks of its group have come to it */
  SCRIPT_BEGIN,      /* record */
  SCRIPT_END,        /* record */
  SCRIPT_OUT,
  SCRIPT_IN
} script_kind;

typedef struct script_copy {
  CUdeviceptr device;
  char *host;
  size_t bytes;
  uint64_t owner; /* of the host's bytes, for the race checker */
} script_copy;

typedef struct script_call {
  script_kind kind;
  int32_t stream;       /* script_stream_of */
  int32_t first, count; /* launches, or one copy */
  int32_t place, lag;   /* the event of the item at this place, `lag` steps ago */
} script_call;

typedef struct script {
  kernel_launch *launches;
  script_copy *copies;
  script_call *calls;
  int32_t n_launches, n_copies, n_calls;
} script;

typedef struct script_request {
  const walk *walk;
  const rewritten *rewritten;
  const plan *plan;
  const room *room; /* open */
  const kernels *kernels;
  const kernel_operand *operands; /* by op; NULL: ops take their time and touch nothing */
  const int32_t *op_offset;
  mismatch *found;
  int64_t *step;             /* launches find the number of their step here */
  bool calculated;           /* ops are not launches but calculations */
  bool timed;                /* every item has an event before it and one behind it */
  bool ended;                /* every item has one behind it */
  bool meets;                /* this is one of several ranks */
  const int32_t *meeting_of; /* per op: its number among collectives, or -1; NULL: nobody meets */
} script_request;

/* Streams are numbered: that of the first ops, those of the copies, those of other ops. */
static inline int32_t script_stream_of_op (const op *o) {
  return o->stream ? WALK_QUEUES + o->stream - 1 : WALK_OPS;
}
static inline int32_t script_stream_of (const trace *t, const walk_item *i) {
  return i->queue == WALK_OPS ? script_stream_of_op (&t->ops[i->index]) : (int32_t)i->queue;
}
static inline int32_t script_streams (const trace *t) {
  return WALK_QUEUES + (trace_has_streams (t) ? t->n_streams - 1 : 0);
}

/* The place of the item whose end is this item's beginning, in a step that is timed: the op before
   it, where it waits for nothing else; -1: it has an event of its own. */
int32_t script_begins_with (const walk *p, const rewritten *rw, int32_t place);

bool script_make (const script_request *q, arena *a, script *out, error *err) MUST_CHECK;
