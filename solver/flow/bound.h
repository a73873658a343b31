/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A time that no plan can beat, and its proof: exact evaluation of a solver's duals, in integers.
   Whatever the solver's numbers are worth, the bound is valid; bad ones only make it weak. */
#pragma once

#include "solver/flow/flow.h"
#include "solver/flow/solved.h"
#include "solver/tuning/tuning.h"

typedef struct bound_options {
  const device *dev;
  int64_t host_bytes;
  int classes;          /* of the last program; 0: 3 */
  int32_t whole_ops;    /* up to this many ops every op has its slot; 0: 600 */
  int32_t blocks;       /* else the first cut; 0: 300 */
  int32_t limit_rows;   /* of refinement; 0: 20000 */
  int32_t limit_rounds; /* of refinement; 0: 12; below 0: none */
  bool any_units; /* the units have granule 1, no groups and no pool, and stand for all that a plan
                     may choose: copies may be shared, so latency is not charged */
  bool keep_proof;
  int64_t dear_ticks; /* if the last bound program took these, shares are read off it; 0: off a
                         second one, with a price on every byte */
  int64_t beat_ns;    /* a bound as high is high enough, and its shares are of no use; or 0 */
  bool bound_only;    /* no shares */
  bool shares_only; /* the shares that leave, and no more bound than compute or a crossing gives */
  bytes *program;   /* if not NULL: the last program, the one that shares are read off, as LP text;
                       none where everything fits */
  flow_drops drops; /* beside copies; then any_units must be set */
  const uint8_t *again; /* per op: what may be dropped; NULL: anything */
  bool fresh;           /* of drops: as flow_options' */
  const logger *log;
  bool (*stop) (void *context); /* as ilp_options': then the bound is what was proved by then */
  void *stop_context;
  solved_programs *solved; /* that remembers programs, or NULL */
  const tuning *tuning;    /* NULL: as shipped */
} bound_options;

/* Sizes and efforts, for benches. */
typedef struct bound_stats {
  int32_t rounds, slots, rows, columns, solves, failures;
  int64_t entries, peak_bytes, ticks;
  double value_ns; /* the last bound program's own optimum, stall and compute, in doubles */
} bound_stats;

/* Prices: the most that more of something takes off the bound, by the duals that prove it: with
   more memory or a faster link the same duals prove the bound less this.  Figures for a reader, in
   doubles. */
typedef struct bound_prices {
  double memory_ns; /* of a byte */
  double link_ns; /* time that the link's rates divide: 1 - 1/n of it for a link n times as fast */
} bound_prices;

typedef struct bound {
  int64_t lower_bound_ns;
  int64_t compute_ns;
  const char *by;      /* "compute", "crossing" or "flow-lp" */
  const char *proof;   /* canonical JSON, where asked for */
  double *share;       /* per gap: how much of it leaves in the best program, 0 to 1 */
  double *dropped;     /* per gap: how much of it is made again; NULL where nothing may be */
  bound_prices prices; /* with any_units and without drops; else 0 */
  bound_stats stats;
} bound;

/* Solves and refines. ERR_infeasible where memory alone allows no plan. A solver that fails is no
   error: the bound is then a weaker one, and share says 0 throughout. */
bool bound_of (const gaps *g, const bound_options *o, arena *a, bound *out, error *err) MUST_CHECK;

/* ---- its parts ---- */

/* The cheap bounds, whether anything has to move at all, and if so the slots that bound_of would
   end with; they live in `a`. */
bool bound_slots (const gaps *g, const bound_options *o, arena *a, bound *out, slots *now,
                  bool *tight, error *err) MUST_CHECK;

flow_options bound_flow (const gaps *g, const bound_options *o, int classes, int64_t eps_ppm);

/* Interior point; the simplex where that failed and the program is small enough for it. */
bool bound_program (const flow *f, const bound_options *o, arena *scratch, ilp_result *r,
                    bound_stats *stats, error *err) MUST_CHECK;

/* The best that these duals prove over a few roundings: coarse ones hit the round figures that the
   true duals often are. The winner goes to duals. */
bool bound_prove (const flow *f, const double *y, arena *scratch, int64_t *duals, int64_t *stall_ns,
                  error *err) MUST_CHECK;

/* How much of each gap leaves, by a copy or clean, and how much is dropped (NULL where nothing may
   be); on top of what is there, in [0, 1]. */
void bound_shares (const flow *f, const double *x, double *share, double *dropped);

/* Duals as multiples of 2^-bits (bits <= DUAL_BITS), signs and stalls put right; in 2^-DUAL_BITS.
 */
void bound_duals (const flow *f, const double *y, int bits, int64_t *duals);

/* The stall that duals of that kind prove, in ns, rounded down, at least 0. False where a figure
   does not fit in 128 bits: then they prove nothing. */
bool bound_exact (const flow *f, const int64_t *duals, int64_t *stall_ns);

/* The prices in duals that prove a stall of stall_ns; for a program without latency and drops. */
bound_prices bound_prices_of (const flow *f, const int64_t *duals, int64_t stall_ns);

/* Without a program: what must be away at an op comes back over the link in every step. */
int64_t bound_crossing (const gaps *g, const device *dev, int32_t *op);

/* The proof as canonical JSON (trace/prove/evaluation.md). */
const char *bound_proof (const flow *f, const int64_t *duals, bool any_units, const uint8_t *again,
                         arena *a, error *err) MUST_CHECK;
/* That of a bound that needs no duals: by compute alone, or by what crosses at one op (or NO_OP).
 */
const char *bound_cheap_proof (const char *kind, int32_t op, bool any_units, flow_drops drops,
                               const loosened *l, arena *a, error *err) MUST_CHECK;
