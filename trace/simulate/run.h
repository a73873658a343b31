/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The event loop of the machine model: jobs, their queues, two engines a card.  Steps count
   from 0; what of step -1 an item waits for has happened. Used in this folder only. */
#pragma once

#include "trace/host.h"
#include "trace/simulate/simulate.h"

enum { SIM_STEPS = 32, SIM_JOB_STEPS = 33, SIM_NO_STEP = -1, SIM_NO_OP = -1 };

/* Needs are counts of ended items relative to the item's own step; SIM_NEVER: nothing is needed. */
#define SIM_NEVER (INT64_MIN / 4)

typedef struct sim_op {
  int64_t ns, gap_ns;
  int32_t ins, outs; /* INT32_MIN: none */
} sim_op;

typedef struct sim_meeting {
  int32_t group; /* of a collective: its ranks; -1: the op is none */
  int32_t nth;   /* and which of theirs in a step */
} sim_meeting;

typedef struct sim_copy {
  int64_t ops, outs; /* an out needs ops only */
  int64_t bytes;
  int32_t move;
} sim_copy;

/* The linear hash of one step's times: of differences to the start of its op 0, which may not have
   happened yet when the first copy in starts. */
typedef struct sim_state {
  unsigned __int128 sum, weights;
} sim_state;

/* A queue of compute: its head runs, or is to run next. */
typedef struct sim_stream {
  int32_t op; /* SIM_NO_OP: the next one waits for ops of other streams */
  bool running;
  int64_t gap_end_ns, op_end_ns, op_from_ns, ready_ns; /* ready -1: it may not start yet */
  unsigned __int128 op_work;
} sim_stream;

/* Ops of several streams: who waits for whom in a step. */
typedef struct sim_beside {
  int32_t *stream_of, *waits_for; /* per op: how many others it waits for */
  int32_t *first, *next; /* those that wait for op k: next[first[k]] to next[first[k + 1]] */
  int32_t *left;         /* of waits_for, those that have not ended */
  int64_t *bytes;        /* of ops that are copies, to the host less than 0; NULL: none is */
  bool *ended;
  int32_t prefix; /* how many at the head of the list have ended */
} sim_beside;

typedef struct sim_lane {
  int32_t n_ops, n_outs, n_ins, n_streams;
  sim_op *ops;
  sim_copy *outs, *ins;
  sim_stream *streams;
  sim_beside *beside;    /* NULL: one stream */
  sim_meeting *meetings; /* per op; NULL: ranks have no collectives */
  int32_t *in_group;     /* per group: how many collectives of it there are in a step */
  /* each queue's state: the step and place of its head, and all that ended before it */
  int32_t op_step, out_step, out, in_step, in;
  int32_t running;                       /* streams that run an op */
  int64_t ops_done, outs_done, ins_done; /* ops: those before the first that has not ended */
  int64_t out_ready_ns, in_ready_ns;     /* -1: its head may not start yet */
  int64_t starts_ns[SIM_JOB_STEPS];      /* of op 0 */
  sim_state states[SIM_STEPS];
  int32_t steps_done; /* steps of which every item has ended */
} sim_lane;

typedef struct sim_record { /* one step of one lane, absolute times */
  int32_t lane, step;
  span *ops, *outs, *ins; /* by op, by move */
} sim_record;

typedef struct sim_run {
  sim_lane *lanes;
  int32_t n_lanes;
  const gpu_host *host; /* each lane is on a card of it; NULL: all are on one card */
  bool together;        /* ranks, which begin each step together */
  link_rates rates;     /* of one card's link */
  int64_t copy_ns;
  bool turns, laden;
  const sim_record *record; /* or NULL */
  int64_t events;
} sim_run;

/* Runs from time 0 until until (run, context) is true, which is asked whenever a step of a lane has
   ended or its op 0 has started. False: the plan hangs, or time passes 2^62. */
bool sim_run_until (sim_run *r, bool (*until) (const sim_run *r, void *context), void *context,
                    error *err) MUST_CHECK;

/* Have two steps the same times, relative to the start of the first lane's op 0? */
bool sim_same_state (const sim_run *r, int32_t a, int32_t b);
