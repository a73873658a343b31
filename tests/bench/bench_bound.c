/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast the certified bound is, and how large its program: one row a trace and budget.
   bench_bound [KIND OPS [CLASSES [WHOLE_OPS]]] prints columns; KIND: gpt resnet random shuffled.
   CLASSES: not the bound that solve asks for, of plans with whatever granules and groups, but that
   of plans with granules of 2 MiB and none shared, whose units are told apart in so many classes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "solver/flow/bound.h"
#include "tests/synthetic.h"

static double now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say (void *context, log_level level, const char *text) {
  (void)context;
  if (level >= LOG_PROGRESS)
    fprintf (stderr, "  %s\n", text);
}

static bool run (const char *name, synthetic_kind kind, int32_t ops, int classes, int32_t whole,
                 error *err) {
  static const int percents[] = { 40, 60, 80 };
  logger log = { say, NULL };
  device dev = { .name = "bench",
                 .memory_bytes = MOST_BYTES,
                 .granule_bytes = 2 << 20,
                 .link = { 25000000000, 25000000000, 50000000000, 10000 },
                 .host_bytes = MOST_BYTES,
                 .share_ppm = 1000000 };
  arena *a = arena_new (0);
  if (!a)
    return error_set (err, ERR_memory, "out of memory");
  trace *t = synthetic (kind, ops, 1, a, err);
  units u;
  int64_t granule = classes ? dev.granule_bytes : 1;
  bool ok = t && units_of (t, NULL, 0, granule, classes ? 1 << 20 : 0, a, &u, err);
  for (int i = 0; ok && i < 3; i++) {
    gaps g;
    bound b;
    bound_options o = { .dev = &dev,
                        .host_bytes = dev.host_bytes,
                        .classes = classes,
                        .any_units = !classes,
                        .whole_ops = whole,
                        .log = getenv ("VERBOSE") ? &log : NULL };
    ok = gaps_of (&u, granule, INT64_MAX / 8, a, &g, err) &&
         gaps_of (&u, granule, g.peak_bytes / 100 * percents[i], a, &g, err);
    if (ok && g.floor_bytes > g.room_bytes + g.pool_bytes) {
      printf ("%-9s %7d %3d %%  below the floor\n", name, t->n_ops, percents[i]);
      continue;
    }
    double start = now_s ();
    ok = ok && bound_of (&g, &o, a, &b, err);
    if (!ok)
      break;
    struct rusage usage;
    getrusage (RUSAGE_SELF, &usage);
    printf ("%-9s %7d %3d %%  %6.2f s  %2d rounds %6d slots %6d rows %7d columns  compute %9.3f s"
            "  program %9.4f  proved %9.4f  %-8s %5ld MB\n",
            name, t->n_ops, percents[i], now_s () - start, b.stats.rounds, b.stats.slots,
            b.stats.rows, b.stats.columns, (double)b.compute_ns / 1e9, b.stats.value_ns / 1e9,
            (double)b.lower_bound_ns / 1e9, b.by, usage.ru_maxrss / 1024);
    printf ("{\"bench\":\"bound\",\"trace\":\"%s\",\"ops\":%d,\"percent\":%d,\"seconds\":%.3f,"
            "\"slots\":%d,\"rows\":%d,\"compute_ns\":%lld,\"lower_bound_ns\":%lld,\"by\":\"%s\"}\n",
            name, t->n_ops, percents[i], now_s () - start, b.stats.slots, b.stats.rows,
            (long long)b.compute_ns, (long long)b.lower_bound_ns, b.by);
    fflush (stdout);
  }
  arena_free (a);
  return ok;
}

int main (int argc, char **argv) {
  static const char *const names[] = { "gpt", "resnet", "random", "shuffled" };
  error err = { 0 };
  bool ok = true;
  int classes = argc > 3 ? (int)strtol (argv[3], NULL, 10) : 0;
  int32_t whole = argc > 4 ? (int32_t)strtol (argv[4], NULL, 10) : 0;
  for (int kind = 0; ok && kind < 4; kind++) {
    if (argc > 2 && strcmp (argv[1], names[kind]) == 0)
      ok = run (names[kind], (synthetic_kind)kind, (int32_t)strtol (argv[2], NULL, 10), classes,
                whole, &err);
    for (int32_t ops = 1000; argc <= 2 && ok && ops <= 100000; ops *= 10)
      ok = run (names[kind], (synthetic_kind)kind, ops, classes, whole, &err);
  }
  char line[1200];
  if (!ok)
    fprintf (stderr, "%s\n", error_line (&err, line, sizeof line));
  return ok ? 0 : 1;
}
