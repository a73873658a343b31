/* The planner as commands call it: what the command line asks for, a key that stops it, what is
   said on the way. */
#ifndef FERRY_CLI_INPUTS_PLANNER_H
#define FERRY_CLI_INPUTS_PLANNER_H

#include "cli/call/call.h"
#include "solver/solve.h"

typedef struct planner {
  solve_options options;
  device device;
  int64_t asked_bytes, reserve_bytes; /* options.budget_bytes is the one less the other */
  int64_t seconds;                    /* 0: no limit */
  int64_t deadline_ns;
  bool interrupted;
  const char *tuned;  /* what --tune says; or NULL */
  search_stats stats; /* of all that was solved */
} planner;

/* Of --device, --budget, --host, --reserve, --gap, --limit, --noise, --seconds, --seed and
   --proof; a command need not have all of them. */
bool planner_read (call *c, const trace *t, planner *p) MUST_CHECK;
/* Without a command line: one device, one budget, all of its host. */
void planner_plain (planner *p, const call *c, const device *d, int64_t budget_bytes,
                    int64_t limit_ticks);

/* An interrupt stops it and keeps what was found; a second one ends the program. The plan says
   which limit was met and by what it was made. */
bool planner_solve (call *c, planner *p, const trace *t, arena *a, solution *out) MUST_CHECK;

/* The part of a budget that is kept free where a trace is not exact, in millionths. */
int64_t planner_reserve_ppm (const trace *t);

/* How far a step is above a bound, in percent, rounded up to a hundredth: "at most" holds. */
double planner_gap (int64_t step_ns, int64_t bound_ns);

int64_t planner_now_ns (void);

#endif
