/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Other ways to serve jobs that want one card: swap nothing, take turns, an even split, or
   TENSILE's rule.  Each is judged as our own choice is: by the machine model, with all of them
   running. */
#pragma once

#include "solver/fleet/cards.h"

typedef enum alternative_id {
  ALTERNATIVE_OURS,
  ALTERNATIVE_PLAIN, /* nothing moves, on a card as large as that takes: what the others are
                      * measured by
                      */
  ALTERNATIVE_TURNS, /* one step of each at a time, with all of the card; what a job keeps between
                  its steps comes and goes over the link */
  ALTERNATIVE_EVEN,  /* the same memory for each */
  ALTERNATIVE_TENSILE,
  ALTERNATIVES
} alternative_id;

/* TENSILE's measures: the part of the memory that is saved, the part of the time that it takes
   more, both against ALTERNATIVE_PLAIN, and the one over the other. */
typedef struct rival {
  const char *name;
  bool fits, has_cbr;
  const char *note; /* why it does not fit, or NULL */
  int64_t step_ns[CARDS_MOST_JOBS], peak_bytes[CARDS_MOST_JOBS];
  int64_t worst_ppm, total_ppm; /* slowdowns against each job alone with memory without limit */
  int64_t msr_ppm, eor_ppm, cbr_ppm;
} alternative;

/* Alternatives for the first card and the jobs that are placed there. n_jobs: how many these
   are. */
bool alternatives_of (const cards_job *jobs, int32_t n_jobs, const cards_options *o,
                      const cards_answer *ours, arena *a, alternative out[ALTERNATIVES],
                      error *err) MUST_CHECK;
