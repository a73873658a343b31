/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs on cards: which of them run together where, with how much memory and how much of the link.
   Each job's curve is sampled at a few budgets and shares, and the choice over the samples is
   exact. But it rests on shares that nobody enforces; so from there the samples are exchanged while
   the machine model, which runs all of a card's plans together, says that it helps, and are planned
   once more with what was left over. */
#pragma once

#include "solver/fleet/curve.h"
#include "solver/fleet/pack_spread.h"

enum { CARDS_MOST = PACK_MOST_CARDS, CARDS_MOST_JOBS = PACK_MOST_SPREAD };

typedef struct cards_job {
  const char *name;
  const trace *trace;
  allowed allowed; /* beside swapping */
} cards_job;

/* Curves that were sampled, for another call with some of the same jobs and the same cards. */
typedef struct cards_known cards_known;
cards_known *cards_known_new (arena *a, error *err) MUST_CHECK;

typedef struct cards_options {
  const device *cards;
  int32_t n_cards;
  int64_t memory_bytes; /* of each card, for the plans of all its jobs; 0: all that it has */
  int64_t host_bytes;   /* for all cards, in equal parts; 0: what each card's file gives */
  bool no_host;         /* none, whatever host_bytes says */
  pack_objective objective;
  int32_t points;         /* budgets sampled of each job; 0: 8 */
  curve_options sampling; /* device, host_bytes and allowed are not looked at */
  int64_t limit_ticks;    /* of each plan at the chosen point; 0: as in sampling */
  int64_t total_ticks;    /* of all searches together, those for samples too; 0: no such limit */
  cards_known *known;     /* or NULL; in an arena that lives as long as this call's */
} cards_options;

typedef struct cards_place {
  int32_t card; /* -1: left out */
  int64_t budget_bytes, share_ppm;
  int64_t floor_bytes, peak_bytes, baseline_ns;
  int64_t chosen_ns; /* by the sample first chosen: its step with its share, times the jobs here */
  int64_t predicted_ns; /* by the machine model, before the plans were refined for the last time */
  int64_t together_ns;  /* the same of the plans: all of the card's jobs running */
  const plan *plan;     /* of the card and this share; predicted is its step by itself */
  const char *reason;   /* why it was left out */
} cards_place;

typedef struct cards_answer {
  cards_place *places; /* one a job */
  int32_t n_placed;
  int64_t worst_ppm, total_ppm; /* by the samples */
  int64_t sampled, visited;     /* plans; nodes of the search */
  int64_t ticks; /* of all searches; more than total_ticks by their first plans and bounds */
} cards_answer;

/* Ticks of a sample's plan, and by search_level of the plans at the chosen point. */
enum { CARDS_SAMPLE_TICKS = 4000 };
extern const int64_t cards_level_ticks[];

/* Places as many jobs as can be, in the best of all ways to place those. */
bool cards_place_jobs (const cards_job *jobs, int32_t n_jobs, const cards_options *o, arena *a,
                       cards_answer *out, error *err) MUST_CHECK;

/* Bytes of a card that are left for the budgets of n_jobs jobs. */
int64_t cards_room (const cards_options *o, int32_t card, int32_t n_jobs);
