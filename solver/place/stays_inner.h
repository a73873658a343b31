/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of the forward run.  Shared by solver/place/stays_run and solver/place/stays_choose;
   nothing else needs it. */
#pragma once

#include "solver/flow/peaks.h"
#include "solver/place/stays.h"

enum { WRITTEN_STEP = 3, LARGE = 20000, WRITTEN_STEP_LARGE = 2 };

typedef struct engine {
  int32_t move; /* -1: free */
  int64_t from_ns, end_ns, latency_ns;
  double left, rate; /* bytes, bytes a ns */
} engine;

typedef struct forward {
  stays *l;
  int64_t granules, held, now_ns, order;
  int32_t written; /* the step that is written down */
  int32_t op_step, op, out_step, out, in_step, in;
  int64_t ops_done, outs_done;
  bool running;
  int64_t op_end_ns, gap_end_ns;
  engine out_engine, in_engine;
  double out_rates[2], in_rates[2]; /* bytes a ns: alone, and where both carry */
  int32_t *ins_due;                 /* per op: how many copies in are for it */
  int32_t *ins_done[2]; /* per op, of even and of odd steps: how many of them have ended */
  int64_t *due;         /* per op: granules that come in for it */
  int32_t coming_step;  /* of the copy in on the link */
  /* if the run may choose: the copies in of in_step that could start, a heap of places in the order
     of need */
  bool chooses;
  int32_t *ready, n_ready;
  int32_t *in_place;         /* per move: its place in the order of need */
  bool *met;                 /* per move: it is among them, or has started */
  row_list counted;          /* per op: copies in that wait until it has ended */
  int32_t *chosen, n_chosen; /* in the written step */
  int64_t *op_outs;          /* per op: copies out that it waits for by wish */
  int64_t early;             /* granules that came in, or are coming, for ops ahead */
  peaks ahead;               /* level and what came early, per op */
  int32_t passed;            /* ops of this step before it: `ahead` is without what is early */
  moment step_start[WRITTEN_STEP + 2];
  int32_t left; /* moments of the written step that are still to come */
} forward;

static inline bool stays_is_released (const forward *f, int32_t move) {
  const stays *l = f->l;
  const wish *w = &l->moves[move];
  int64_t step = f->in_step, left_step = step - (w->in_before <= w->out_after);
  int64_t n = l->trace->n_ops;
  if (w->clean ? f->ops_done < left_step * n + w->out_after + 1
               : f->outs_done < left_step * l->n_outs + l->out_place[move] + 1)
    return false;
  return w->in_not_before == NO_WAIT || f->ops_done >= step * n + w->in_not_before;
}

/* For a run that may choose: the state it needs, and all that could come in at once. */
bool stays_choose_begin (forward *f, arena *a, error *err) MUST_CHECK;
void stays_meet_all (forward *f);
/* Something that the move waits for has come about. */
void stays_meet (forward *f, int32_t move);
/* The first of those that could come in does. */
void stays_ready_take (forward *f);
