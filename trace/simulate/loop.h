/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of the event loop: run.c has time and states, run_ops.c the queues of ops, run_copies.c
   the engines.  Used by these alone. */
#pragma once

#include "trace/host_rates.h"
#include "trace/simulate/run.h"

#define LAST_NS ((int64_t)1 << 62)
#define NANO 1000000000
#define NEVER_NS INT64_MAX

typedef unsigned __int128 wide;

typedef struct engine {
  int32_t lane;       /* the lane whose copy the engine carries; -1: free */
  sim_stream *stream; /* of that lane, whose op is the copy; NULL: it is the head of the queue */
  bool carries;
  int64_t latency_end_ns, from_ns, end_ns, rate;
  wide work; /* bytes x 10^9 */
} engine;

typedef struct loop {
  sim_run *r;
  int64_t now_ns;
  int32_t n_cards;
  bool alone; /* ops have their card's whole speed: nobody else's run on it at the same time */
  bool line;  /* copies of several lanes stand before one engine */
  int32_t running, ran;       /* lanes that run ops now, and when the shares were dealt last */
  bool shares_changed, asked; /* a lane's op set changed; `until` is to be asked */
  bool flows_changed;         /* the set of engines that carry */
  bool outs_held;
  engine engines[HOST_MOST_CARDS][COPY_WAYS];
} loop;

enum { KIND_OP, KIND_OUT, KIND_IN };

/* An item of a step starts or ends now. */
void loop_note (loop *l, sim_lane *lane, int32_t step, int kind, int end, int32_t place);
void loop_count_steps (loop *l, sim_lane *lane);

void ops_begin (loop *l, sim_lane *lane);
/* One pass over the lanes; true if anything happened, since ops of no length end at once. */
bool ops_advance (loop *l);
void ops_share (loop *l);
void op_start (loop *l, sim_lane *lane, sim_stream *s);
void op_end (loop *l, sim_lane *lane, sim_stream *s);

/* The engine has carried all. */
void copy_end (loop *l, int32_t card, copy_way way);
void copy_start (loop *l, int32_t card, copy_way way);
/* New rates where what carries has changed; false where an end would pass all time. */
bool copies_carry (loop *l);
int64_t engine_next (const engine *e);
