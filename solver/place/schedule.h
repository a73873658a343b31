/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From gaps and wished triggers to a complete plan: orders, waits, places, groups, pool, host
   offsets.  A forward run that counts bytes decides what fits when; the orders are read off it, and
   no figure of it is shown to anyone.  Every plan made here passes check. */
#pragma once

#include "solver/flow/step.h"
#include "solver/tuning/tuning.h"
#include "trace/plan.h"
#include "trace/rewrite/rewrite.h"
#include "trace/unit.h"

/* One part of one unit spends one gap on the host. */
typedef struct wish {
  int32_t unit, part, of;
  int32_t out_after, in_before;
  /* The copy in may start once this many ops of its step have ended (counted as in_ops); NO_WAIT:
     as soon as memory surely allows. in_before itself is "on demand". */
  int32_t in_not_before;
  int32_t out_turn, in_turn; /* copies of one direction go by these first, then by ops */
  bool wait_out;             /* the op behind out_after waits for the copy out */
  bool clean;                /* no copy out: the host still holds the bytes */
} wish;

typedef struct schedule_options {
  int64_t budget_bytes, host_bytes;
  int64_t granule_bytes;    /* 0: the device's */
  int64_t pool_below_bytes; /* tensors below it live in the pool; -1: chosen by schedule */
  /* Copies in that may start at any time: -1: as soon as memory allows; else so that they are back
     this part of a step before their op, and no earlier: memory stays free for copies out. */
  int64_t early_ppm;
  bool by_release;  /* copies in: of those that could start the soonest due, not by need */
  bool auto_clean;  /* moves become clean wherever that is legal */
  bool same_places; /* every stay of a part has the same granules */
  /* Not 0: an arena, whose bytes are a multiple of it.  The device then counts in PLACEMENT_STEP.
   */
  int64_t arena_granule_bytes;
  int64_t place_ticks; /* of an arena, for the offsets of one plan; 0: no more than is tuned */
  int64_t held_bytes;  /* copies in start only while less than this is held; 0: the budget */
  /* Not 0: no step that takes longer is of use, so none is placed that does by bytes alone. */
  int64_t most_ns;
  const tuning *tuning;     /* NULL: as shipped */
  const char *trace_digest; /* of the original trace, where it is known already; or NULL */
} schedule_options;

/* The message of a failed schedule: the op that does not fit, and the size that would do. */
typedef struct schedule_shortage {
  int32_t op;          /* of the rewritten trace; NO_OP: the host is too small, not the device */
  int64_t needs_bytes; /* device bytes at that op, or host bytes */
} schedule_shortage;

/* The pool that makes the peak without any move smallest: tensors below it live there. peak_bytes,
   where not NULL, is that peak. */
bool schedule_pool (const trace *t, const index_list *groups, int32_t n_groups,
                    int64_t granule_bytes, arena *scratch, int64_t *pool_below_bytes,
                    int64_t *peak_bytes, error *err) MUST_CHECK;

/* The step counted with that pool; how->pool_below_bytes is not looked at. */
bool schedule_count (const trace *t, const count_rule *how, arena *a, counted_step *out,
                     error *err) MUST_CHECK;

/* A step and what is wished of it. Units that take part in a wish with of > 1 have that `of` in all
   their wishes. */
typedef struct schedule_request {
  const trace *original;
  const rewritten *rewritten;  /* by these sections and recompute entries */
  const section *sections;     /* NULL: none */
  const recompute *recomputes; /* NULL: none */
  const index_list *groups;    /* NULL: none */
  const units *units;          /* with these groups, granules and pool; NULL: not counted yet */
  const wish *wishes;          /* NULL: nothing moves */
  int32_t n_sections, n_recomputes, n_groups, n_wishes;
  const device *device;
  const schedule_options *options;
  int64_t
      *short_bytes; /* NULL, or set to what places took beyond the budget at first; 0: nothing */
} schedule_request;

/* The plan lives in `a`; its digest, sections and recomputes are the caller's. `shortage` may be
   NULL. */
plan *schedule (const schedule_request *r, arena *a, schedule_shortage *shortage,
                error *err) MUST_CHECK;
/* With what the simulator says of it; a plan whose copies wait for one another is infeasible too.
 *events grows by what was simulated. */
plan *schedule_simulated (const schedule_request *r, arena *a, arena *scratch, int64_t *events,
                          error *err) MUST_CHECK;
/* How long its step takes if everything that memory holds has a place: about that of the plan, in a
   small part of the time that finding an arena's offsets takes. */
bool schedule_guessed (const schedule_request *r, arena *scratch, int64_t *step_ns,
                       error *err) MUST_CHECK;
