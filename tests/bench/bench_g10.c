/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The G10 artifact's two instances under its own machine, with the host as the only other place:
   our plan and bound beside the totals it published, which used an SSD too.  Its kernels are slow,
   so copies hide too easily; hence also with kernel times divided by 5 and by 20. bench_g10 [NAME
   [FASTER]]; TICKS in the environment for another limit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/policy/policy.h"
#include "solver/solve.h"
#include "tests/bench/bench.h"
#include "tests/g10.h"

typedef struct task {
  const g10_published *instance;
  int faster;
} task;

static const char *const policies[] = { "g10", "lru", "flashneuron", "greedy-largest" };
enum { N_POLICIES = sizeof policies / sizeof *policies };

typedef struct answer {
  int64_t unswapped_ns, bound_ns, step_ns, peak_bytes, crossing_bytes;
  int64_t policy_ns[N_POLICIES]; /* 0: it does not fit */
  double seconds;
  char found_by[24];
} answer;

static bool solve_task (const void *context, void *into, error *err) {
  const task *want = context;
  answer *out = into;
  device dev = g10_device ();
  arena *a = arena_new (0);
  trace *t = a ? g10_trace (want->instance, want->faster, a, err) : NULL;
  if (!t)
    return false;
  const char *ticks = getenv ("TICKS");
  solve_options o = { .device = &dev,
                      .budget_bytes = dev.memory_bytes,
                      .host_bytes = dev.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = ticks ? strtoll (ticks, NULL, 10) : 0 };
  solution s;
  double from = bench_cpu_s ();
  bool ok = solve (t, &o, a, &s, err);
  out->seconds = bench_cpu_s () - from;
  if (ok) {
    const predicted *cost = &s.plan->predicted;
    out->unswapped_ns = cost->baseline_ns;
    out->bound_ns = s.bound.lower_bound_ns;
    out->step_ns = cost->step_ns;
    out->peak_bytes = cost->peak_bytes;
    out->crossing_bytes = cost->d2h_bytes;
    snprintf (out->found_by, sizeof out->found_by, "%s", s.plan->certificate.found_by);
  }
  policy_request r = {
    .trace = t, .device = &dev, .budget_bytes = dev.memory_bytes, .host_bytes = dev.host_bytes
  };
  for (int i = 0; ok && i < N_POLICIES; i++) {
    policy_answer p;
    ok = policy_run (policy_named (policies[i]), &r, a, &p, err);
    out->policy_ns[i] = ok && p.fits ? p.cost.step_ns : 0;
  }
  arena_free (a);
  return ok;
}

static void print_published (const char *who, int64_t cycles, int64_t ideal, const char *how) {
  printf ("  %-34s %15lld  %8.4f %%  %s\n", who, (long long)cycles,
          100.0 * (double)cycles / (double)ideal - 100, how);
}

static void print (const task *t, const answer *s) {
  const g10_published *g = t->instance;
  int64_t ideal = g10_cycles (s->unswapped_ns);
  printf ("%s, kernel times divided by %d: cycles of 1.2 GHz, over the unswapped time\n", g->name,
          t->faster);
  if (t->faster == 1) {
    print_published ("published: ideal", g->ideal, ideal, "");
    print_published ("published: G10", g->g10, ideal, "host and SSD");
    print_published ("published: deepUM", g->deepum, ideal, "host only in effect");
    print_published ("published: LRU", g->lru, ideal, "host only in effect");
    print_published ("published: FlashNeuron", g->flashneuron, ideal, "SSD only");
  }
  print_published ("unswapped", ideal, ideal, "host only, as all below");
  print_published ("lower bound", g10_cycles (s->bound_ns), ideal, "");
  print_published ("ferry", g10_cycles (s->step_ns), ideal, s->found_by);
  for (int i = 0; i < N_POLICIES; i++)
    if (s->policy_ns[i])
      print_published (policies[i], g10_cycles (s->policy_ns[i]), ideal, "as ferry has it");
    else
      printf ("  %-34s does not fit\n", policies[i]);
  printf ("  gap to the bound %.4f %%, %.2f s, %.1f GiB each way a step, %.2f GiB of the device\n",
          100.0 * (double)s->step_ns / (double)s->bound_ns - 100, s->seconds,
          (double)s->crossing_bytes / (1 << 30), (double)s->peak_bytes / (1 << 30));
  printf ("{\"bench\":\"g10\",\"instance\":\"%s\",\"faster\":%d,\"unswapped_ns\":%lld,"
          "\"lower_bound_ns\":%lld,\"step_ns\":%lld,\"seconds\":%.3f,\"published_g10_cycles\":%lld,"
          "\"policies\":{",
          g->name, t->faster, (long long)s->unswapped_ns, (long long)s->bound_ns,
          (long long)s->step_ns, s->seconds, (long long)g->g10);
  for (int i = 0; i < N_POLICIES; i++)
    printf ("%s\"%s\":%lld", i ? "," : "", policies[i], (long long)s->policy_ns[i]);
  printf ("}}\n");
}

int main (int argc, char **argv) {
  static const int faster[] = { 1, 5, 20 };
  const char *name = bench_argument (argc, argv, 1), *by = bench_argument (argc, argv, 2);
  if (!getenv ("FERRY_REAL_TRACES")) {
    puts ("skipped: FERRY_REAL_TRACES is not set");
    return 0;
  }
  bool ok = true;
  for (int i = 0; i < G10_INSTANCES; i++)
    for (size_t j = 0; j < sizeof faster / sizeof *faster; j++) {
      task t = { &g10_instances[i], faster[j] };
      answer s;
      if ((name && !strstr (t.instance->name, name)) || (by && strtol (by, NULL, 10) != t.faster))
        continue;
      if (bench_row (solve_task, &t, &s, sizeof s, 0).ok)
        print (&t, &s);
      else
        ok = false;
    }
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
