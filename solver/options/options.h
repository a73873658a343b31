/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Wishes of the user, the effort that an inner call may spend, and the answer: the types that every
   room of the solver shares. */
#pragma once

#include "solver/flow/bound.h"
#include "solver/tuning/tuning.h"
#include "trace/plan.h"

/* Which cuts solve may make; SECTIONS_OFF: none. */
typedef enum sections_mode { SECTIONS_OFF, SECTIONS_AUTO, SECTIONS_FIXED } sections_mode;
typedef enum sections_orders { ORDERS_AUTO, ORDERS_LEVEL, ORDERS_DEPTH } sections_orders;
/* Tensors that it may drop and make again. RECOMPUTE_CHEAP: outputs of ops that calculate little;
   RECOMPUTE_ONLY: any, and nothing is swapped. */
typedef enum recompute_mode {
  RECOMPUTE_OFF,
  RECOMPUTE_CHEAP,
  RECOMPUTE_AUTO,
  RECOMPUTE_ONLY
} recompute_mode;

/* The orders that the ops may have: that of the trace, also with the updates moved up, or any that
   keeps every value. */
typedef enum order_mode { ORDER_AS_IS, ORDER_UPDATES, ORDER_ANY } order_mode;

/* The places that stays may have: in granules that are mapped, each in one stretch of an
   arena, or as the plan at hand gains more from. */
typedef enum places_mode { PLACES_GRANULES, PLACES_ARENA, PLACES_AUTO } places_mode;

/* How hard a search tries where no ticks are named: a part of the default, or several times that.
 */
typedef enum search_level { LEVEL_NORMAL, LEVEL_QUICK, LEVEL_THOROUGH } search_level;

/* The user's wish; the same in every room. */
typedef struct solve_options {
  const device *device;
  int64_t budget_bytes, host_bytes;
  int64_t resting_bytes; /* solver/resting's own: of the host, beside host_bytes */
  int64_t gap_ppm;       /* good enough: this close to the bound; 0: SOLVE_GAP_PPM */
  int64_t limit_ticks;   /* of the search, in simulated events or their like; 0: a default; where
                            cuts or drops are allowed, of all there is to do */
  search_level level;    /* of that default */
  uint64_t seed;
  bool keep_proof;
  bytes *program; /* of solve_bound alone: as bound_options' */
  const logger *log;
  bool (*stop) (
      void *context); /* asked between candidates, and in the linear solver; NULL: never */
  void *stop_context;
  sections_mode sections;
  int64_t section_parts; /* of SECTIONS_FIXED */
  sections_orders section_orders;
  recompute_mode recompute;
  order_mode order;
  const char *trace_digest;    /* all TRACE_DIGEST bytes, if they are known already; or NULL */
  int32_t noise_percent;       /* of equally fast plans, take the one that suffers least when op
                                  times vary by this; 0: take the first */
  bool same_places;            /* every stay of a part on the same granules */
  places_mode placement;       /* not looked at with same_places */
  int64_t arena_granule_bytes; /* solver/placed's own: as schedule's */
  int64_t counted_bytes;       /* likewise: of the budget, what may be held at any moment; 0: all */
  bool by_latency;             /* likewise: as layout_request's */
  const plan *const *starts;   /* plans that are known: one that is legal here is never given
                                         up for a slower one (solver/starts.h) */
  int32_t n_starts;
  const tuning *tuning;    /* NULL: as shipped */
  solved_programs *solved; /* programs so far; NULL: `solve` has its own */
  search_stats *stats;     /* the worth of each strategy is added there; or NULL */
  int32_t threads;         /* that may search side by side, to the same plan; 0: one */
} solve_options;

/* The bound of a step by itself: any units, parts and pool that a plan may choose. */
bound_options solve_bound_options (const solve_options *o);

/* How a plan was made, for budgets near its own. */
typedef struct recipe {
  int layout; /* a layout_kind */
  int64_t early_ppm;
  bool by_release;
} recipe;

/* How much one call inside may spend, and what is known before it begins. Zero: all as the user
   wishes. */
typedef struct effort {
  int64_t limit_ticks, gap_ppm; /* 0: those of the options */
  int64_t enough_ns;            /* a plan as fast is good enough in any case; or 0 */
  int64_t beat_ns;              /* no plan that is not faster is of use; or 0 */
  int64_t dear_ticks;           /* of programs for drops: as bound_options' */
  int64_t place_bytes;          /* the budget of the places; 0: budget_bytes */
  const bound *guide;   /* of the step as it is: what bound_range says of this budget, so that no
                           program is solved; or NULL */
  const recipe *follow; /* only a few roundings, made like this; or NULL */
  bool rough;           /* the bound is only a guide, nothing is refined */
} effort;

/* The default of gap_ppm. */
#define SOLVE_GAP_PPM 5000
/* These ticks at the level of the options. */
int64_t solve_level_ticks (const solve_options *o, int64_t ticks);
/* A plan that takes no longer is as near to that bound as was asked for; gap_ppm 0: the default. */
int64_t solve_enough_ns (int64_t gap_ppm, int64_t bound_ns);
/* That, or as fast as is good enough in any case. */
int64_t solve_enough_of (const effort *e, int64_t bound_ns);
/* That effort with what it leaves open taken from the options. */
effort solve_effort (const solve_options *o, const effort *e);
/* Somebody wants it to end. */
bool solve_stops (const solve_options *o);
/* Simulated events take less time than what else is counted: this many are one tick of cuts and
   drops. In large steps each takes longer, since nothing of them stays in the caches. */
static inline int64_t solve_events_per_tick (int32_t n_ops) {
  return n_ops <= 2500 ? 4 : n_ops < 10000 ? 10000 / n_ops : 1;
}

/* How the plan bears ops that take a little more or less: what a step takes over its compute on 95
   of 100 days, in millionths, beside the fastest plan that was found. */
typedef struct robustness {
  int32_t percent, days, plans; /* plans: how many equally fast ones were tried */
  int64_t p95_ppm, fastest_p95_ppm;
} robustness;

typedef struct solution {
  plan *plan; /* with its prediction and certificate; passes check */
  bound bound;
  int64_t ticks, candidates;
  recipe recipe;          /* of the best candidate */
  int64_t plain_bound_ns; /* if more is allowed: of the plans without it; or 0 */
  robustness robust;      /* if noise_percent was asked for */
  const char *why;        /* the comparison before this cut and these drops were taken, or NULL */
} solution;

/* Claims of a certificate beside the plan's own prediction. */
typedef struct certified {
  int64_t lower_bound_ns;
  const char *bound_by, *found_by, *proof;
  cover cover;
  int64_t enough_ns;     /* no limit was met where the plan takes no longer */
  const char *limit_met; /* else; NULL: none was */
} certified;
/* No step takes less than its ops, however they are cut, made again or moved; the plan's own words
   on how it was found stay. */
certified solve_by_compute (const trace *t, const plan *p);
/* The bound of another plan, which is of this one too; its own word on how it was found stays. */
certified solve_by_bound_of (const plan *other, const plan *p);
/* The only writer of certificates. */
void solve_write_certificate (plan *p, const certified *c);
