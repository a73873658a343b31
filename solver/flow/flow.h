/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The flow program: how much of every gap leaves, and how the bytes stream over the link, slot by
   slot.  Its optimum is a lower bound of the stall of every plan (docs/planning.md has the rows and
   why each is valid).

   All figures are integers.  Amounts and times are "grains": 2^-shift of a byte, and the time that
   takes on the way out; coefficients are multiples of 2^-24.  Where a true figure lies between two,
   the one that relaxes is taken, so what is solved, written out and proved is one program. */
#pragma once

#include "base/file.h"
#include "solver/flow/ilp.h"
#include "solver/flow/slots.h"

enum { COEF_BITS = 24, DUAL_BITS = 30, GRAIN_BITS = 42, FLOW_CLASSES = 8 };
enum { FLOW_CHAIN = 4 }; /* ops that a drop is charged with; more: docs/recompute.md */
#define COEF_ONE ((int64_t)1 << COEF_BITS)

typedef enum flow_row_kind {
#define FLOW_ROW(name, letter, per_class) ROW_##name,
#define FLOW_COLUMN(name, letter)
#include "solver/flow/flow.def"
#undef FLOW_ROW
#undef FLOW_COLUMN
  ROW_KINDS
} flow_row_kind;

typedef enum flow_column_kind {
#define FLOW_ROW(name, letter, per_class)
#define FLOW_COLUMN(name, letter) COLUMN_##name,
#include "solver/flow/flow.def"
#undef FLOW_ROW
#undef FLOW_COLUMN
  COLUMN_KINDS
} flow_column_kind;

/* A class of unit pieces: how dear its memory is at least. A grain of memory given up costs `out`
   grains of time on the way out, of the in engine's work `in`, and fills `host` of the host. */
typedef struct flow_class {
  int64_t out, in, host; /* x 2^-24 */
} flow_class;

/* The link in the program's terms. With a shared rate the corner at which both engines run gives
   each row a share of the other engine's flow; where that corner lies inside the triangle of the
   two rates one row holds. */
typedef struct flow_link {
  link_rates rates;
  __int128 ratio;    /* rate in over rate out, x 2^-24, rounded up */
  int64_t in_in_out; /* coefficient of in flow in the out engine's row, x 2^-24 */
  int64_t out_in_in; /* of out flow in the in engine's row */
  bool shared, one_row;
  int shift; /* grains a byte: 2^shift */
} flow_link;

/* One gap as the program sees it. */
typedef struct flow_gap {
  int32_t gap;
  int32_t release, due; /* slots */
  int32_t ready;        /* with drops: the slot from which on what is dropped is made again */
  bool first;           /* due at the first op of its slot */
  bool late; /* with drops: nothing uses it at its end, and who reads it to make others again may
                keep it, so it is due only at the last op */
  bool wraps;
  bool begins;        /* a limited host: the slot before release ends between use and release */
  bool drops;         /* it can be given up and made again */
  int64_t rate, work; /* grains of ops that run for it alone, per grain dropped (x 2^-24), in all */
  int32_t runs, n_runs; /* flow.needs: the others */
} flow_gap;

/* An op that must run again in this gap if its tensor is dropped there, and may serve other tensors
   with it: one row for each of them. */
typedef struct flow_need {
  int32_t run, row;
  int64_t rate;
} flow_need;

/* An op that can run again. */
typedef struct flow_run {
  int32_t op;
  int32_t release, due;   /* slots between which some gap needs it */
  int32_t tensors, share; /* how many tensors do, and the first of their rows if more than one */
  int32_t most;           /* gaps of one tensor that need it */
  int64_t time;           /* grains, rounded down */
} flow_run;

/* Gaps of a unit piece between two writes, along which a copy on the host stays valid. All but the
   first may leave clean; in a circle (never written) the first too. Equal chains of many pieces are
   one, and `room` is the sum. */
typedef struct flow_chain {
  int32_t first, count;       /* gaps: [first, first + count) of flow.gaps */
  int32_t link;               /* number of the first gap in this chain among all chains' */
  int32_t column;             /* of the first gap; the others' follow */
  int32_t members, n_members; /* flow.members */
  int64_t room;               /* grains */
  uint8_t class;
  bool circle;
} flow_chain;

/* A unit's memory in full granules and, where that pays less per byte, its last granule apart. */
typedef struct flow_member {
  int32_t first_gap; /* of its own flow_gaps */
  int32_t unit;
  int64_t room; /* grains */
  bool tail;    /* the last granule only */
} flow_member;

/* Ways that are allowed beside copies over the link. */
typedef enum flow_drops { DROPS_NONE, DROPS_ALLOWED, DROPS_ONLY } flow_drops;

typedef struct flow_options {
  const device *dev;
  int64_t host_bytes;
  int classes;          /* 1 to FLOW_CLASSES */
  bool latency;         /* charge copy_ns; void where the engines share a rate */
  int64_t eps_ppm;      /* cost of a grain that leaves, for a plan; 0 for a bound */
  flow_drops drops;     /* units are then single tensors, and the host is not limited */
  const uint8_t *again; /* per op: what it wrote last may be dropped; NULL: any */
  /* The plans' copies read no tensor beyond its last use, but those made in the same entry: what is
     dead where one is made again is made again with it. */
  bool fresh;
  /* An op: what is dropped over it is made again behind it. What is made before it serves no need
     of that op; for those before it such memory is free. 0, or an op without a slot of its own:
     made again anywhere. */
  int32_t peak;
} flow_options;

/* Slots that meet inside a run of loose ops, at a seam, which a chain may cross: rows of what such
   a chain leaves to its further parts, and of what these cost (docs/proof.md). Of a chain in n
   parts the lesser of n - 1 and SEAM_PARTS counts, in 2^SEAM_BITS. */
enum { SEAM_BITS = GRAIN_BITS, SEAM_PARTS = 2 };
typedef struct flow_seams {
  bool any;
  uint8_t *at;    /* per slot, and one behind the last: it begins at a seam */
  int32_t *first; /* per slot: the first of its run */
  /* per slot, in grains: what is due in it; and if it begins at a seam, the sums over the slots of
     its run before it, of that and of the time to work */
  int64_t *due, *work_due, *before_due, *before_work_due, *before_out, *before_in;
  int64_t section; /* grains of a further part of one op */
  /* per seam, for the slots of the run before it, the last one first: half of what may be cut,
     was used last in that slot and lives across the seam */
  int64_t *half;
  int32_t *half_from; /* per slot */
  int32_t n_half;
} flow_seams;

typedef struct flow {
  const gaps *source;
  const slots *slots;
  flow_link link;
  int32_t n_slots, n_classes;
  flow_class class[FLOW_CLASSES];
  bool host_limited;
  flow_drops drops;
  bool fresh;
  int32_t peak_slot; /* -1: none */
  int32_t n_gaps, n_chains, n_members, n_links;
  flow_gap *gaps;
  flow_chain *chains;
  flow_member *members;
  flow_need *needs;
  flow_run *runs; /* in order of ops */
  int32_t n_needs, n_runs, n_shares;
  flow_seams seams;
  int64_t *work_open, *work_released; /* per slot: grains of runs */
  int64_t
      slack_ns; /* time that the parts of cut ops that run again may save by rounding, at most */
  /* per slot and class, j * n_classes + c, in grains: */
  int64_t *open, *released, *due_first;
  int64_t *need;       /* per slot; 0: none */
  int64_t *free_bytes; /* per slot: what may be dropped there and made again up to the peak */
  int64_t *idle_out, *idle_in, *work_out, *work_in; /* per slot: time, in grains of either engine */
  int64_t host_grains;
  /* the program */
  int32_t n_rows, n_columns;
  int64_t n_entries;
  int32_t *row[ROW_KINDS]; /* per slot (and class, or per link): its row, or -1 */
  uint8_t *row_kind;
  int32_t *row_at;   /* the index into row[kind] */
  int8_t *row_sense; /* -1: at most, 0: equal, 1: at least */
  int64_t *row_limit;
  uint8_t *column_kind;
  int32_t *column_at;         /* slot * n_classes + class, slot, or link */
  int64_t *low, *high, *cost; /* cost x 2^-24 */
  int64_t *column_start;      /* n_columns + 1 */
  int32_t *entry_row;
  int64_t *entry_coef;
} flow;

/* Infeasible memory (a need above all that could be away) is ERR_infeasible, the op named. */
bool flow_build (const gaps *g, const slots *s, const flow_options *o, arena *a, flow *out,
                 error *err) MUST_CHECK;

/* The same program for another budget: only limits change, so rows, columns and slots stay those of
   the budget that it was built for, which the other must not be below. The duals of one prove a
   bound of the other, and their points can be mixed. */
void flow_set_room (flow *f, int64_t room_bytes);

/* Pieces, classes, chains and sums per slot: what flow_build begins with. */
bool flow_chains (const gaps *g, const flow_options *o, arena *a, flow *f, error *err) MUST_CHECK;

/* True if a copy made in the i-th gap of a chain may serve a later one. */
static inline bool flow_serves (const flow_chain *c, int32_t i) {
  return c->circle || i + 1 < c->count;
}

/* Grains that must be away in this slot with that room; 0 for a run. */
int64_t flow_need_of (const flow *f, int32_t slot, int64_t room_bytes);

/* Which gaps can be dropped and what they need: flow_chains asks before it merges. */
bool flow_find_drops (const flow_options *o, arena *a, flow *f, error *err) MUST_CHECK;

/* Which slots begin at seams, before anything is summed up; then the sums. */
bool flow_find_seams (flow *f, const flow_options *o, arena *a, error *err) MUST_CHECK;
bool flow_sum_seams (flow *f, arena *a, error *err) MUST_CHECK;

static inline bool flow_ends_at_seam (const flow *f, int32_t slot) {
  return f->seams.at[slot + 1];
}

/* The row of what is cut in the slot's run; -1: it has no seams. */
static inline int32_t flow_cuts_row (const flow *f, int32_t slot) {
  return f->row[ROW_cuts][f->seams.first[slot]];
}

/* The link's figures and the grain, of which neither the largest amount nor the step has more than
   2^GRAIN_BITS. */
flow_link flow_link_of (const device *dev, int64_t largest_bytes, int64_t total_ns);

/* A weight or coefficient; one beyond 2^36 counts as that, as in the proof, since a smaller one
   proves less. */
static inline int64_t flow_coef (__int128 x) {
  __int128 most = (__int128)COEF_ONE << 36;
  return (int64_t)(x < most ? x : most);
}

int64_t flow_grains_up (const flow_link *l, int64_t bytes);
int64_t flow_grains_down (const flow_link *l, int64_t bytes);
/* The time in grains that an engine of this rate carries in it, rounded up. */
int64_t flow_time (const flow_link *l, int64_t ns, int64_t rate);

/* The same rounded down. */
int64_t flow_time_down (const flow_link *l, int64_t ns, int64_t rate);
/* True if a gap ends only where its tensor was said to die. */
bool flow_ends_life (const gaps *g, int32_t gap);

/* The row that stands for `kind` at (slot, class); where host_first or early_first is missing, the
   row into which it was added. -1: none. */
int32_t flow_row (const flow *f, flow_row_kind kind, int32_t slot, int32_t class);

enum { FLOW_NAME = 48 };
const char *flow_row_name (const flow *f, int32_t row, char name[FLOW_NAME]);
const char *flow_column_name (const flow *f, int32_t column, char name[FLOW_NAME]);

/* The most that fits into this time at this weight, and no more than room. */
int64_t flow_most (int64_t time, int64_t weight, int64_t room);

/* The program in CPLEX LP text; amounts in units of 2^FLOW_UNIT_BITS grains. */
enum { FLOW_UNIT_BITS = 28 };
bool flow_write_lp (const flow *f, bytes *out, error *err) MUST_CHECK;
/* The same in the arrays of the solver, in the same units. */
bool flow_problem (const flow *f, arena *a, ilp_problem *out, error *err) MUST_CHECK;
