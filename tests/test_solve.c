/* SPDX-License-Identifier: GPL-3.0-or-later */
/* solve on small random traces: what it returns passes check, is never below the bound that it
   proves, fits into memory, and is the same again.
   Beside it stands the best of every choice of whole tensors in every gap, found by trying all. */
#include "solver/options/options.h"
#include "solver/place/schedule.h"
#include "solver/solve.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"
#include "trace/simulate/simulate.h"

enum { CASES = 160, MOST_GAPS = 7 };

typedef struct problem {
  random_case c;
  device dev;
  gaps g;
  units u;
} problem;

static problem problem_of (uint64_t seed, arena *a) {
  error err = { 0 };
  problem p;
  case_options o = { .seed = seed,
                     .features = CASE_WRAP | CASE_WORKSPACE | CASE_SHARED_RATE | CASE_COPY_NS |
                                 CASE_GAPS | CASE_LIVES };
  ck_assert_msg (random_case_make (&o, a, &p.c, &err), "%s", err.text);
  p.dev = p.c.plan->device;
  p.dev.memory_bytes = p.dev.host_bytes = (int64_t)1 << 40;
  p.dev.reserved_bytes = 0;
  ck_assert (units_of (p.c.trace, NULL, 0, p.dev.granule_bytes, 0, a, &p.u, &err));
  ck_assert (gaps_of (&p.u, p.dev.granule_bytes, (int64_t)1 << 40, a, &p.g, &err));
  return p;
}

/* Part of the way from the floor to the peak, in granules. */
static int64_t budget_at (const problem *p, int percent) {
  int64_t granule = p->dev.granule_bytes, floor = p->g.floor_bytes;
  int64_t way = (p->g.peak_bytes - floor) / granule;
  return floor + way * percent / 100 * granule;
}

static bool solved (const problem *p, int64_t budget_bytes, arena *a, solution *s, error *err) {
  solve_options o = { .device = &p->dev,
                      .budget_bytes = budget_bytes,
                      .host_bytes = p->dev.host_bytes,
                      .limit_ticks = 20000,
                      .seed = 5,
                      .keep_proof = true };
  return solve (p->c.trace, &o, a, s, err);
}

CLAIM (a_plan_passes_check_keeps_its_bound_and_costs_what_it_says) {
  int with_stalls = 0, done = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    solution s;
    problem p = problem_of (seed, a);
    int64_t budget = budget_at (&p, (int)(seed % 4) * 25);
    if (solved (&p, budget, a, &s, &err)) {
      ck_assert_msg (check_plan (p.c.trace, s.plan, a, NULL, &err), "%s", err.text);
      ck_assert_int_le (s.bound.lower_bound_ns, s.plan->predicted.step_ns);
      ck_assert_int_le (s.bound.compute_ns, s.bound.lower_bound_ns);
      ck_assert_int_le (s.plan->predicted.peak_bytes, budget);
      ck_assert_int_eq (s.plan->certificate.lower_bound_ns, s.bound.lower_bound_ns);
      with_stalls += s.plan->predicted.stall_ns > 0;
      done++;
    } else {
      ck_assert (err.code == ERR_infeasible || err.code == ERR_limit);
    }
    arena_free (a);
  }
  ck_assert_int_gt (done, CASES / 2);
  ck_assert_int_gt (with_stalls, CASES / 8);
}

static bytes stored (const plan *p) {
  bytes text = { 0 };
  error err = { 0 };
  ck_assert_msg (plan_text (p, false, &text, &err), "%s", err.text);
  return text;
}

CLAIM (the_same_request_gives_the_same_bytes) {
  for (uint64_t seed = 1; seed <= 8; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    solution s, again;
    problem p = problem_of (seed, a);
    if (solved (&p, budget_at (&p, 30), a, &s, &err)) {
      ck_assert (solved (&p, budget_at (&p, 30), a, &again, &err));
      bytes first = stored (s.plan), second = stored (again.plan);
      ck_assert_int_gt (first.size, 0);
      ck_assert_mem_eq (first.data, second.data, (size_t)first.size);
      bytes_free (&first);
      bytes_free (&second);
    }
    arena_free (a);
  }
}

CLAIM (more_memory_never_raises_the_bound) {
  for (uint64_t seed = 1; seed <= 15; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    problem p = problem_of (seed, a);
    int64_t before_ns = INT64_MAX;
    for (int percent = 0; percent <= 100; percent += 25) {
      solution s;
      error why = { 0 };
      if (!solved (&p, budget_at (&p, percent), a, &s, &why))
        continue;
      ck_assert_int_le (s.bound.lower_bound_ns, before_ns);
      before_ns = s.bound.lower_bound_ns;
    }
    solution whole;
    ck_assert_msg (solved (&p, p.g.peak_bytes, a, &whole, &err), "%s", err.text);
    ck_assert_int_eq (whole.plan->predicted.stall_ns, 0);
    arena_free (a);
  }
}

/* ---- all choices of whole tensors ---- */

static int64_t cost_of (const problem *p, unsigned chosen, int64_t budget_bytes, bool demand,
                        arena *a) {
  error err = { 0 };
  wish wishes[MOST_GAPS];
  int32_t n = 0;
  for (int32_t i = 0; i < p->g.count; i++)
    if (chosen >> i & 1)
      wishes[n++] = (wish){ .unit = p->g.at[i].unit,
                            .of = 1,
                            .out_after = p->g.at[i].after,
                            .in_before = p->g.at[i].before,
                            .in_not_before = demand ? p->g.at[i].before : NO_WAIT };
  schedule_options o = { .budget_bytes = budget_bytes,
                         .host_bytes = p->dev.host_bytes,
                         .granule_bytes = p->dev.granule_bytes,
                         .early_ppm = -1,
                         .auto_clean = true };
  plan *made = schedule (&(schedule_request){ .original = p->c.trace,
                                              .rewritten = &p->c.rewritten,
                                              .device = &p->dev,
                                              .wishes = wishes,
                                              .n_wishes = n,
                                              .options = &o },
                         a, NULL, &err);
  if (!made)
    return INT64_MAX;
  sim_job job = { p->c.trace, &p->c.rewritten, made };
  predicted cost;
  sim_options so = { 0 };
  ck_assert_msg (simulate (&job, 1, &so, a, &cost, NULL, &err), "%s", err.text);
  return cost.step_ns;
}

CLAIM (no_choice_of_whole_tensors_beats_the_bound_and_few_beat_the_plan) {
  int cases = 0, reached = 0;
  for (uint64_t seed = 1; seed <= 4 * CASES && cases < 40; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    solution s;
    case_options plain = { .seed = seed, .features = CASE_WRAP | CASE_WORKSPACE | CASE_COPY_NS };
    problem p = problem_of (seed, a);
    ck_assert (random_case_make (&plain, a, &p.c, &err));
    ck_assert (trace_rewrite (p.c.trace, &(rewriting){ 0 }, a, &p.c.rewritten, &err));
    ck_assert (units_of (p.c.trace, NULL, 0, p.dev.granule_bytes, 0, a, &p.u, &err));
    ck_assert (gaps_of (&p.u, p.dev.granule_bytes, (int64_t)1 << 40, a, &p.g, &err));
    int64_t budget = budget_at (&p, 40), best_ns = INT64_MAX;
    if (p.g.count <= MOST_GAPS && solved (&p, budget, a, &s, &err)) {
      for (unsigned chosen = 0; chosen < 1u << p.g.count; chosen++)
        for (int demand = 0; demand < 2; demand++) {
          arena_mark mark = arena_here (a);
          int64_t ns = cost_of (&p, chosen, budget, demand, a);
          arena_back (a, mark);
          best_ns = ns < best_ns ? ns : best_ns;
        }
      ck_assert_int_ge (best_ns, s.bound.lower_bound_ns);
      cases++;
      reached += s.plan->predicted.step_ns <= best_ns;
    }
    arena_free (a);
  }
  ck_assert_int_ge (cases, 20);
  ck_assert_msg (reached * 20 >= cases * 19, "%d of %d reached", reached, cases);
}

CLAIM (what_is_enough_is_never_less_than_the_bound) {
  ck_assert_int_eq (solve_enough_ns (10000, 1000), 1010);
  ck_assert_int_eq (solve_enough_ns (INT64_MAX, MOST_NS), INT64_MAX);
}

/* A link that is nearly not there, one without end, and one that is each in one direction; where
   days and bytes run out, that is said, and what is proved holds. */
CLAIM (the_slowest_and_the_fastest_links_are_planned_for) {
  const int64_t slow = 1000000, fast = MOST_BYTES;
  const struct {
    int64_t out, in, both, copy_ns, share_ppm;
  } links[] = {
    { slow, slow, 2 * slow, 0, 1 },       { fast, fast, 2 * fast, 0, 1000000 },
    { slow, fast, slow + fast, 1, 1 },    { fast, slow, fast + slow, 1, 1 },
    { slow, slow, slow, MOST_NS, 1 },     { fast, fast, fast, MOST_NS, 1000000 },
    { fast, fast, 2 * fast, MOST_NS, 1 },
  };
  int done = 0;
  for (uint64_t seed = 1; seed <= 70; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    solution s;
    proved proof;
    problem p = problem_of (seed, a);
    trace *t = p.c.trace;
    size_t i = seed % (sizeof links / sizeof *links);
    for (int32_t k = 0; k < t->n_tensors; k++)
      t->tensors[k].bytes <<= 33;
    for (int32_t k = 0; k < t->n_ops; k++) {
      t->ops[k].workspace_bytes <<= 33;
      t->ops[k].ns <<= 34;
    }
    p.dev.granule_bytes = 1 << 30;
    p.dev.memory_bytes = p.dev.host_bytes = MOST_BYTES;
    p.dev.share_ppm = links[i].share_ppm;
    p.dev.link = (device_link){ .d2h_bytes_per_s = links[i].out,
                                .h2d_bytes_per_s = links[i].in,
                                .both_bytes_per_s = links[i].both,
                                .copy_ns = links[i].copy_ns };
    ck_assert (units_of (t, NULL, 0, p.dev.granule_bytes, 0, a, &p.u, &err));
    ck_assert (gaps_of (&p.u, p.dev.granule_bytes, MOST_BYTES, a, &p.g, &err));
    if (solved (&p, budget_at (&p, (int)(seed % 4) * 25), a, &s, &err)) {
      ck_assert_msg (check_plan (t, s.plan, a, NULL, &err), "%s", err.text);
      ck_assert_int_le (s.bound.lower_bound_ns, s.plan->predicted.step_ns);
      ck_assert_msg (prove_plan (t, s.plan, s.plan->predicted.step_ns, a, &proof, &err), "%s",
                     err.text);
      done++;
    } else
      ck_assert_msg (err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
    arena_free (a);
  }
  ck_assert_int_gt (done, 20);
}

int main (void) {
  return suite_run ("solve", 60);
}
