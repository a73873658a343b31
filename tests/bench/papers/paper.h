/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the programs beside this share: a workload of the zoo, a policy or ferry's planner on it,
   and one row of published beside measured, as a line for people and a line of JSON. */
#pragma once

#include "solver/policy/policy.h"
#include "solver/solve.h"
#include "trace/zoo/zoo.h"

typedef struct paper {
  arena *arena;
  device device;
  trace *trace;
  int64_t peak_bytes; /* with everything on the device, in granules */
  bool reaches;       /* of a policy that does not fit, what it reaches is looked for */
  int64_t gap_ppm;    /* how near to the bound ours is good enough; 0: as `ferry solve` */
} paper;

/* What a plan costs, or that there is none. */
typedef struct paper_cost {
  bool fits;
  int64_t reached_bytes, bound_ns, drops;
  predicted cost;
} paper_cost;

/* A device that ferry ships, by name; ends the program where it cannot be read. */
device paper_device (const char *name);
/* Frees what the last workload was made of. */
void paper_workload (paper *p, const device *d, const zoo_request *request);
void paper_end (paper *p);

/* options: "key=value,key=value", or NULL. */
paper_cost paper_policy (paper *p, const char *policy, const char *options, int64_t budget_bytes);
/* ticks 0: those of `ferry compare`. */
paper_cost paper_ours (paper *p, int64_t budget_bytes, int64_t ticks);
/* With recomputing; with sections. */
paper_cost paper_mixed (paper *p, int64_t budget_bytes, int64_t ticks);
paper_cost paper_cut (paper *p, int64_t budget_bytes, int64_t ticks);

/* Slower than without a plan, in percent. */
double paper_loss (const paper_cost *c);

/* command: how to see it by hand. */
void paper_row (const char *paper, const char *claim, const char *published, const char *measured,
                const char *verdict, const char *command);
