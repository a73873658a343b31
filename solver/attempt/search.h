/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Candidates and what they cost.  A candidate says how many parts of each gap are away and when
   their copies in may start; it is worth what the simulator says of the plan that schedule makes of
   it. */
#pragma once

#include "base/random.h"
#include "solver/attempt/layout.h"
#include "solver/attempt/round.h"
#include "solver/attempt/variant.h"

typedef struct candidate {
  const layout *layout;
  int32_t *of;         /* per unit: its parts, the layout's unless the search chose others */
  int32_t *parts;      /* per gap */
  int32_t *heads;      /* per gap: the first of its parts, which leave in place of the last */
  int32_t *turn;       /* per gap: of copies that may run at once, those with less go first */
  int32_t *not_before; /* per gap: in_not_before of its wishes, or NO_WAIT */
  const wish *wishes;  /* these, whatever the gaps say; or NULL */
  int32_t n_wishes;
  int64_t early_ppm;   /* as schedule's */
  bool by_release;     /* as schedule's */
  bool heads_first;    /* of the parts that a gap moves; else the last part first */
  int64_t step_ns;     /* INT64_MAX: no plan */
  int64_t short_bytes; /* that its places took beyond the budget at first */
  const char *found_by;
} candidate;

typedef struct search {
  const trace *trace;
  const rewritten *rewritten;
  const variant *variant; /* that rewrote it */
  const solve_options *options;
  effort effort;       /* with nothing left open */
  const gaps *singles; /* of the trace's tensors one by one; NULL: no program was solved */
  const double *share; /* per such gap: how much of it the program sends */
  layout *layouts;     /* made so far */
  int32_t n_layouts;
  schedule_options schedule;
  char digest[TRACE_DIGEST];
  arena *arena;   /* of the candidates kept */
  arena *scratch; /* of one evaluation */
  random_state random;
  int64_t lower_bound_ns; /* for the progress lines */
  int64_t enough_ns;      /* a candidate that costs no more ends the search */
  int64_t ticks, limit_ticks, tried;
  int64_t most_ns;     /* trials that take longer are of no use; 0: all are */
  int64_t until_ticks; /* the strategy that runs tries nothing new behind them */
  candidate best, trial;
  candidate
      *good; /* the best of the steps of few ops, in order, that differ in what moves; or NULL */
  int32_t n_good, good_room;
  uint64_t *seen; /* hashes of what was tried, or 0 */
  int64_t n_seen, seen_room;
  bool stopped;
  struct robust *robust; /* is offered what was costed; or NULL */
} search;

bool search_begin (search *s, error *err) MUST_CHECK;
/* More layouts were made: room for candidates of theirs. */
bool search_widen (search *s, error *err) MUST_CHECK;
/* Sets trial.step_ns; an infeasible trial is no error, and neither is one that was tried before:
   both cost INT64_MAX. Where `made` is not NULL, the plan is put there, in s->arena, in any case.
 */
bool search_cost (search *s, candidate *c, plan **made, error *err) MUST_CHECK;
/* The trial becomes a rounding, without a cost yet; *fits is false where there is none in that
 * room.
 */
bool search_round (search *s, const layout *l, round_start start, int64_t room_ppm, bool *fits,
                   error *err) MUST_CHECK;
/* Enough, stopped, or out of ticks. */
bool search_is_over (search *s);
void search_copy (candidate *to, const candidate *from);
/* Nothing moves, in this layout. */
void search_clear (candidate *c, const layout *l);
/* Room for the layouts' gaps and units; the first of them. */
bool search_candidate (const search *s, arena *a, candidate *out, error *err) MUST_CHECK;
/* The trial becomes the best where it is better. */
bool search_keep (search *s);
/* Costs it, and keeps it so. */
bool search_try (search *s, error *err) MUST_CHECK;
/* From now on the best `count` candidates are kept besides. */
bool search_keep_good (search *s, int32_t count, error *err) MUST_CHECK;
/* The candidate's wishes, in `a`. */
bool search_wishes (const candidate *c, arena *a, wish **out, int32_t *count,
                    error *err) MUST_CHECK;
/* The trial with every usual timing of its copies in. */
bool search_timings (search *s, error *err) MUST_CHECK;

/* ---- strategies: as solver/tuning/strategies.def says ---- */

bool search_follow (search *s, error *err) MUST_CHECK;
bool search_first (search *s, error *err) MUST_CHECK;
bool search_every (search *s, error *err) MUST_CHECK;
bool search_pieces (search *s, error *err) MUST_CHECK;
bool search_turns (search *s, error *err) MUST_CHECK;
bool search_others (search *s, error *err) MUST_CHECK;
bool search_walk (search *s, error *err) MUST_CHECK;
