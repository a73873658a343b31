/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The planner as commands call it: what the command line asks for, a key that stops it, what is
   said on the way. */
#pragma once

#include "cli/call/call.h"
#include "solver/ask/ranks.h"
#include "solver/options/allowed.h"

typedef struct planner {
  ask ask;
  int64_t seconds;           /* 0: no limit */
  bool interrupted, stopped; /* by the user; by whatever limit of time */
  call *call;                /* while it solves */
  const char *tuned;         /* the text of --tune; or NULL */
  const char *from;          /* of --from; or NULL */
  search_stats stats;        /* of all that was solved */
} planner;

/* Reads what is allowed, --device, --budget, --host, --reserve, --gap, --limit, --noise, --seconds,
   --seed and --proof; a command need not have all of them. */
bool planner_read (call *c, const trace *t, planner *p) MUST_CHECK;
/* Without a command line: one device, one budget, all of its host; nothing but swapping. */
bool planner_plain (planner *p, const call *c, const trace *t, const device *d,
                    int64_t budget_bytes, int64_t limit_ticks, error *err) MUST_CHECK;

/* An interrupt stops it and keeps what was found; a second one ends the program. The plan says
   which limit was met and by what it was made. */
bool planner_solve (call *c, planner *p, const trace *t, arena *a, solution *out) MUST_CHECK;
/* The same for ranks: rank i has trace and planner i % n. */
bool planner_ranks (call *c, planner *p, trace *const *traces, int32_t n, const ranks_question *r,
                    arena *a, ranks_answer *out) MUST_CHECK;
