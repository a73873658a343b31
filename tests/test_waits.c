/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What explain says of waits, against the timelines that it was read off. */
#include "trace/simulate/waits.h"
#include "tests/planned_case.h"
#include "tests/suite.h"

enum { CASES = 400 };

typedef struct seen {
  planned_case p;
  timeline line;
  wait *waits;
  int32_t count;
} seen;

/* False: this seed gives no plan whose steps are all alike. */
static bool look (uint64_t seed, arena *a, seen *s) {
  error err = { 0 };
  predicted cost;
  sim_options o = { .timeline_arena = a };
  bool made = planned_make (seed, CASE_EVERYTHING, a, &s->p, &err);
  ck_assert_msg (!err.code, "seed %llu: %s", (unsigned long long)seed, err.text);
  if (!made)
    return false;
  sim_job job = { s->p.c.trace, &s->p.c.rewritten, s->p.c.plan };
  ck_assert (simulate (&job, 1, &o, a, &cost, &s->line, &err));
  ck_assert (waits_of (&job, &s->line, a, &s->waits, &s->count, &err));
  return cost.settled && cost.step_ns == s->line.period_ns && s->line.period_ns > 0;
}

CLAIM (the_waits_of_a_step_add_up_to_its_stall) {
  int found = 0, stalled = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    arena *a = arena_new (0);
    seen s;
    if (look (seed, a, &s)) {
      int64_t sum = 0;
      for (int32_t i = 0; i < s.count; i++)
        sum += s.waits[i].ns;
      ck_assert_int_eq (sum, s.line.period_ns - trace_total_ns (s.p.c.rewritten.trace));
      found++;
      stalled += sum > 0;
    }
    arena_free (a);
  }
  ck_assert_int_gt (found, CASES / 10);
  ck_assert_int_gt (stalled, 10);
}

/* Every op starts when something ends: of a wait, that is a copy, and it is the one that is named.
   Where a cause is told, some copy of the same direction began in the moment in which it ended. */
CLAIM (a_wait_names_the_copy_that_ended_just_then) {
  int named = 0, told = 0, by_out = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    arena *a = arena_new (0);
    seen s;
    bool alike = look (seed, a, &s);
    for (int32_t i = 0; alike && i < s.count; i++) {
      const wait *w = &s.waits[i];
      int64_t starts_ns = s.line.ops[w->op].start_ns, period_ns = s.line.period_ns;
      ck_assert_int_ge (w->move, 0);
      const span *copies = w->by_out ? s.line.outs : s.line.ins;
      ck_assert_int_eq ((copies[w->move].end_ns - starts_ns) % period_ns, 0);
      named++;
      by_out += w->by_out;
      if (w->cause != COPY_op && w->cause != COPY_out)
        continue;
      int64_t ended_ns =
          w->cause == COPY_op ? s.line.ops[w->cause_op].end_ns : s.line.outs[w->cause_move].end_ns;
      bool began = false;
      for (int32_t m = 0; m < s.p.c.plan->n_moves; m++)
        began |= !(w->by_out && s.p.c.plan->moves[m].clean) &&
                 (copies[m].start_ns - ended_ns) % period_ns == 0;
      ck_assert_msg (began, "seed %llu, op %d", (unsigned long long)seed, w->op);
      told++;
    }
    arena_free (a);
  }
  ck_assert_int_gt (named, 50);
  ck_assert_int_gt (by_out, 5);
  ck_assert_int_gt (told, named / 2);
}

int main (void) {
  return suite_run ("waits", 60);
}
