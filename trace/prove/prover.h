/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the parts of a proof's evaluation.  Letters as in trace/prove/evaluation.md: an
   amount's price is what the duals charge for one grain of it.  prove.c says which trace a proof
   speaks of, pauses.c what may leave and how, prices.c what that costs at least, and flow.c adds
   it up. */
#pragma once

#include "trace/prove/drops.h"
#include "trace/prove/proof.h"
#include "trace/unit.h"

typedef __int128 wide;

#define PROVE_ONE ((int64_t)1 << PROOF_COEF_BITS)

typedef struct prover {
  const trace *t;
  const plan *p;
  proof proof;
  const uint8_t *loose; /* per op, or NULL: see trace/rewrite/loosen.h */
  units u;
  arena *a;
  int64_t granule_bytes, room_bytes;
  int64_t *excess; /* per op: resident over what there is, if nothing leaves */
  int32_t *tight;  /* ops over memory among the first k */
  int32_t *slot_of;
  link_rates rates;
  wide ratio;
  int64_t in_in_out, out_in_in;
  bool shared, limited; /* the proof leans on the host's limit */
  int64_t weight_out[PROOF_CLASSES], weight_in[PROOF_CLASSES], weight_host[PROOF_CLASSES];
  wide *open, *released, *due_first; /* c * slots + j */
  again again;
  struct prover_seams {
    uint8_t *at;     /* per slot and one behind the last: it begins at a seam */
    int32_t *first;  /* per slot: the first of its run */
    int64_t *excess; /* per op: what lives across the place before it, over what there is */
    int32_t *tight;  /* places over memory before the first k ops */
    wide *due;       /* per slot */
    wide *before_due, *before_work, *before_out, *before_in; /* per slot and one behind the last */
    wide *half; /* per seam, for the slots of the run before it, the last one first */
    int32_t *half_from;
    wide section; /* of a further part */
  } seams;
  wide *work_out, *work_in; /* per slot */
  wide value;
  bool overflow;
} prover;

/* One idle time of a unit. */
typedef struct pause {
  int32_t release, due; /* ops */
  bool wraps, linked, matters, tight, dropped;
  bool within; /* released inside a loose run: its slot begins before the use does */
  bool late;   /* with drops: due only at the last op */
  bool again;  /* it can be given up and made again */
  wide price;  /* of that */
} pause;

/* A part of a unit: all of it, or what is told apart. */
typedef struct part {
  int64_t room_bytes, out, in, host; /* weights x 2^24 */
} part;

/* Grains of bytes: below 2^83, so a sum of as many as a file may have rows is far from 2^127. */
static inline wide prover_down (const prover *v, int64_t bytes) {
  return v->proof.shift < 0 ? bytes >> -v->proof.shift : (wide)bytes * ((wide)1 << v->proof.shift);
}

static inline wide prover_up (const prover *v, int64_t bytes) {
  return -prover_down (v, -bytes);
}

/* A weight or coefficient x 2^24, rounded down. A smaller one proves less, so those beyond 2^36 are
   taken to be that. */
static inline int64_t prover_weight (wide x) {
  const wide most = PROVE_ONE << 36;
  return (int64_t)(x > most ? most : x);
}

static inline int64_t prover_over (wide x, int64_t y) {
  return prover_weight ((x << PROOF_COEF_BITS) / y);
}

static inline void prover_add (prover *v, wide *sum, wide x) {
  v->overflow |= __builtin_add_overflow (*sum, x, sum);
}

static inline bool prover_is_run (const prover *v, int32_t j) {
  int32_t first = v->proof.first[j];
  return v->proof.first[j + 1] - first > 1 || (v->loose && v->loose[first]);
}

static inline bool prover_ends_at_seam (const prover *v, int32_t j) {
  return v->seams.at[j + 1];
}

/* The dual of what is cut in the run of slot j. */
static inline int64_t prover_cuts (const prover *v, int32_t j) {
  int32_t first = v->seams.first[j];
  return v->seams.at[first + 1] ? v->proof.cuts[first] : 0;
}

/* Nothing is due at the first op of a slot that begins with a loose one. */
static inline int64_t prover_early_first (const prover *v, int c, int32_t j) {
  bool loose = v->loose && v->loose[v->proof.first[j]];
  const int64_t *row = loose ? v->proof.early : v->proof.early_first;
  return row[(int64_t)c * v->proof.slots + j];
}

/* A run has no level between its stall and its compute. */
static inline int64_t prover_host_first (const prover *v, int c, int32_t j) {
  const int64_t *row = prover_is_run (v, j) ? v->proof.host : v->proof.host_first;
  return row[(int64_t)c * v->proof.slots + j];
}

int64_t prover_room (const prover *v, int32_t unit);
/* Amounts over the budget at every op if nothing leaves. */
bool prover_resident (prover *v, error *err) MUST_CHECK;

/* The pauses of one unit in the order in which a copy made in one may serve the next: from a write
   on. Returns how many; *circle where no use writes. */
int32_t pauses_of (const prover *v, int32_t unit, pause *to, bool *circle);
/* Inside one slot no row sees a pause; what its copy could do, the next pause does as well where
   that one is released in the same slot. */
void pauses_drop (const prover *v, pause *q, int32_t count, bool circle);
/* True if a copy that is made in the i-th pause may serve a later one. */
bool pause_serves (const pause *q, int32_t count, int32_t i);
int32_t pause_due_slot (const prover *v, const pause *q);
/* Due at the slot's first op, so back before it starts. */
bool pause_due_first (const prover *v, const pause *q);

/* A unit as one part or as two, the last granule apart: see trace/prove/evaluation.md. */
int parts_of (const prover *v, int32_t unit, part to[2]);
/* -1: the proof has none for it. */
int part_class (const prover *v, const part *x);

/* Sets the price of each pause that can be given up: at its release, there again when it is due, as
   on the host, but nothing is carried. */
void price_drops (prover *v, int32_t unit, pause *q, int32_t count);
/* The least price of one grain of a unit over the step: it stays, leaves by a copy, or leaves clean
   where the host holds what it held. */
wide price_least (prover *v, const pause *q, int32_t count, bool circle, int class);

/* Grains that an engine carries in a time, rounded up. */
wide prover_carried (const prover *v, int64_t ns, int64_t rate);
/* A column between low and high. */
void prover_column (prover *v, wide price, wide low, wide high);

/* Which slots meet at seams, and what is over memory there; before the pauses are looked at. */
bool seams_begin (prover *v, error *err) MUST_CHECK;
/* The amounts that slots of a run before a seam leave to those behind it; of runs again only once
   again_price has opened them all. */
bool seams_sum (prover *v, error *err) MUST_CHECK;
void seams_sum_work (prover *v);
/* The columns of chains over seams. */
void seams_price (prover *v);

/* The stall that the duals of a flow program show. */
bool prove_flow (prover *v, int64_t *stall_ns, error *err) MUST_CHECK;
