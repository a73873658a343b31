/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of solver/fleet/cards: the jobs' samples, and the machine model's word on
   plans that run together on one card. */
#pragma once

#include "solver/fleet/needs.h"
#include "solver/fleet/cards.h"

enum { CARDS_LEVELS = 4 };
#define CARDS_ONE ((int64_t)1000000)

typedef struct cards_samples {
  const trace *trace;
  const char *card;
  curve at[CARDS_LEVELS]; /* at half of the link, twice that, ... */
  int32_t n_levels;       /* that are known */
} cards_samples;

typedef struct placing {
  const cards_job *jobs;
  int32_t n_jobs;
  const cards_options *o;
  arena *a;
  int32_t kind_of[CARDS_MOST]; /* the first card that is the same device */
  cards_samples *of[CARDS_MOST_JOBS][CARDS_MOST];
  int64_t whole_bytes[CARDS_MOST_JOBS][CARDS_MOST]; /* the floor of whole ops */
  int64_t floor_bytes[CARDS_MOST_JOBS][CARDS_MOST], peak_bytes[CARDS_MOST_JOBS][CARDS_MOST];
  int64_t left_ticks; /* of total_ticks */
  cards_answer *out;
} placing;

int64_t cards_host_room (const cards_options *o, int32_t card);
/* How a job is sampled: as was asked for, with the reserve that its trace wants. */
curve_options cards_sampling (const cards_options *o, const cards_job *job);
/* Nothing is left of all ticks: what can be left out is, and samples are few. */
bool cards_spent (const placing *p);
/* A curve of a job, as o says, but for the ticks that are left of all. */
bool cards_curve (placing *p, int32_t job, curve_options *o, const int64_t *budgets, int32_t n,
                  curve *out, error *err) MUST_CHECK;
/* The budget of a job's plan, its reserve included. */
int64_t cards_taken (const placing *p, int32_t job, const plan *found);

/* ---- cards_samples.c ---- */

/* Choices of a job on this card beside n_jobs - 1 others: pack_spread_jobs.offer, with a placing as
   its context. */
bool cards_offer (void *context, int32_t job, int32_t card, int32_t n_jobs, pack_job *out,
                  error *err) MUST_CHECK;
/* Which sample that was; NULL behind the last. */
const plan *cards_offered (const placing *p, int32_t job, int32_t card, int32_t n_jobs,
                           int32_t choice);

/* ---- cards_together.c ---- */

typedef struct sharing {
  int32_t n, jobs[CARDS_MOST_JOBS];
  cards_place *at[CARDS_MOST_JOBS];
  const plan *plans[CARDS_MOST_JOBS];
  int64_t step_ns[CARDS_MOST_JOBS], worst_ppm, total_ppm;
} sharing;

/* By the machine model, all of them running. */
bool cards_judge (const placing *p, sharing *s, error *err) MUST_CHECK;
bool cards_better (const placing *p, const sharing *x, const sharing *y);
/* From the samples that were chosen to those that are best together, an even split among them. */
bool cards_climb (placing *p, int32_t card, sharing *s, error *err) MUST_CHECK;

/* ---- cards_refine.c ---- */

/* Plans once more, with all of the memory; they are taken where they are better together. */
bool cards_refine (placing *p, int32_t card, sharing *s, error *err) MUST_CHECK;
/* The plan as one of this card and share of its link, with its step by itself and its bound. */
bool cards_bind (placing *p, int32_t job, const plan *found, int32_t card, int64_t share_ppm,
                 const plan **out, error *err) MUST_CHECK;

/* ---- cards_reason.c ---- */

/* On the card with the most room for it beside those that are there, at their floors. */
bool cards_reason (placing *p, int32_t job, error *err) MUST_CHECK;
