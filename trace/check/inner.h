/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of check: a plan's statements, derived once more from the trace. */
#pragma once

#include "trace/check/check.h"
#include "trace/rewrite/rewrite.h"
#include "trace/streams.h"

typedef struct check_use {
  int32_t unit, op;
  int32_t next_write; /* the first op from this on that writes the unit; NO_OP: none does */
  bool writes;
  bool held; /* only for an op that may still run beside this one */
} check_use;

typedef struct check_unit {
  int64_t bytes; /* 0: no unit */
  int64_t granules;
  int32_t first, last; /* uses; NO_OP where none */
  int32_t first_use, n_uses;
  int32_t first_move, n_moves; /* in by_part */
  int32_t of;
  bool persistent, pinned, written;
} check_unit;

/* The end of an op or of an out, `steps` steps after the step of its stay. */
typedef struct check_end {
  bool out;
  int32_t index; /* an op, or a place in out_order */
  int32_t steps;
} check_end;

typedef struct check_stay {
  int32_t op; /* that it is for; NO_OP: always there */
  int32_t in; /* born with this place in in_order; -1: at the start of its op */
  int64_t granules;
  check_end end;
} check_stay;

/* `next` takes over places that `former` had: in the same step, or in the one after. */
typedef struct check_handover {
  int32_t former, next;
  bool same_step;
} check_handover;

typedef struct check_handovers {
  check_handover *at;
  int64_t count, room;
} check_handovers;

typedef struct checker {
  const trace *original, *t;
  const plan *p;
  arena *a;
  check_rule *broken;
  error *err;
  int32_t n_ops, n_units;
  streams s; /* of t, where it has several */
  check_unit *units;
  int32_t *unit_of; /* per tensor; -1: nothing or pooled */
  check_use *uses;  /* by unit, then op */
  /* Moves by unit, part and out_after. */
  int32_t *by_part, *rank; /* rank[by_part[i]] == i */
  int32_t *begins;         /* per place in by_part: where its part begins */
  int32_t *source;         /* per move: that whose copy it uses; -1: the copy from the start */
  int32_t *out_place, *in_place; /* per move: in out_order (-1: clean) and in_order */
  int32_t *wait_outs;            /* per op: op_waits, or NO_WAIT */
  check_stay *stays;             /* one a row */
  check_handovers device, host;  /* between stays; between moves whose outs are in out_order */
  int64_t resting_bytes;         /* on the host, beside the arena */
  int32_t *last_in;       /* per such move: the move whose in is the last to read the copy, */
  int32_t *last_in_steps; /* how many steps after the out */
} checker;

/* Reports a broken rule at /list/index/field; index -1 and field NULL leave these out. */
bool check_breaks (checker *c, check_rule rule, const char *list, int32_t index, const char *field,
                   const char *format, ...) PRINTF_LIKE (6, 7);

static inline bool check_wraps (const move *x) {
  return x->in_before <= x->out_after;
}

int64_t check_rounded (int64_t bytes, int64_t to);
/* Per tensor: an op reads or writes it; NULL: no memory. */
bool *check_used (checker *c, const trace *t) MUST_CHECK;
/* The granules of a part begin here, among its unit's own. */
int64_t check_part_first (const check_unit *u, int64_t part);
int64_t check_part_bytes (const checker *c, const move *x);
/* The place in uses of the unit's first use after op `after`; the end of its uses if none. */
int32_t check_use_after (const checker *c, const check_unit *u, int32_t after);
/* The move of the same part that follows in time, cyclically; itself, where it is the only one. */
int32_t check_next_move (const checker *c, int32_t move);

/* One more taking over; the same one told twice running is kept once. */
bool check_hand_over (checker *c, check_handovers *list, int32_t former, int32_t next,
                      bool same_step) MUST_CHECK;

/* In this order. */
bool check_resting (checker *c) MUST_CHECK;
bool check_order (checker *c) MUST_CHECK;
bool check_race (checker *c) MUST_CHECK;
bool check_units (checker *c) MUST_CHECK;
bool check_moves (checker *c) MUST_CHECK;
bool check_clean (checker *c) MUST_CHECK;
bool check_orders (checker *c) MUST_CHECK;
bool check_rows (checker *c) MUST_CHECK;
bool check_places (checker *c) MUST_CHECK;
bool check_arena (checker *c) MUST_CHECK;
bool check_host (checker *c) MUST_CHECK;
bool check_safe (checker *c) MUST_CHECK;
