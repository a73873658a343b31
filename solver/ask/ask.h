/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The questions that people ask of the planner: a budget with its reserve, and an answer that names
   the smallest budget where none fits. The commands and the library ask alike, so they answer
   alike. */
#pragma once

#include "solver/options/allowed.h"
#include "solver/options/options.h"

/* A smallest budget, and whether a plan was found in it: else none fits below, and that is all. */
typedef struct ask_least {
  int64_t floor_bytes;   /* below, nothing of whole ops fits; the reserve included */
  int64_t reserve_bytes; /* of floor_bytes */
  int64_t found_bytes;   /* above the budget, in which a plan was found; 0: none was */
} ask_least;

typedef struct ask {
  solve_options options; /* but its budget and its device */
  device device;
  int64_t asked_bytes; /* the budget, reserve included */
  int64_t reserve_bytes;
  int64_t reserve_ppm; /* of a budget; -1: the reserve is these bytes of any budget */
  ask_least least;     /* of a question that was refused */
} ask;

/* A budget of which these bytes are left once its reserve is kept. */
int64_t ask_with_reserve (const ask *q, int64_t bytes);

/* The defaults: all of the device and of its host, the reserve that the trace's confidence wants,
   whichever places are better. */
ask ask_default (const trace *t, const device *d);
/* Another budget; the reserve follows. ERR_usage where the device has less, or the reserve is more.
 */
bool ask_budget (ask *q, int64_t asked_bytes, error *err) MUST_CHECK;
/* True if the device leaves these bytes free, or its host has them; else ERR_usage. */
bool ask_room (const device *d, int64_t budget_bytes, error *err) MUST_CHECK;
bool ask_host (const device *d, int64_t host_bytes, error *err) MUST_CHECK;

/* If nothing has to move, the plan takes no more than the step needs. Where none fits, the error
   names the budget to ask for, and q->least how that came about. */
bool ask_solve (const trace *t, ask *q, arena *a, solution *out, error *err) MUST_CHECK;

/* A bound, quick and weak, of plans that do more than q allows. */
typedef struct ask_other {
  const char *option; /* as the command line spells it */
  int64_t lower_bound_ns;
} ask_other;
enum { ASK_OTHERS = 2 };

/* Those of `most` of which nothing says that they cannot be faster than step_ns, by more than the
   gap. */
bool ask_others_of (const trace *t, const ask *q, const allowed *most, int64_t step_ns,
                    ask_other out[ASK_OTHERS], int *count, error *err) MUST_CHECK;
