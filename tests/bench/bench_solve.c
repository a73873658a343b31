/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How close solve comes to its bound: networks of the zoo, a card of 11 TFLOP/s, 10 us a copy, each
   link carrying both ways at once.
   bench_solve [NETWORK [BATCH [GB_PER_S [PERCENT]]]] prints columns and JSON lines; `-` stands for
   all. In the environment: TICKS, another limit; TUNE, as --tune takes it; VERBOSE, for progress.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/bench/solve_cases.h"

enum { ANSWERS = SOLVE_NETWORKS * SOLVE_LINKS * SOLVE_PERCENTS };

typedef struct answer {
  char name[64];
  double gap;
} answer;

static double now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say (void *context, log_level level, const char *text) {
  (void)context;
  (void)level;
  fprintf (stderr, "  %s\n", text);
}

static int by_gap (const void *x, const void *y) {
  double a = ((const answer *)x)->gap, b = ((const answer *)y)->gap;
  return a > b ? -1 : a < b;
}

static bool solve_one (const solve_network *r, const trace *t, const device *dev, int percent,
                       answer *into, int *n, error *err) {
  arena *a = arena_new (0);
  error why = { 0 };
  units u;
  gaps g;
  logger log = { say, NULL };
  const char *ticks = getenv ("TICKS"), *tune = getenv ("TUNE");
  tuning by = tuning_shipped;
  solution s;
  bool ok = a && (!tune || tuning_read (&by, tune, &why)) &&
            units_of (t, NULL, 0, dev->granule_bytes, 1 << 20, a, &u, &why) &&
            gaps_of (&u, dev->granule_bytes, INT64_MAX / 8, a, &g, &why);
  int64_t speed = dev->link.d2h_bytes_per_s / 1000000000;
  solve_options o = { .device = dev,
                      .budget_bytes = ok ? g.peak_bytes / 100 * percent : 0,
                      .host_bytes = dev->host_bytes,
                      .limit_ticks = ticks ? strtoll (ticks, NULL, 10) : 0,
                      .log = getenv ("VERBOSE") ? &log : NULL,
                      .tuning = &by };
  double from = now_s ();
  if (ok)
    ok = solve (t, &o, a, &s, &why);
  double seconds = now_s () - from;
  if (!ok && (why.code == ERR_infeasible || why.code == ERR_limit)) {
    printf ("%-12s %5d ops %3d GB/s %3d %%  %s\n", r->name, t->n_ops, (int)speed, percent,
            why.text);
  } else if (ok) {
    double bound_s = (double)s.bound.lower_bound_ns / 1e9;
    double gap = s.plan->certificate.gap * 100;
    snprintf (into[*n].name, sizeof into->name, "%s %d GB/s %d %%", r->name, (int)speed, percent);
    into[(*n)++].gap = gap;
    printf ("%-12s %5d ops %3d GB/s %3d %%  compute %8.4f s  bound %8.4f s  plan %8.4f s  gap"
            " %6.3f %%  %6.2f s  %6lld tried  %4lldM ticks  by %s\n",
            r->name, t->n_ops, (int)speed, percent, (double)s.bound.compute_ns / 1e9, bound_s,
            (double)s.plan->predicted.step_ns / 1e9, gap, seconds, (long long)s.candidates,
            (long long)s.ticks / 1000000, s.plan->certificate.found_by);
    printf ("{\"bench\":\"solve\",\"network\":\"%s\",\"batch\":%lld,\"ops\":%d,\"gb_per_s\":%d,"
            "\"percent\":%d,\"lower_bound_ns\":%lld,\"step_ns\":%lld,\"seconds\":%.3f,"
            "\"ticks\":%lld}\n",
            r->name, (long long)r->batch, t->n_ops, (int)speed, percent,
            (long long)s.bound.lower_bound_ns, (long long)s.plan->predicted.step_ns, seconds,
            (long long)s.ticks);
  } else {
    *err = why;
  }
  fflush (stdout);
  arena_free (a);
  return ok || why.code == ERR_infeasible || why.code == ERR_limit;
}

static bool run (const solve_network *r, int64_t only_speed, int only_percent, answer *into, int *n,
                 error *err) {
  device dev = solve_card (solve_links[0]);
  arena *a = arena_new (0);
  trace *t = a ? solve_trace (r, &dev, a, err) : NULL;
  bool ok = t != NULL;
  for (int i = 0; ok && i < SOLVE_LINKS; i++)
    for (int j = 0; ok && j < SOLVE_PERCENTS; j++) {
      dev = solve_card (solve_links[i]);
      if ((!only_speed || only_speed == solve_links[i]) &&
          (!only_percent || only_percent == solve_percents[j]))
        ok = solve_one (r, t, &dev, solve_percents[j], into, n, err);
    }
  arena_free (a);
  return ok;
}

static const char *argument (int argc, char **argv, int i) {
  return argc > i && strcmp (argv[i], "-") != 0 ? argv[i] : NULL;
}

int main (int argc, char **argv) {
  const char *network = argument (argc, argv, 1), *batch = argument (argc, argv, 2);
  const char *speed = argument (argc, argv, 3), *percent = argument (argc, argv, 4);
  static answer answers[ANSWERS];
  int n = 0;
  error err = { 0 };
  bool ok = true;
  for (int i = 0; ok && i < SOLVE_NETWORKS; i++) {
    solve_network r = solve_networks[i];
    if (network && strcmp (network, r.name) != 0)
      continue;
    r.batch = batch ? strtoll (batch, NULL, 10) : r.batch;
    ok = run (&r, speed ? strtoll (speed, NULL, 10) : 0,
              percent ? (int)strtol (percent, NULL, 10) : 0, answers, &n, &err);
  }
  if (n > 0) {
    qsort (answers, (size_t)n, sizeof *answers, by_gap);
    printf ("%d plans, median gap %.3f %%, 90th %.3f %%, worst:\n", n, answers[n / 2].gap,
            answers[n / 10].gap);
    for (int i = 0; i < n && i < 5; i++)
      printf ("  %6.3f %%  %s\n", answers[i].gap, answers[i].name);
  }
  char line[1200];
  if (!ok)
    fprintf (stderr, "%s\n", error_line (&err, line, sizeof line));
  return ok ? 0 : 1;
}
