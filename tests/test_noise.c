/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Durations that vary: each day stays within its noise, the spread of a plan's days is what the
   reference simulator says of them one by one, and of plans that take as long solve takes the one
   that such days harm least. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "solver/solve.h"
#include "tests/random_case.h"
#include "tests/ref_simulate.h"
#include "tests/suite.h"
#include "tests/synthetic.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/simulate/noise.h"

enum { CASES = 40, DAYS = 40, NETWORKS = 8, OPS = 50, MB = 1 << 20 };

CLAIM_IN_ARENA (a_day_stays_within_its_noise_and_no_two_are_alike) {
  trace *t = synthetic (SYNTHETIC_GPT, 300, 1, a, &err), day, same, next;
  noise_options o = { 25, 2, 7 }, other = { 25, 2, 8 };
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert (noise_day (t, &o, 0, a, &day, &err) && noise_day (t, &o, 0, a, &same, &err));
  int32_t low = 0, high = 0;
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t ns = t->ops[k].ns, quarter = ns / 4;
    ck_assert_int_ge (day.ops[k].ns, ns - quarter - 1);
    ck_assert_int_le (day.ops[k].ns, ns + quarter);
    ck_assert_int_eq (day.ops[k].ns, same.ops[k].ns);
    ck_assert_int_eq (day.ops[k].gap_ns, t->ops[k].gap_ns);
    low += day.ops[k].ns < ns - quarter / 2;
    high += day.ops[k].ns > ns + quarter / 2;
  }
  /* a quarter of them each, if the draw is even */
  ck_assert_int_ge (low, t->n_ops / 8);
  ck_assert_int_ge (high, t->n_ops / 8);
  size_t size = (size_t)t->n_ops * sizeof *t->ops;
  ck_assert (noise_day (t, &o, 1, a, &next, &err) && memcmp (next.ops, day.ops, size) != 0);
  ck_assert (noise_day (t, &other, 0, a, &next, &err) && memcmp (next.ops, day.ops, size) != 0);
}

/* By the reference, day by day, without sorting: how many days are no worse. */
static int64_t ranked (const int64_t *ppm, int32_t n, int32_t rank) {
  for (int32_t i = 0; i < n; i++) {
    int32_t below = 0, equal = 0;
    for (int32_t j = 0; j < n; j++) {
      below += ppm[j] < ppm[i];
      equal += ppm[j] == ppm[i];
    }
    if (below < rank && rank <= below + equal)
      return ppm[i];
  }
  return INT64_MIN;
}

CLAIM (the_spread_is_what_the_reference_says_of_each_day) {
  int apart = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    case_options how = { .seed = seed,
                         .features = CASE_EVERYTHING & ~(unsigned)CASE_ZERO_NS,
                         .places = CASE_SHARED };
    ck_assert_msg (random_case_make (&how, a, &c, &err), "%s", err.text);
    noise_options o = { (int32_t)(seed % 3 * 10 + 5), DAYS, seed };
    noise_spread s;
    int64_t ppm[DAYS];
    if (!noise_of_plan (c.trace, c.plan, &o, a, &s, &err))
      ck_abort_msg ("seed %llu: %s", (unsigned long long)seed, err.text);
    for (int32_t i = 0; i < DAYS; i++) {
      trace day;
      ref_answer truth;
      ck_assert (noise_day (c.trace, &o, i, a, &day, &err));
      ref_job job = { &day, c.plan };
      ck_assert_msg (ref_simulate (&job, 1, false, a, &truth, &err), "%s", err.text);
      int64_t sum_ns = 0;
      for (int32_t k = 0; k < day.n_ops; k++)
        sum_ns += day.ops[k].ns + day.ops[k].gap_ns;
      ppm[i] = (int64_t)((__int128)truth.predicted.step_ns * 1000000 / sum_ns) - 1000000;
    }
    ck_assert_int_eq (s.least_ppm, ranked (ppm, DAYS, 1));
    ck_assert_int_eq (s.median_ppm, ranked (ppm, DAYS, DAYS / 2));
    ck_assert_int_eq (s.p95_ppm, ranked (ppm, DAYS, DAYS * 95 / 100));
    ck_assert_int_eq (s.most_ppm, ranked (ppm, DAYS, DAYS));
    apart += s.median_ppm < s.p95_ppm;
    arena_free (a);
  }
  ck_assert_int_ge (apart, CASES / 3);
}

static device link_of (int64_t rate) {
  return (device){ .name = "test",
                   .memory_bytes = (int64_t)1 << 40,
                   .granule_bytes = MB,
                   .link = { rate, rate, 2 * rate, 0 },
                   .host_bytes = (int64_t)1 << 40,
                   .share_ppm = 1000000 };
}

/* `kept` rests from op 0 to op 9 and has to be away at op 4 alone; a copy takes 78 % of an op. Just
   in time it starts with op 8, and where that op is shorter than that op 9 waits; as soon as
   there is room it would be back long before. */
static trace *one_rest (arena *a, error *err) {
  trace_builder *b = build_new (a, "one rest", 1, err);
  ck_assert (b);
  build_source (b, "test", "");
  int32_t kept = build_tensor (b, "kept", 4 * MB, TENSOR_ACTIVATION);
  for (int32_t k = 0; k < 10; k++) {
    char name[16];
    snprintf (name, sizeof name, "op%d", k);
    build_op (b, name, k < 5 ? OP_FORWARD : OP_BACKWARD, 100000);
    build_op_at (b, k)->workspace_bytes = k == 4 ? 9 * MB : MB;
    if (k == 0)
      build_write (b, kept);
    if (k == 9)
      build_read (b, kept);
  }
  return build_finish (b, err);
}

static bool solve_noisy (const trace *t, const device *d, int64_t budget_bytes, int64_t ticks,
                         int32_t percent, arena *a, solution *s, error *err) {
  solve_options o = { .device = d,
                      .budget_bytes = budget_bytes,
                      .host_bytes = d->host_bytes,
                      .limit_ticks = ticks,
                      .seed = 3,
                      .noise_percent = percent };
  return solve (t, &o, a, s, err);
}

static noise_spread spread_of (const trace *t, const plan *p, int32_t percent, arena *a) {
  noise_options o = { percent, DAYS, 3 };
  noise_spread out;
  error err = { 0 };
  ck_assert_msg (noise_of_plan (t, p, &o, a, &out, &err), "%s", err.text);
  return out;
}

CLAIM_IN_ARENA (of_two_plans_that_take_as_long_the_steadier_is_taken) {
  trace *t = one_rest (a, &err);
  device d = link_of (4 * (int64_t)MB * 1000000 / 78); /* kept takes 78 us */
  solution plain, told;
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_msg (solve_noisy (t, &d, 9 * MB, 0, 0, a, &plain, &err), "%s", err.text);
  ck_assert_msg (solve_noisy (t, &d, 9 * MB, 0, 50, a, &told, &err), "%s", err.text);
  ck_assert_int_eq (plain.robust.plans, 0);
  ck_assert_int_eq (plain.plan->predicted.step_ns, 1000000);
  ck_assert_int_eq (told.plan->predicted.step_ns, 1000000);
  ck_assert_int_ge (told.robust.plans, 2);
  noise_spread first = spread_of (t, plain.plan, 50, a), taken = spread_of (t, told.plan, 50, a);
  ck_assert_int_gt (first.p95_ppm, 0);
  ck_assert_int_eq (taken.p95_ppm, 0);
  ck_assert_int_eq (told.robust.p95_ppm, taken.p95_ppm);
  ck_assert_int_eq (told.robust.fastest_p95_ppm, first.p95_ppm);
}

/* Half way from the floor to the peak, and a little. */
static int64_t middle (const trace *t, arena *a) {
  units u;
  gaps g;
  error err = { 0 };
  ck_assert (units_of (t, NULL, 0, 1, 0, a, &u, &err) &&
             gaps_of (&u, 1, INT64_MAX / 8, a, &g, &err));
  return (g.floor_bytes + g.peak_bytes) / 2 + 8 * MB;
}

/* Of random networks: what is said is true, nothing else is lost, and it helps. */
CLAIM (the_steadier_plan_is_as_good_and_what_is_said_of_it_is_true) {
  int better = 0, chosen = 0;
  for (uint64_t seed = 1; seed <= NETWORKS; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    trace *t = synthetic (seed % 4 ? SYNTHETIC_RESNET : SYNTHETIC_RANDOM, OPS, seed, a, &err);
    device d = link_of ((int64_t)(12 + seed) * 1000000000);
    solution plain, told;
    ck_assert (t != NULL);
    int64_t budget = middle (t, a);
    if (!solve_noisy (t, &d, budget, 20000, 0, a, &plain, &err)) {
      arena_free (a);
      continue;
    }
    ck_assert_msg (solve_noisy (t, &d, budget, 20000, 20, a, &told, &err), "%s", err.text);
    ck_assert_msg (check_plan (t, told.plan, a, NULL, &err), "%s", err.text);
    int64_t ns = told.plan->predicted.step_ns, first_ns = plain.plan->predicted.step_ns;
    ck_assert_int_le (ns, first_ns + first_ns / 2000);
    ck_assert_int_eq (told.bound.lower_bound_ns, plain.bound.lower_bound_ns);
    ck_assert_int_eq (told.candidates, plain.candidates);
    ck_assert (plain.plan->certificate.limit_met || !told.plan->certificate.limit_met);
    if (told.robust.plans) {
      noise_spread s = spread_of (t, told.plan, 20, a);
      ck_assert_int_eq (s.p95_ppm, told.robust.p95_ppm);
      ck_assert_int_le (s.p95_ppm, told.robust.fastest_p95_ppm);
      chosen += told.robust.plans > 1;
      better += s.p95_ppm < told.robust.fastest_p95_ppm;
    }
    arena_free (a);
  }
  ck_assert_int_ge (chosen, NETWORKS / 2);
  ck_assert_int_ge (better, 1);
}

CLAIM_IN_ARENA (the_same_seed_gives_the_same_plan) {
  trace *t = synthetic (SYNTHETIC_RESNET, OPS, 5, a, &err);
  device d = link_of (17000000000);
  solution s[2];
  bytes text[2] = { { 0 }, { 0 } };
  ck_assert (t != NULL);
  for (int i = 0; i < 2; i++) {
    ck_assert_msg (solve_noisy (t, &d, middle (t, a), 20000, 20, a, &s[i], &err), "%s", err.text);
    ck_assert (plan_text (s[i].plan, false, &text[i], &err));
  }
  ck_assert_int_gt (s[0].robust.plans, 1);
  ck_assert (text[0].size == text[1].size &&
             memcmp (text[0].data, text[1].data, (size_t)text[0].size) == 0);
  bytes_free (&text[0]);
  bytes_free (&text[1]);
}

int main (void) {
  return suite_run ("noise", 240);
}
