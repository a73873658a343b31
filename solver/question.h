/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One question on its way to an answer: what was asked, and the best plan so far.  solve.c runs the
   strategies of the stages ORDER and PLACES on it; each reads the best plan and improves it. */
#pragma once

#include "solver/attempt/attempt.h"

enum { MOST_ORDERS = 3 };

/* The same step with its ops in another order. */
typedef struct order_tried {
  const trace *trace;
  op_run *runs; /* none: as it is */
  int32_t n_runs;
  solution found;    /* without a plan: none was found */
  bool in_full;      /* searched with more than a look */
  bool without_cuts; /* found by a look that did not compare them, though they are allowed */
  error refused;     /* why not */
} order_tried;

typedef struct question {
  solve_request ask; /* its effort is complete: with the limits of the options */
  arena *arena;
  solution best; /* no plan: none yet, or the orders are not compared yet */
  plan *known;   /* the fastest of the options' starts, as it is here; or NULL */
  /* The stage ORDER has these. */
  order_tried at[MOST_ORDERS];
  int32_t count, n_beside;                /* looks on threads of their own */
  int64_t ticks, limit_ticks, look_ticks; /* to spend on a look at one order */
  bool looks_without_cuts; /* comparing cuts is most of a look, and tells orders apart little */
  order_tried *promising;  /* that got the rest; NULL: none */
} question;

/* ---- the stage ORDER: solver/orders.c ---- */

/* Which orders there are. */
bool orders_begin (question *q, error *err) MUST_CHECK;
/* The best of them is the question's best. */
bool orders_settle (question *q, error *err) MUST_CHECK;
int64_t orders_best_ns (const question *q);

bool orders_are_one (const question *q);
bool orders_are_several (const question *q);
bool orders_are_open (const question *q);
bool orders_had_other (const question *q);
bool orders_have_time (const question *q);

bool orders_alone (question *q, error *err) MUST_CHECK;
bool orders_looks (question *q, error *err) MUST_CHECK;
bool orders_promising (question *q, error *err) MUST_CHECK;
bool orders_given (question *q, error *err) MUST_CHECK;
bool orders_best_look (question *q, error *err) MUST_CHECK;

/* ---- the stage PLACES: solver/again.c ---- */

bool again_rewrites (const question *q);
bool again_may (const question *q);
bool again_is_known (const question *q);

bool again_anew (question *q, error *err) MUST_CHECK;
bool again_arena (question *q, error *err) MUST_CHECK;
bool again_uncut (question *q, error *err) MUST_CHECK;
bool again_reordered (question *q, error *err) MUST_CHECK;
bool again_grouped (question *q, error *err) MUST_CHECK;
bool again_known (question *q, error *err) MUST_CHECK;
