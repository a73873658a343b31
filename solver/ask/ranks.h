/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans for equal ranks that share the links of one host. Several ways are tried: plans for the
   link alone, for what is left of it while all ranks copy, and ranks that differ from their
   neighbours; the simulation of all ranks together says which is fastest. */
#ifndef FERRY_SOLVER_ASK_RANKS_H
#define FERRY_SOLVER_ASK_RANKS_H

#include "solver/ask/ask.h"
#include "trace/host.h"

typedef struct ranks_question {
  const gpu_host *host; /* with the link of its cards */
  int32_t ranks;        /* on its first cards */
} ranks_question;

/* A plan, made for a card whose link has these rates. */
typedef struct ranks_plan {
  device_link link;
  solution found;
} ranks_plan;

/* RANKS_turns: odd ranks have another plan than even ones. */
typedef enum ranks_kind {
  RANKS_alone,   /* for the link of one card alone */
  RANKS_one_way, /* for what is left when all copy one way, and ways do not hinder each other more
                    than they must */
  RANKS_both,    /* for what is left when all copy both ways */
  RANKS_between, /* for the mean of alone and both */
  RANKS_turns,
  RANKS_KINDS
} ranks_kind;
extern const char *const ranks_kinds[RANKS_KINDS];

typedef struct ranks_way {
  ranks_kind kind;
  int32_t plan_of[HOST_MOST_CARDS]; /* by rank */
  int64_t step_ns;                  /* of all ranks together */
  bool settled;
} ranks_way;

typedef struct ranks_answer {
  ranks_plan plans[RANKS_KINDS * HOST_MOST_CARDS];
  ranks_way ways[RANKS_KINDS];
  int32_t n_plans, n_ways, best; /* ways[0] is RANKS_alone */
  int64_t host_bytes;            /* that each rank may pin */
  int64_t pinned_bytes;          /* by all ranks of the best way */
  /* No plans at all are faster: a rank has its link to itself at best, and a group carries no more
     than it can. `of` is the plan whose certificate says which plans that covers; `by_group`: only
     those that move alone, NULL: no group says more. */
  int64_t lower_bound_ns;
  const plan *of;
  const char *by_group;
  int64_t same_bound_ns; /* no plan is faster that all ranks have; 0: not known */
} ranks_answer;

/* A rank's card: its link as far as it is left when all ranks copy both ways, and its part of what
   may be pinned. */
device ranks_card (const ranks_question *r, const device *card);

/* A time that no plans of a trace beat which only swap, in its order and in this budget, on `ranks`
   cards of the group, whatever each does: what crosses the group's link in every step, out, in, and
   both together, takes as long. */
bool ranks_group_bound (const trace *t, int64_t budget_bytes, const host_group *g, int32_t ranks,
                        int64_t *ns, error *err) MUST_CHECK;

/* q: as of one card alone; its host_bytes are those of a rank. */
bool ranks_solve (const trace *t, const ranks_question *r, const ask *q, arena *a,
                  ranks_answer *out, error *err) MUST_CHECK;

#endif
