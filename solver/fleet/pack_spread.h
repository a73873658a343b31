/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several jobs over several cards: the exact choice over samples. What a job may choose depends on
   the card and on how many jobs share it, so it is asked for by a call; what cards cannot hold is
   left out. */
#pragma once

#include "solver/fleet/pack.h"

enum { PACK_MOST_CARDS = 8, PACK_MOST_SPREAD = 10 /* jobs */ };

typedef struct pack_spread_jobs {
  int32_t n_jobs, n_cards;
  const int32_t *kind_of; /* per card: the first card that is like it */
  pack_objective objective;
  /* The choices of a job on a card of this kind that n_jobs share; they live as long as the answer.
   */
  bool (*offer) (void *context, int32_t job, int32_t kind, int32_t n_jobs, pack_job *out,
                 error *err);
  /* The limits of a card for these jobs; false: there is no need to ask for their choices. */
  bool (*may_share) (void *context, int32_t kind, const int32_t *jobs, int32_t n, pack_limits *out);
  void *context;
} pack_spread_jobs;

typedef struct pack_spread_answer {
  int32_t n_placed;
  int32_t card[PACK_MOST_SPREAD]; /* per job; -1: left out */
  int32_t chosen[PACK_MOST_SPREAD];
  pack_choice choice[PACK_MOST_SPREAD];
  int64_t worst_ppm, total_ppm, visited;
} pack_spread_answer;

/* Places as many jobs as there is a place for (of sets of that many, the one with the least total,
   then the first); of all ways to place these, the best by the objective, and then by the other
   one. */
bool pack_spread (const pack_spread_jobs *p, arena *a, pack_spread_answer *out,
                  error *err) MUST_CHECK;
