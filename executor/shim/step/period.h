/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When does a program repeat itself?  Its allocations and ops are beats.  Two beats are the same if
   they do the same with the same tensors; a tensor that was made since then is the same if it is as
   old, counted in beats.  Scalars and the order of frees are left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct beat {
  uint64_t token;
  int64_t first_ref, op; /* op: its number; -1: an allocation */
  int32_t n_refs, name, stream;
  int64_t allocation; /* its number, or -1 */
} beat;

/* One bit of a token: the tensors of this op are not all its own, so that only what it does counts.
 */
static inline uint64_t beat_token (uint64_t token, bool is_loose) {
  return (token & ~(uint64_t)1) | is_loose;
}
static inline bool beat_is_loose (uint64_t token) {
  return (token & 1) != 0;
}

/* Across the border of a step: what is carried in is there where it begins and freed in it, what is
   carried out is made in its place and there where it ends. Both may have room of their own for all
   of the step.
 */
typedef enum crossing { CROSSING_NONE, CROSSING_IN, CROSSING_OUT, CROSSING_STAYS } crossing;

/* An allocation's life, in beats. */
typedef struct life {
  int64_t number, bytes;
  int64_t born, freed; /* numbers of beats; freed: -1: not yet */
  bool pinned;
  uint8_t crossing; /* in a record of one step */
} life;

/* The last `run` beats are those of `period` before; 0: none. */
typedef struct repeat {
  int64_t period, run;
} repeat;

enum { BEATS_SCALES = 3 };

/* The newest are kept: capacities are powers of two, rows are found by their number. */
typedef struct beats {
  beat *at;
  int64_t n, capacity;
  int64_t *refs; /* numbers of allocations */
  int64_t n_refs, refs_capacity;
  life *lives;
  int64_t n_lives, lives_capacity;
  int64_t *last; /* by what the last few beats were: one more than the newest beat behind them */
  uint64_t near_hash, near_gone;
  int64_t *far_last[BEATS_SCALES];                         /* the same of more, and of many more */
  uint64_t far_hash[BEATS_SCALES], far_gone[BEATS_SCALES]; /* the weight of a beat that goes */
  int64_t far_since, far_looked; /* the first beat in the hashes; that of the last look */
  int64_t *name_last, *name_gap; /* the newest beat of each, and the longest time between two */
  int32_t n_names;
  /* By the nearest beats that are alike, and by the nearest long stretch: a step that is made of
     others, nearly alike, only shows by that. */
  repeat near, far;
  int64_t best_near_n, best_far_n; /* of the longest stretches that repeated themselves */
  repeat best_near, best_far;
  int64_t all; /* of a record that was gone back in: its beats; else 0 */
} beats;

/* Room for these numbers of each. false: no memory. */
bool beats_new (beats *b, int64_t capacity, int64_t refs, int64_t lives);
void beats_free (beats *b);

static inline beat *beats_at (const beats *b, int64_t i) {
  return &b->at[i & (b->capacity - 1)];
}
static inline int64_t beats_ref (const beats *b, const beat *e, int32_t i) {
  return b->refs[(e->first_ref + i) & (b->refs_capacity - 1)];
}
/* The first that is kept; all behind it are. */
static inline int64_t beats_oldest_life (const beats *b) {
  return b->n_lives > b->lives_capacity ? b->n_lives - b->lives_capacity : 0;
}
/* NULL: too long ago. */
life *beats_life (const beats *b, int64_t number);

bool beats_kept (const beats *b, int64_t i); /* the whole of it is still there */

void beats_allocate (beats *b, int64_t bytes); /* numbers count from 0 */
void beats_release (beats *b, int64_t number);
/* `e` without its first_ref; the refs are copied. */
bool beats_op (beats *b, beat e, const int64_t *refs);

bool beats_same (const beats *b, int64_t i, int64_t j);

typedef enum beats_answer {
  BEATS_NO,  /* nothing repeats yet */
  BEATS_CUT, /* a step is [*first, *end) */
  BEATS_WRAP /* it repeats, but at no moment are there only tensors that last */
} beats_answer;

/* The last whole step, cut where all live tensors outlast it. */
beats_answer beats_step (const beats *b, int64_t *first, int64_t *end);
beats_answer beats_step_of (const beats *b, const repeat *r, int64_t *first, int64_t *end);
/* The cheapest cut at which some tensors cross, each of them replaced a step later by one like it,
   for a step that has no other. A byte that crosses has to go to the host; one that is used again
   behind the cut costs more. false: there is none, or it is too early to say. */
bool beats_crossing_step (const beats *b, const repeat *r, int64_t *first, int64_t *end);
crossing life_crossing (const life *l, int64_t first, int64_t end);
/* The one that was made a period before in the same way; NULL: none. */
const life *beats_replaced (const beats *b, const life *l, int64_t period);
/* Back to the end of the longest stretch that repeated itself, for who has the whole record. */
void beats_rewind (beats *b);
/* Is an allocation there at the moment before beat `i`? */
bool life_at (const life *l, int64_t i);
