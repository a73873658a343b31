/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans for ranks that share the links of one host. Several ways are tried: plans for the
   link alone, for what is left of it while all ranks copy, and ranks that differ from their
   neighbours; the simulation of all ranks together says which is fastest. */
#pragma once

#include "solver/ask/ask.h"
#include "trace/host.h"

/* The goal: ranks of one job keep together; jobs apart have a slowdown each, against
   their step with memory without limit. */
typedef enum ranks_goal { RANKS_together, RANKS_worst, RANKS_total } ranks_goal;

typedef struct ranks_answer ranks_answer;

typedef struct ranks_question {
  const gpu_host *host; /* with the link of its cards */
  int32_t ranks;        /* on its first cards */
  ranks_goal goal;
  int64_t most_ns;           /* any step that is no longer will do; 0: the fastest is asked for */
  const ranks_answer *known; /* to this question, where the fastest is asked for after all */
} ranks_question;

/* A rank's step. Equal ranks have the same trace, and then the same ask, which is that of
   one card alone. */
typedef struct ranks_job {
  const trace *trace;
  const ask *ask;
} ranks_job;

/* A plan, made for a card whose link has these rates. */
typedef struct ranks_plan {
  int32_t rank;       /* the first with its trace */
  int64_t host_bytes; /* that each rank of it may pin */
  device_link link;
  bool in_full; /* with all the effort that one link gets */
  solution found;
} ranks_plan;

/* RANKS_turns: odd ranks have another plan than even ones. RANKS_mixed: of different traces, each
   has whichever of its plans is best beside the others. */
typedef enum ranks_kind {
  RANKS_alone,   /* for the link of one card alone */
  RANKS_one_way, /* for what is left when all copy one way, and ways do not hinder each other more
                    than they must */
  RANKS_both,    /* for what is left when all copy both ways */
  RANKS_between, /* for the mean of alone and both */
  RANKS_turns,
  RANKS_mixed,
  RANKS_KINDS
} ranks_kind;
extern const char *const ranks_kinds[RANKS_KINDS];

typedef struct ranks_way {
  ranks_kind kind;
  int32_t plan_of[HOST_MOST_CARDS]; /* by rank */
  int64_t step_ns;                  /* of all ranks together; of jobs apart the longest */
  int64_t steps_ns[HOST_MOST_CARDS];
  int64_t worst_ppm, total_ppm; /* slowdowns of jobs apart */
  bool settled;
} ranks_way;

struct ranks_answer {
  ranks_plan plans[2 * RANKS_KINDS * HOST_MOST_CARDS];
  ranks_way ways[2 * RANKS_KINDS]; /* with most_ns a link may be searched twice */
  int32_t n_plans, n_ways, best;   /* ways[0] is RANKS_alone */
  int64_t pinned_bytes;            /* by all ranks of the best way */
  /* No plans at all are faster: a rank has its link to itself at best, and a group carries no more
     than it can. `of` is the plan whose certificate says which plans that covers; `by_group`: only
     those that move alone, NULL: no group says more. */
  int64_t lower_bound_ns;
  const plan *of;
  const char *by_group;
  int64_t same_bound_ns; /* no plan is faster that all ranks have; 0: ranks differ */
  /* Instead, of jobs apart: no plans have less slowdowns, for each job at best has its link to
     itself. */
  int64_t worst_bound_ppm, total_bound_ppm;
};

/* A rank's card: its link as far as it is left when all ranks copy both ways, and its part of what
   may be pinned. */
device ranks_card (const ranks_question *r, const device *card);

bool ranks_solve (const ranks_job *jobs, const ranks_question *r, arena *a, ranks_answer *out,
                  error *err) MUST_CHECK;
/* All ranks have that trace. */
bool ranks_solve_equal (const trace *t, const ranks_question *r, const ask *q, arena *a,
                        ranks_answer *out, error *err) MUST_CHECK;
