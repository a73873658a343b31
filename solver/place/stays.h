/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stays that a set of moves makes, what begins and what ends each, and the byte-counting
   forward run that says in which order.  Shared by the files of solver/place/schedule; nothing else
   needs it. */
#pragma once

#include "solver/place/schedule.h"
#include "trace/unit.h"

/* A moment of the forward run; `order` tells apart what happens in one nanosecond. */
typedef struct moment {
  int64_t at_ns, order;
} moment;

typedef struct timed_stay {
  stay_kind kind;
  int32_t index, part; /* as in a plan's stay */
  int32_t op;          /* that the stay is for */
  int32_t granules;
  bool always;     /* never ends: a persistent part that does not move */
  bool end_is_out; /* ends with the copy out of move `end`; else with the end of op `end` */
  bool end_wraps;  /* which is of the next step */
  int32_t end;
  moment from, to; /* of one step of the forward run */
} timed_stay;

typedef struct row_list {
  int32_t *offset, *at; /* rows of row i: at[offset[i]] .. at[offset[i + 1]] */
} row_list;

typedef struct stays {
  const trace *trace;
  const units *units;
  const wish *moves; /* in the plan's order */
  const device *device;
  int64_t granule_bytes;
  int32_t n_moves;
  int32_t n_outs;
  bool by_need; /* in_order is the one that stays_build made */
  timed_stay *at;
  int32_t count;
  int32_t *in_stay;  /* per move: the stay that its copy in begins */
  int32_t *out_stay; /* per move: the stay that ends with it */
  int32_t *out_order, *in_order, *out_place;
  int64_t *bytes;    /* per move: what its copies carry */
  row_list births;   /* per op: stays that begin with it, its workspace among them */
  row_list ends;     /* per op: stays that end with its end */
  int64_t *born;     /* per op: granules of its births */
  int64_t *ended;    /* per op: granules of its ends */
  int64_t *level;    /* per op: granules held if every move covers its whole gap */
  int64_t *start_ns; /* per op of the step that stays_run wrote down, from its op 0 on */
  int64_t *start_order, *end_order; /* per op: of what comes first behind its start and its end */
} stays;

/* By unit, then by part, then by the op behind which the part leaves. */
int wish_compare (const wish *x, const wish *y);

/* The first fields, up to n_moves, are set; fills the others. */
bool stays_build (stays *l, arena *a, error *err) MUST_CHECK;

/* Another order of the copies in, in place of that by need: the soonest needed of those that could
   start, as a run that may choose finds them. A copy whose own copy out is late then holds up
   nothing. Later runs keep to that order, and with other timings one may hang: ERR_infeasible. */
bool stays_order (stays *l, int64_t granules, arena *scratch, error *err) MUST_CHECK;

/* Fills from and to of every stay; *period the distance to the same moments of the next step.
   `granules` is what may be held; level is nowhere above it. */
bool stays_run (stays *l, int64_t granules, arena *scratch, moment *period, moment *start,
                error *err) MUST_CHECK;
