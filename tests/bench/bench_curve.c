/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Curves of 500 random traces, held against what must be true of any, and how long curves take.
   bench_curve: the random ones. bench_curve NETWORK BATCH DEVICE POINTS [PERCENT]: that curve, and
   the time of its hardest point by itself, from PERCENT of the way between floor and peak on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "solver/fleet/curve.h"
#include "tests/curve_case.h"
#include "trace/zoo/zoo.h"

enum { CASES = 500 };

static double now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int random_curves (void) {
  curve_seen seen = { 0 };
  char text[600];
  int failed = 0;
  double start = now_s ();
  for (uint64_t seed = 1000; seed < 1000 + CASES; seed++)
    if (!curve_holds (seed, &seen, text, sizeof text)) {
      printf ("seed %d: %s\n", (int)seed, text);
      failed++;
    }
  printf ("%d curves: %d points, %d stall, %d taken from less memory, %d without a plan; smallest "
          "memories with %d plans and %d bounds; %d do not hold; %.1f s\n",
          CASES, seen.points, seen.stalled, seen.reused, seen.without_plan, seen.solves,
          seen.bounds, failed, now_s () - start);
  return failed > 0;
}

static int one_curve (char **argv, int percent) {
  arena *a = arena_new (0);
  error err = { 0 };
  device d;
  char *end, path[4096];
  curve v = { 0 };
  int64_t *budgets;
  int32_t n;
  const char *folder = getenv ("FERRY_DATADIR");
  snprintf (path, sizeof path, "%s/devices/%s.json", folder ? folder : "data", argv[3]);
  zoo_request r = {
    .name = argv[1], .batch = strtol (argv[2], &end, 10), .device = &d, .optimizer = ZOO_MOMENTUM
  };
  trace *t = device_load (path, NULL, a, &d, &err) ? zoo_trace (&r, a, &err) : NULL;
  curve_options o = { .device = &d, .seed = 1 };
  o.host_bytes = (int64_t)1 << 42;
  d.host_bytes = o.host_bytes;
  double start = now_s ();
  if (!t || !curve_range (t, &d, a, &v.floor_bytes, &v.peak_bytes, &err) ||
      !curve_even (v.floor_bytes + units_scale (v.peak_bytes - v.floor_bytes, percent, 100),
                   v.peak_bytes, d.granule_bytes, (int32_t)strtol (argv[4], &end, 10), a, &budgets,
                   &n, &err) ||
      !curve_of (t, &o, budgets, n, a, &v, &err)) {
    printf ("%s\n", err.text);
    return 1;
  }
  double whole = now_s () - start, hardest = 0, alone = 0;
  int32_t searched = 0;
  for (int32_t i = 0; i < v.count; i++) {
    if (!v.points[i].searched)
      continue;
    curve one;
    searched++;
    start = now_s ();
    if (!curve_of (t, &o, &v.points[i].budget_bytes, 1, a, &one, &err))
      return 1;
    double took = now_s () - start;
    alone += took;
    hardest = took > hardest ? took : hardest;
  }
  printf ("%s b%s on %s: %d points, %d of them searched, %.1f s; the hardest by itself %.1f s, all "
          "by themselves %.1f s; so %.1f times the hardest\n",
          argv[1], argv[2], argv[3], v.count, searched, whole, hardest, alone, whole / hardest);
  return 0;
}

int main (int argc, char **argv) {
  return argc > 4 ? one_curve (argv, argc > 5 ? (int)strtol (argv[5], NULL, 10) : 0)
                  : random_curves ();
}
