/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile is never quite true.  Each op's time is multiplied by 1 + x u, u uniform in [-1, 1]:
   (1) plans made from such a trace, run (simulated) on the true one, beside the plan made from the
       true one: what a wrong profile costs;
   (2) the plan made from the true trace, run on many noisy ones: what a plan costs on the days
       after;
   (3) what `solve` finds where it is told of the second noise, and takes the best 95th percentile
       of the plans that are as good: how far these lie apart, and what it takes.
   bench_noise [NETWORK [GB_PER_S [PERCENT]]]; TICKS in the environment for another limit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/solve.h"
#include "tests/bench/bench.h"
#include "trace/simulate/noise.h"
#include "trace/simulate/simulate.h"
#include "trace/zoo/zoo.h"

enum { PLANS = 11, RUNS = 100, NOISES = 3 };
static const int noises[NOISES] = { 5, 10, 25 };

typedef struct task {
  const char *network;
  int64_t batch;
  int gb_per_s, percent;
} task;

static const task tasks[] = {
  { "vgg16", 256, 12, 60 },
  { "resnet50", 256, 12, 50 },
  { "gpt2-xl", 8, 25, 60 },
  { "densenet121", 128, 25, 60 },
};

typedef struct spread {
  double least, median, p95, most; /* percent */
} spread;

typedef struct answer {
  int32_t ops;
  int64_t bound_ns, step_ns;
  spread wrong[NOISES], later[NOISES], beside[NOISES];
  robustness chosen;
  int64_t chosen_step_ns;
  double chosen_p95, first_p95; /* at the second noise, on days that the choice has not seen */
  double plain_s, chosen_s;
} answer;

static int by_value (const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

/* Nearest rank. */
static spread spread_of (double *at, int n) {
  qsort (at, (size_t)n, sizeof *at, by_value);
  return (spread){ at[0], at[(n - 1) / 2], at[(n * 95 + 99) / 100 - 1], at[n - 1] };
}

static trace *noisy (const trace *t, int percent, uint64_t seed, arena *a, error *err) {
  trace *out = NEW (a, 1, trace, err);
  noise_options o = { percent, 1, seed };
  return out && noise_day (t, &o, 0, a, out, err) ? out : NULL;
}

/* The step of p's orders, waits and places on t, or -1. */
static int64_t cost_on (const trace *t, const plan *p, arena *a, error *err) {
  predicted cost;
  return simulate_plan (t, p, a, &cost, err) ? cost.step_ns : -1;
}

/* What it takes over compute alone, with the times of that day. */
static double slower (int64_t step_ns, const trace *t) {
  return 100.0 * (double)step_ns / (double)trace_total_ns (t) - 100;
}

static bool wrong_profiles (const trace *t, const solve_options *o, int percent, int64_t true_ns,
                            spread *out, error *err) {
  double lost[PLANS];
  for (int i = 0; i < PLANS; i++) {
    arena *a = arena_new (0);
    trace *seen = a ? noisy (t, percent, (uint64_t)(1000 * percent + i), a, err) : NULL;
    solution s;
    int64_t ns = seen && solve (seen, o, a, &s, err) ? cost_on (t, s.plan, a, err) : -1;
    lost[i] = 100.0 * (double)ns / (double)true_ns - 100;
    arena_free (a);
    if (ns < 0)
      return false;
  }
  *out = spread_of (lost, PLANS);
  return true;
}

static bool later_days (const trace *t, const plan *p, int percent, spread *plan_costs,
                        spread *over, error *err) {
  double cost[RUNS], ratio[RUNS];
  double usual = (double)p->predicted.step_ns / (double)trace_total_ns (t);
  for (int i = 0; i < RUNS; i++) {
    arena *a = arena_new (0);
    trace *day = a ? noisy (t, percent, (uint64_t)(77777 + i), a, err) : NULL;
    int64_t ns = day ? cost_on (day, p, a, err) : -1;
    if (ns >= 0) {
      cost[i] = slower (ns, day);
      ratio[i] = 100.0 * (double)ns / (double)trace_total_ns (day) / usual - 100;
    }
    arena_free (a);
    if (ns < 0)
      return false;
  }
  *plan_costs = spread_of (cost, RUNS);
  *over = spread_of (ratio, RUNS);
  return true;
}

static bool choose (const trace *t, const solve_options *o, answer *out, error *err) {
  arena *a = arena_new (0);
  solve_options told = *o;
  solution s;
  spread costs, over;
  told.noise_percent = noises[1];
  double from = bench_cpu_s ();
  bool ok = a && solve (t, &told, a, &s, err);
  out->chosen_s = bench_cpu_s () - from;
  if (ok) {
    out->chosen = s.robust;
    out->chosen_step_ns = s.plan->predicted.step_ns;
    ok = later_days (t, s.plan, noises[1], &costs, &over, err);
    out->chosen_p95 = costs.p95;
    out->first_p95 = out->later[1].p95;
  }
  arena_free (a);
  return ok;
}

static bool run (const void *context, void *into, error *err) {
  const task *want = context;
  answer *out = into;
  int64_t rate = want->gb_per_s * (int64_t)1000000000;
  device dev = { .name = "bench",
                 .memory_bytes = (int64_t)1 << 46,
                 .granule_bytes = 2 << 20,
                 .link = { rate, rate, 2 * rate, 10000 },
                 .host_bytes = (int64_t)1 << 46,
                 .share_ppm = 1000000,
                 .has_roofline = true,
                 .roofline = { .fp32_flops = 10970000000000, .memory_bytes_per_s = 480000000000 } };
  zoo_request z = { .name = want->network,
                    .batch = want->batch,
                    .dtype = DTYPE_FP32,
                    .optimizer = ZOO_MOMENTUM,
                    .device = &dev };
  arena *a = arena_new (0);
  trace *t = a ? zoo_trace (&z, a, err) : NULL;
  units u;
  gaps g;
  solution s;
  if (!t || !units_of (t, NULL, 0, 1, 0, a, &u, err) || !gaps_of (&u, 1, INT64_MAX / 8, a, &g, err))
    return false;
  const char *ticks = getenv ("TICKS");
  solve_options o = { .device = &dev,
                      .budget_bytes = g.peak_bytes / 100 * want->percent,
                      .host_bytes = dev.host_bytes,
                      .limit_ticks = ticks ? strtoll (ticks, NULL, 10) : 1000000 };
  double from = bench_cpu_s ();
  if (!solve (t, &o, a, &s, err))
    return false;
  out->plain_s = bench_cpu_s () - from;
  out->ops = t->n_ops;
  out->bound_ns = s.bound.lower_bound_ns;
  out->step_ns = s.plan->predicted.step_ns;
  for (int i = 0; i < NOISES; i++)
    if (!wrong_profiles (t, &o, noises[i], out->step_ns, &out->wrong[i], err) ||
        !later_days (t, s.plan, noises[i], &out->later[i], &out->beside[i], err))
      return false;
  bool ok = choose (t, &o, out, err);
  arena_free (a);
  return ok;
}

static void print_spread (const char *what, int noise, const spread *s) {
  printf ("  %-46s %2d %%: least %7.3f  median %7.3f  95th %7.3f  most %7.3f %%\n", what, noise,
          s->least, s->median, s->p95, s->most);
}

static void json_spread (const char *key, const spread *s) {
  printf ("\"%s\":[%.4f,%.4f,%.4f,%.4f]", key, s->least, s->median, s->p95, s->most);
}

static void print (const task *t, const answer *s) {
  printf ("%s b%lld, %d ops, %d GB/s, %d %% of peak: step %.4f s, gap %.3f %%\n", t->network,
          (long long)t->batch, s->ops, t->gb_per_s, t->percent, (double)s->step_ns / 1e9,
          100.0 * (double)s->step_ns / (double)s->bound_ns - 100);
  for (int i = 0; i < NOISES; i++)
    print_spread ("from a noisy profile, on the true trace: lost", noises[i], &s->wrong[i]);
  for (int i = 0; i < NOISES; i++)
    print_spread ("from the true one, on noisy days: over usual", noises[i], &s->beside[i]);
  const robustness *n = &s->chosen;
  printf (
      "  told of %d %%: of %d plans as good the 95th of %d days is %.3f %% over compute, of the"
      " fastest %.3f %%;\n  on 100 other days %.3f and %.3f %%; step %+.4f %%; %.2f s instead of"
      " %.2f\n",
      n->percent, n->plans, n->days, (double)n->p95_ppm / 1e4, (double)n->fastest_p95_ppm / 1e4,
      s->chosen_p95, s->first_p95, 100.0 * (double)s->chosen_step_ns / (double)s->step_ns - 100,
      s->chosen_s, s->plain_s);
  printf ("{\"bench\":\"noise\",\"network\":\"%s\",\"gb_per_s\":%d,\"percent\":%d,\"step_ns\":%lld,"
          "\"lower_bound_ns\":%lld,\"noise\":{",
          t->network, t->gb_per_s, t->percent, (long long)s->step_ns, (long long)s->bound_ns);
  for (int i = 0; i < NOISES; i++) {
    printf ("%s\"%d\":{", i ? "," : "", noises[i]);
    json_spread ("lost_by_profile", &s->wrong[i]);
    putchar (',');
    json_spread ("over_compute", &s->later[i]);
    putchar (',');
    json_spread ("over_usual", &s->beside[i]);
    putchar ('}');
  }
  printf ("},\"chosen\":{\"plans\":%d,\"p95_ppm\":%lld,\"fastest_p95_ppm\":%lld,"
          "\"other_days\":[%.4f,%.4f],\"step_ns\":%lld}}\n",
          n->plans, (long long)n->p95_ppm, (long long)n->fastest_p95_ppm, s->chosen_p95,
          s->first_p95, (long long)s->chosen_step_ns);
}

int main (int argc, char **argv) {
  const char *network = bench_argument (argc, argv, 1), *speed = bench_argument (argc, argv, 2);
  const char *percent = bench_argument (argc, argv, 3);
  bool ok = true;
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
    task t = tasks[i];
    answer s;
    if (network && strcmp (network, t.network) != 0)
      continue;
    t.gb_per_s = speed ? (int)strtol (speed, NULL, 10) : t.gb_per_s;
    t.percent = percent ? (int)strtol (percent, NULL, 10) : t.percent;
    if (bench_row (run, &t, &s, sizeof s, 0).ok)
      print (&t, &s);
    else
      ok = false;
  }
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
