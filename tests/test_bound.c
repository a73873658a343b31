/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bound: exact arithmetic against the solver's, validity whatever the duals, and the way back
   from GLPK's abort. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/flow/bound.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "tests/synthetic.h"

static device device_25 (void) {
  return (device){ .granule_bytes = 2 << 20,
                   .link = { 25000000000, 20000000000, 45000000000, 10000 },
                   .host_bytes = MOST_BYTES,
                   .share_ppm = 1000000 };
}

/* A trace of some kind and its gaps at a share of its peak. */
static void setting (synthetic_kind kind, int32_t ops, int percent, const device *dev, arena *a,
                     units *u, gaps *g) {
  error err = { 0 };
  trace *t = synthetic (kind, ops, 5, a, &err);
  ck_assert_msg (t && units_of (t, NULL, 0, dev->granule_bytes, 1 << 20, a, u, &err) &&
                     gaps_of (u, dev->granule_bytes, INT64_MAX / 8, a, g, &err),
                 "%s", err.text);
  int64_t budget = g->floor_bytes + (g->peak_bytes - g->floor_bytes) * percent / 100;
  ck_assert_msg (gaps_of (u, dev->granule_bytes, budget, a, g, &err), "%s", err.text);
}

CLAIM (no_plan_is_faster_than_its_bound) {
  int proved = 0;
  for (int seed = 0; seed < suite_cases (500); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    planned_case p;
    bool made = planned_make ((uint64_t)seed, CASE_EVERYTHING & ~CASE_ZERO_NS, a, &p, &err);
    ck_assert_msg (err.code == ERR_none, "seed %d: %s", seed, err.text);
    if (made) {
      bound b;
      gaps g;
      units any, *u = &p.units;
      bound_options o = { .dev = &p.c.plan->device,
                          .host_bytes = seed % 3 ? p.c.plan->host_bytes : p.seen.host_peak_bytes,
                          .any_units = seed % 5 == 0,
                          .classes = 1 + seed % 3 };
      int64_t granule = o.any_units ? 1 : p.c.plan->placement.granule_bytes;
      if (o.any_units) {
        ck_assert (units_of (p.c.rewritten.trace, NULL, 0, 1, 0, a, &any, &err));
        u = &any;
      }
      ck_assert_msg (gaps_of (u, granule, p.most_bytes, a, &g, &err) &&
                         bound_of (&g, &o, a, &b, &err),
                     "seed %d: %s", seed, err.text);
      ck_assert_msg (b.lower_bound_ns <= p.seen.step_ns, "seed %d: %s says %lld, it took %lld",
                     seed, b.by, (long long)b.lower_bound_ns, (long long)p.seen.step_ns);
      ck_assert_int_ge (b.lower_bound_ns, b.compute_ns);
      proved += strcmp (b.by, "flow-lp") == 0;
    }
    arena_free (a);
  }
  ck_assert_int_gt (proved, 0);
}

CLAIM (exact_arithmetic_says_what_the_solver_says) {
  device dev = device_25 ();
  for (int kind = SYNTHETIC_GPT; kind <= SYNTHETIC_SHUFFLED; kind++)
    for (int percent = 0; percent < 80; percent += 45) {
      error err = { 0 };
      arena *a = arena_new (0);
      units u;
      gaps g;
      bound b;
      bound_options o = { .dev = &dev, .host_bytes = dev.host_bytes };
      setting ((synthetic_kind)kind, 60, percent, &dev, a, &u, &g);
      ck_assert_msg (bound_of (&g, &o, a, &b, &err), "%s", err.text);
      double off = b.stats.value_ns - (double)b.lower_bound_ns;
      ck_assert_msg (off < 1e-6 * b.stats.value_ns + 2 && off > -1e-6 * b.stats.value_ns - 2,
                     "kind %d at %d %%: program %.3f, proved %lld by %s", kind, percent,
                     b.stats.value_ns, (long long)b.lower_bound_ns, b.by);
      arena_free (a);
    }
}

CLAIM (whatever_the_duals_the_bound_is_below_the_optimum) {
  random_state r = random_seed (11);
  device dev = device_25 ();
  int above_zero = 0;
  for (int round = 0; round < 60; round++) {
    error err = { 0 };
    arena *a = arena_new (0);
    units u;
    gaps g;
    slots s;
    flow f;
    ilp_problem p;
    ilp_result x;
    flow_options o = {
      .dev = &dev, .host_bytes = MOST_BYTES, .classes = 1 + round % 3, .latency = true
    };
    ilp_options how = { .method = ILP_SIMPLEX };
    setting (round % 2 ? SYNTHETIC_GPT : SYNTHETIC_RESNET, 40, 20, &dev, a, &u, &g);
    ck_assert (slots_each (&g, a, &s, &err) && flow_build (&g, &s, &o, a, &f, &err) &&
               flow_problem (&f, a, &p, &err) && ilp_solve (&p, &how, a, &x, &err));
    ck_assert_int_eq (x.status, ILP_OPTIMAL);
    double best =
        ldexp (x.value, FLOW_UNIT_BITS - f.link.shift) * 1e9 / (double)f.link.rates.out_alone;
    int64_t ns, *duals = NEW (a, f.n_rows, int64_t, &err);
    int64_t noise = round % 4 == 0 ? 0 : round % 4 == 1 ? 1000 : round % 4 == 2 ? 100000 : 4000000;
    for (int32_t i = 0; i < f.n_rows; i++)
      x.y[i] += (double)random_between (&r, -noise, noise) / 1e6;
    if (round % 20 == 19)
      x.y[0] = NAN;
    bound_duals (&f, x.y, DUAL_BITS, duals);
    ck_assert (bound_exact (&f, duals, &ns));
    ck_assert_msg ((double)ns <= best * (1 + 1e-9) + 1, "%lld above %.3f", (long long)ns, best);
    if (noise == 0)
      ck_assert_msg ((double)ns >= best * (1 - 1e-6) - 1, "%lld far below %.3f", (long long)ns,
                     best);
    above_zero += noise > 0 && ns > 0;
    arena_free (a);
  }
  ck_assert_int_gt (above_zero, 0);
}

CLAIM_IN_ARENA (merging_only_weakens_the_bound) {
  device dev = device_25 ();
  units u;
  gaps g;
  bound whole, merged;
  setting (SYNTHETIC_GPT, 110, 30, &dev, a, &u, &g);
  bound_options o = { .dev = &dev, .host_bytes = MOST_BYTES, .whole_ops = 10000 };
  ck_assert_msg (bound_of (&g, &o, a, &whole, &err), "%s", err.text);
  o.whole_ops = 10;
  o.blocks = 30;
  ck_assert_msg (bound_of (&g, &o, a, &merged, &err), "%s", err.text);
  ck_assert_int_lt (merged.stats.slots, whole.stats.slots);
  ck_assert_int_le (merged.lower_bound_ns, whole.lower_bound_ns + 1000);
  ck_assert_int_ge (merged.lower_bound_ns, whole.lower_bound_ns - whole.lower_bound_ns / 100);
  ck_assert_int_gt (merged.lower_bound_ns, merged.compute_ns);
}

CLAIM (more_memory_a_faster_link_and_more_host_never_raise_the_bound) {
  for (int seed = 0; seed < suite_cases (500) / 80; seed++) {
    device dev = device_25 ();
    error err = { 0 };
    arena *a = arena_new (0);
    units u;
    gaps g;
    bound base, better;
    setting (seed % 2 ? SYNTHETIC_GPT : SYNTHETIC_RESNET, 56, 20 + seed, &dev, a, &u, &g);
    bound_options o = { .dev = &dev, .host_bytes = g.peak_bytes - g.floor_bytes };
    ck_assert_msg (bound_of (&g, &o, a, &base, &err), "%s", err.text);
    if (seed % 3 == 0) {
      int64_t more = g.room_bytes + g.pool_bytes + g.peak_bytes / 10;
      ck_assert (gaps_of (&u, dev.granule_bytes, more, a, &g, &err));
    } else if (seed % 3 == 1)
      dev.link.d2h_bytes_per_s += dev.link.d2h_bytes_per_s / 5;
    else
      o.host_bytes += o.host_bytes / 3;
    ck_assert_msg (bound_of (&g, &o, a, &better, &err), "%s", err.text);
    ck_assert_msg (better.lower_bound_ns <= base.lower_bound_ns + base.lower_bound_ns / 100000,
                   "seed %d: %lld rose to %lld", seed, (long long)base.lower_bound_ns,
                   (long long)better.lower_bound_ns);
    arena_free (a);
  }
}

/* A step of which a bound is asked for again and again, with a little more or less of something. */
typedef struct priced {
  units u;
  device dev;
  int64_t budget_bytes, host_bytes;
  arena *a;
} priced;

static bound bound_at (const priced *p, int64_t more_bytes, int64_t num, int64_t den) {
  error err = { 0 };
  device dev = p->dev;
  gaps g;
  bound b;
  bound_options o = {
    .dev = &dev, .host_bytes = p->host_bytes, .any_units = true, .whole_ops = 10000
  };
  dev.link.d2h_bytes_per_s = dev.link.d2h_bytes_per_s / den * num;
  dev.link.h2d_bytes_per_s = dev.link.h2d_bytes_per_s / den * num;
  dev.link.both_bytes_per_s = dev.link.both_bytes_per_s / den * num;
  ck_assert_msg (gaps_of (&p->u, 1, p->budget_bytes + more_bytes, p->a, &g, &err) &&
                     bound_of (&g, &o, p->a, &b, &err),
                 "%s", err.text);
  return b;
}

/* The bound falls ever more slowly, so a price lies between what was paid for the amount before and
   what is paid for the next.  False where these two are far apart: a corner, where it may be any.
 */
static bool between (const char *what, double least_ns, double price_ns, double most_ns) {
  double slack = 100 + 1e-4 * most_ns; /* of what a proof may lack */
  ck_assert_msg (least_ns <= price_ns + slack && price_ns <= most_ns + slack,
                 "%s: %.1f ns by the duals, %.1f for the next, %.1f for the last", what, price_ns,
                 least_ns, most_ns);
  return price_ns > 10000 && most_ns - least_ns < 0.02 * price_ns;
}

CLAIM (a_dual_price_is_the_slope_of_the_bound) {
  int memory = 0, link = 0, cases = 0;
  for (int i = 0; i < 24; i++) {
    error err = { 0 };
    priced p = { .dev = device_25 (), .a = arena_new (0), .host_bytes = MOST_BYTES };
    gaps g;
    trace *t = synthetic ((synthetic_kind)(i % 4), 40, (uint64_t)i + 5, p.a, &err);
    if (i % 3 == 1) /* else neither engine is slowed down by the other */
      p.dev.link.both_bytes_per_s = 27000000000;
    ck_assert_msg (t && units_of (t, NULL, 0, 1, 0, p.a, &p.u, &err) &&
                       gaps_of (&p.u, 1, INT64_MAX / 8, p.a, &g, &err),
                   "%s", err.text);
    p.budget_bytes = g.floor_bytes + (g.peak_bytes - g.floor_bytes) * (10 + i) / 60;
    int64_t bytes = 4 << 20;
    if (i % 2)
      p.host_bytes = g.peak_bytes - p.budget_bytes + 3 * bytes;
    bound now = bound_at (&p, 0, 1, 1);
    if (strcmp (now.by, "flow-lp") == 0) {
      double ns = (double)now.lower_bound_ns;
      bound less = bound_at (&p, -bytes, 1, 1), more = bound_at (&p, bytes, 1, 1);
      memory += between ("memory", ns - (double)more.lower_bound_ns,
                         now.prices.memory_ns * (double)bytes, (double)less.lower_bound_ns - ns);
      /* 1 / rate goes by equal steps: 1000/1001 as fast, and 1000/999 */
      less = bound_at (&p, 0, 1000, 1001);
      more = bound_at (&p, 0, 1000, 999);
      link += between ("link", ns - (double)more.lower_bound_ns, now.prices.link_ns / 1000,
                       (double)less.lower_bound_ns - ns);
      cases++;
    }
    arena_free (p.a);
  }
  ck_assert_int_ge (cases, 12);
  ck_assert_msg (2 * memory >= cases && 2 * link >= cases,
                 "of %d cases memory has a price in %d, the link in %d", cases, memory, link);
}

CLAIM_IN_ARENA (a_host_that_cannot_hold_what_must_leave_is_refused_at_once) {
  device dev = device_25 ();
  units u;
  gaps g;
  bound b;
  trace *t = synthetic (SYNTHETIC_GPT, 40, 5, a, &err);
  ck_assert (t && units_of (t, NULL, 0, 1, 0, a, &u, &err) &&
             gaps_of (&u, 1, INT64_MAX / 8, a, &g, &err));
  int64_t away = (g.peak_bytes - g.floor_bytes) / 2, budget = g.peak_bytes - away;
  ck_assert_msg (gaps_of (&u, 1, budget, a, &g, &err), "%s", err.text);
  bound_options o = { .dev = &dev, .host_bytes = away, .any_units = true };
  ck_assert_msg (bound_of (&g, &o, a, &b, &err), "%s", err.text);
  o.host_bytes = away - 1;
  ck_assert (!bound_of (&g, &o, a, &b, &err));
  ck_assert_int_eq (err.code, ERR_infeasible);
  ck_assert_ptr_nonnull (strstr (err.text, "the host has to hold"));
}

CLAIM (an_abort_of_the_solver_is_an_error_and_leaves_it_usable) {
  double low[2] = { 0, 0 }, high[2] = { 10, 10 }, cost[2] = { 1, 2 };
  double row_low[1] = { 4 }, row_high[1] = { HUGE_VAL }, coef[2] = { 1, 1 };
  int64_t start[3] = { 0, 1, 2 };
  int32_t row[2] = { 0, 0 };
  ilp_problem p = { .n_rows = 1,
                    .n_columns = 2,
                    .row_low = row_low,
                    .row_high = row_high,
                    .low = low,
                    .high = high,
                    .cost = cost,
                    .column_start = start,
                    .entry_row = row,
                    .entry_coef = coef };
  ilp_options o = { .method = ILP_SIMPLEX };
  for (int i = 0; i < 3; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    ilp_result r;
    row[1] = 7; /* a row that is not there: GLPK calls that misuse and aborts */
    ck_assert (!ilp_solve (&p, &o, a, &r, &err));
    ck_assert_int_eq (err.code, ERR_memory);
    ck_assert_ptr_nonnull (strstr (err.text, "gave up"));
    row[1] = 0;
    err = (error){ 0 };
    ck_assert_msg (ilp_solve (&p, &o, a, &r, &err), "%s", err.text);
    ck_assert_int_eq (r.status, ILP_OPTIMAL);
    ck_assert (fabs (r.value - 4) < 1e-9 && fabs (r.y[0] - 1) < 1e-9);
    arena_free (a);
  }
}

CLAIM_IN_ARENA (a_memory_limit_is_an_error) {
  device dev = device_25 ();
  units u;
  gaps g;
  slots s;
  flow f;
  ilp_problem p;
  ilp_result x;
  flow_options o = { .dev = &dev, .host_bytes = MOST_BYTES, .classes = 3, .latency = true };
  ilp_options how = { .method = ILP_SIMPLEX, .limit_bytes = 1 << 20 };
  setting (SYNTHETIC_GPT, 400, 20, &dev, a, &u, &g);
  ck_assert (slots_each (&g, a, &s, &err) && flow_build (&g, &s, &o, a, &f, &err) &&
             flow_problem (&f, a, &p, &err));
  ck_assert (!ilp_solve (&p, &how, a, &x, &err));
  ck_assert_int_eq (err.code, ERR_memory);
}

CLAIM_IN_ARENA (the_integer_form_finds_the_best_whole_answer) {
  /* max 5x + 4y + 3z, 2x + 3y + z <= 5, 4x + y + 2z <= 11, 3x + 4y + 2z <= 8; whole: 13 */
  double low[3] = { 0 }, high[3] = { 9, 9, 9 }, cost[3] = { -5, -4, -3 };
  double row_low[3] = { -HUGE_VAL, -HUGE_VAL, -HUGE_VAL }, row_high[3] = { 5, 11, 8 };
  double coef[9] = { 2, 4, 3, 3, 1, 4, 1, 2, 2 };
  int64_t start[4] = { 0, 3, 6, 9 };
  int32_t row[9] = { 0, 1, 2, 0, 1, 2, 0, 1, 2 };
  bool whole[3] = { true, true, true };
  ilp_problem p = { .n_rows = 3,
                    .n_columns = 3,
                    .row_low = row_low,
                    .row_high = row_high,
                    .low = low,
                    .high = high,
                    .cost = cost,
                    .column_start = start,
                    .entry_row = row,
                    .entry_coef = coef,
                    .whole = whole };
  ilp_options o = { .method = ILP_INTEGER };
  ilp_result r;
  ck_assert_msg (ilp_solve (&p, &o, a, &r, &err), "%s", err.text);
  ck_assert_int_eq (r.status, ILP_OPTIMAL);
  ck_assert (fabs (r.value + 13) < 1e-9);
}

/* One tensor that must be away over one op: out and in both stall, but for what the ops hide. */
CLAIM_IN_ARENA (one_tensor_stalls_as_long_as_its_copies_take) {
  trace_builder *b = build_new (a, "one", 1, &err);
  build_tensor (b, "x", 512000, TENSOR_ACTIVATION);
  for (int k = 0; k < 5; k++) {
    build_op (b, "op", OP_FORWARD, 100000);
    if (k == 0)
      build_write (b, 0);
    if (k == 4)
      build_read (b, 0);
    if (k == 2)
      build_op_at (b, 2)->workspace_bytes = 512000;
  }
  trace *t = build_finish (b, &err);
  device dev = { .link = { 1000000000, 2000000000, 3000000000, 1000 }, .share_ppm = 1000000 };
  units u;
  gaps g;
  bound x;
  bound_options o = { .dev = &dev, .host_bytes = MOST_BYTES };
  ck_assert (t && units_of (t, NULL, 0, 512, 0, a, &u, &err) &&
             gaps_of (&u, 512, 512000, a, &g, &err) && bound_of (&g, &o, a, &x, &err));
  /* out: 513 us, of which op 1 hides 100; in: 257 us, of which op 3 hides 100 */
  ck_assert_int_le (x.lower_bound_ns, 500000 + 413000 + 157000);
  ck_assert_int_ge (x.lower_bound_ns, 500000 + 413000 + 157000 - 2);
  ck_assert_str_eq (x.by, "flow-lp");
  ck_assert (fabs (x.share[0] - 1) < 1e-6);
}

int main (void) {
  return suite_run ("bound", 60);
}
