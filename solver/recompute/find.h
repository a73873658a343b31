/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The search for what to drop, shared by its files: the candidates, what a set of them is guessed
   to cost, and the best sets so far.  Nothing else needs it. */
#pragma once

#include "solver/recompute/drops.h"
#include "solver/recompute/drops_price.h"
#include "solver/recompute/recompute.h"

enum { KEPT_SETS = 6 };

typedef struct drop_set {
  uint8_t *chosen;              /* per drop, DROP_... */
  int64_t near_ns;              /* as drop_choice's */
  int64_t ns;                   /* guessed, with what is lacking made dear */
  int64_t compute_ns, stall_ns; /* the latter as priced */
} drop_set;

typedef struct finding {
  const trace *t;
  const variant *cut;
  const solve_options *o;
  arena *arena, *scratch;
  rewritten rw;  /* cut */
  int64_t rw_ns; /* its ops */
  uses uses;
  drop *drops;
  int32_t n_drops;
  bool keeps, keeps_first; /* as drops_request's */
  drops_missed missed;
  drops_pricing pricing;
  const uint8_t *cheap; /* as drops_request's */
  int64_t room_bytes;   /* at which sets are priced */
  int64_t stall_ppm;    /* stalls of the plans, in parts of the price */
  int64_t ticks, limit_ticks;
  int64_t least_ns, enough_ns; /* no plan is faster; one that is no slower ends the search */
  int32_t priced;
  drop_set now;
  drop_set kept[KEPT_SETS]; /* best first, no two alike in cost */
  int32_t n_kept;
  variant bold; /* of the sets whose quick plans stall, the one with most hope */
  variant_value bold_value;
  int64_t bold_ns; /* its compute and its quick plan's step */
  variant best;    /* by plans; its value */
  variant_value value;
  int64_t lacking_bytes; /* the least that one of the sets tried last lacks; 0: one fits */
  bool looks;            /* the first sets were not enough */
  int64_t part;          /* one in so many of the ticks left is for the strategy that runs */
  int32_t *order;
  const recompute_program *guide;
  double *dropped; /* per drop, by the guide */
} finding;

typedef enum drop_ranking { BY_OWN, BY_CHAIN, BY_SIZE, DROP_RANKINGS } drop_ranking;

int64_t find_number (const finding *f, tuning_id id);
/* t, cut, o, arenas, guide, keeps and the least enough_ns are set. */
bool find_begin (finding *f, error *err) MUST_CHECK;
/* All drops into f->order, the best for their price first. */
void find_rank (finding *f, drop_ranking by);
/* The cost of f->now; it is remembered if it is among the best. */
bool find_price (finding *f, error *err) MUST_CHECK;
/* The same, but no further than compute alone makes it more than most_ns and than all that are
   remembered: then that much is known, and not remembered. */
bool find_price_below (finding *f, int64_t most_ns, error *err) MUST_CHECK;
/* Runs so much again that more of it is not worth a look: chains of chains grow without end. */
bool find_is_wild (const finding *f);
/* Ticks used up, stopped, or so near to what no plan can beat that more is not worth the time. */
bool find_is_over (const finding *f);
/* Ticks used up, or stopped. */
bool find_is_stopped (const finding *f);
/* The best plan so far is near enough to what no plan can beat. */
bool find_is_enough (const finding *f);
/* The way in which a set to begin with drops. */
uint8_t find_drop (const finding *f);
void find_copy (const finding *f, drop_set *to, const drop_set *from);
/* The kept sets, since they were for another room. */
void find_forget (finding *f);
bool find_variant (finding *f, const drop_set *set, arena *a, variant *out, error *err) MUST_CHECK;

/* The kept sets as plans, `most` of them; the best becomes the result where it is better. */
bool find_try_kept (finding *f, int64_t most, error *err) MUST_CHECK;

/* Sets to begin with: prefixes of the rankings. */
bool find_greedy (finding *f, error *err) MUST_CHECK;
/* Those of one ranking; how many of it the best one has. */
bool find_prefixes (finding *f, drop_ranking by, int32_t *best, error *err) MUST_CHECK;
/* Entries that an online rule made, as they are and as a set; in file recompute/online. */
bool find_online (finding *f, error *err) MUST_CHECK;
/* Entries from elsewhere: the result where their plans are better. */
bool find_take (finding *f, const variant *v, variant_value *seen, error *err) MUST_CHECK;
/* Tensors that segments of the way forward hand on are kept, in file recompute_segments; `until` in
   ticks. */
bool find_segments (finding *f, int64_t until, error *err) MUST_CHECK;

/* The way forward ends where most of what can be dropped idles. */
typedef struct forward {
  finding *f;
  int32_t turn;
  int64_t *crossing; /* per op: bytes made before it and read by it or later, before they idle */
  int64_t *made;     /* per op: as which the way is measured, bytes or time */
} forward;
/* In f->scratch; measured in bytes or in time then. */
bool find_forward (finding *f, forward *w, error *err) MUST_CHECK;
void find_measure (forward *w, bool by_time);
/* f->now: all that idles at the turn is dropped, but what one of n segments hands to the next. */
void find_cut_forward (const forward *w, int32_t n, uint8_t how);

/* From a set on, by small changes and by whole stretches of equal drops; `until` in ticks. */
bool find_climb (finding *f, const drop_set *from, int64_t until, error *err) MUST_CHECK;

/* With less room or more, as plans show it; with less where nothing fits. */
bool find_room (finding *f, error *err) MUST_CHECK;
bool find_fit (finding *f, error *err) MUST_CHECK;
