/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The running part of a replay: streams, events, issue, times.  Its parts are replay.c's own. */
#pragma once

#include <pthread.h>

#include "trace/walk/walk.h"
#include "executor/replay/replay.h"
#include "executor/room/room.h"
#include "executor/replay/script.h"

/* A collective that ranks have in common, for one of them. */
typedef struct replay_meeting {
  bool is;            /* this rank has it */
  int64_t came;       /* so often it was issued; under the team's lock */
  CUevent arrived[2]; /* of an even step, and of an odd one */
} replay_meeting;

/* All ranks of a replay; most have one. The lock guards what is below it. */
typedef struct replay_team {
  struct replay_state *ranks;
  int32_t n;
  pthread_mutex_t lock;
  pthread_cond_t all;
  int32_t there; /* ranks that wait for the others */
  int64_t round;
  bool failed; /* one of them has, and nobody waits for it any more */
} replay_team;

typedef struct replay_state {
  replay_team *team;
  int32_t rank;
  bool gave_up; /* since another rank failed */
  const plan *plan;
  const rewritten *rewritten;
  const replay_options *options;
  driver driver;
  emu_advance advance;
  emu_hold hold;
  emu_event_time event_time;
  emu_races races;
  emu_stream_copies stream_copies;
  emu_ordered ordered; /* NULL: nobody looks for orders */
  emu_tag tag;         /* NULL: nobody looks for owners */
  walk walk;
  script plain, timed_script; /* a step without events that nobody waits for, and with all */
  int64_t step;               /* the number that launches find */
  room room;
  kernels kernels;
  bool sees_bytes;                /* operands are made: verify, or the race checker */
  calculation *calculation;       /* NULL: not in this run */
  int64_t copies, waits;          /* issued */
  int32_t n_missing;              /* copies and orders of the plan, */
  emu_race missing[REPLAY_RACES]; /* and the first of them */
  int64_t given[WALK_QUEUES];     /* copies, so far */
  kernel_operand *operands;       /* by op */
  int32_t *op_offset;
  int64_t operands_bytes;
  mismatch *found;          /* a kernel can write it */
  CUstream *stream;         /* script_stream_of */
  int32_t *meeting_of;      /* per op, or NULL: nobody meets; the same number in all ranks */
  replay_meeting *meetings; /* by number */
  int32_t n_meetings;
  int32_t *last_op, n_last; /* of each stream that has ops */
  CUevent zero;             /* a GPU's times are since this */
  CUevent *begin, *end;     /* per timed step and item; a begin that is another's end is NULL */
  CUevent *ring;            /* three steps of ends where steps are not timed */
  int32_t steps, timed;
  bool may_end_early;  /* once a step repeats an earlier one, */
  int32_t least_steps; /* but not before this many were issued */
  int64_t rows_made;   /* timed steps that have their events */
  int64_t base;        /* steps of the run before: versions count on */
  int64_t *times;      /* per timed step and item: start, end */
  int64_t *starts;     /* per timed step: of its op 0 */
} replay_state;

/* Operands of all ops, from the plan's places. */
bool replay_operands (replay_state *s, arena *a, error *err) MUST_CHECK;
/* The contents of both sides before the first step. */
bool replay_first_bytes (replay_state *s, error *err) MUST_CHECK;
/* Is everything where it should be after the last? Adds to *found. */
bool replay_last_bytes (replay_state *s, error *err) MUST_CHECK;

/* The events behind the items of a step that has begun. */
const CUevent *replay_ends (const replay_state *s, int32_t step);
/* Looks at a step that was issued: did the device get every copy, and is each item behind all that
   the plan has it wait for? */
bool replay_see_calls (replay_state *s, int32_t step, error *err) MUST_CHECK;

bool replay_prepare (replay_state *s, arena *a, error *err) MUST_CHECK;
/* Issues all steps and waits; laden: no out starts before nothing else can happen. */
bool replay_steps (replay_state *s, bool laden, error *err) MUST_CHECK;
void replay_put_away (replay_state *s);

/* ---- collectives.c ---- */

/* The collectives in which ranks meet; an error where their lists have them in orders in which one
   would wait for ever. */
bool replay_find_meetings (replay_team *t, arena *a, error *err) MUST_CHECK;
bool replay_make_arrivals (replay_state *s, error *err) MUST_CHECK;
void replay_drop_arrivals (const replay_state *s);
/* The stream of a collective goes on when all ranks have come to it. */
bool replay_arrive (replay_state *s, CUstream on, int32_t op, int32_t step, error *err) MUST_CHECK;

/* ---- team.c ---- */

void replay_team_init (replay_team *t, replay_state *ranks, int32_t n);
void replay_team_end (replay_team *t);
/* The calling rank goes on when all are here; at once where it is alone. False: one has failed. */
bool replay_meet (replay_state *s, error *err) MUST_CHECK;
/* replay_steps of all ranks, each in a thread of its own. */
bool replay_together (replay_team *t, bool laden, error *err) MUST_CHECK;
/* The cost of a step of all ranks, from the first `steps`, which each has read. */
int64_t replay_steady (const replay_team *t, int32_t steps, bool *settled);
