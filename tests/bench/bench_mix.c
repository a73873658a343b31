/* Sections and recompute in tables: each figure the slowdown over compute without any limit of an
   executable plan that check has passed, or the bound beside it.
   bench_mix vgg: sections and swapping, level by level and depth first, on the TITAN X.
   bench_mix mix NETWORK BATCH: swap alone, recompute alone, greedy mix, both; bf16, H200, 50 GB/s.
   Both need the folder of device files as the last operand; without any, some of both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "solver/recompute.h"
#include "solver/solve.h"
#include "trace/zoo/zoo.h"

static double now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool device_of (const char *folder, const char *name, arena *a, device *d, error *err) {
  char path[4096];
  snprintf (path, sizeof path, "%s/%s.json", folder, name);
  return device_load (path, NULL, a, d, err);
}

static void cell (const trace *t, const solve_options *o, const char *name) {
  arena *a = arena_new (0);
  error err = { 0 };
  solution s;
  double start = now_s (), compute = (double)trace_total_ns (t);
  if (!a || !solve (t, o, a, &s, &err))
    printf ("  %-22s none: %s\n", name, err.text);
  else
    printf ("  %-22s %.4f  bound %.4f (%s)  %d sections in %lld, %d entries, %d moves  %.1f s\n",
            name, (double)s.plan->predicted.step_ns / compute,
            (double)s.bound.lower_bound_ns / compute, s.bound.by, s.plan->n_sections,
            s.plan->n_sections ? (long long)s.plan->sections[0].parts : 1, s.plan->n_recomputes,
            s.plan->n_moves, now_s () - start);
  fflush (stdout);
  arena_free (a);
}

static bool vgg (const char *folder, arena *a, error *err) {
  static const int64_t cells[][2] = { { 256, 4 }, { 256, 2 }, { 512, 4 }, { 512, 2 } };
  device d;
  if (!device_of (folder, "titanx-pascal", a, &d, err))
    return false;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
    zoo_request r = { .name = "vgg16",
                      .batch = cells[i][0],
                      .dtype = DTYPE_FP32,
                      .optimizer = ZOO_MOMENTUM,
                      .device = &d };
    trace *t = zoo_trace (&r, a, err);
    if (!t)
      return false;
    solve_options o = { .device = &d,
                        .budget_bytes = cells[i][1] << 30,
                        .host_bytes = d.host_bytes,
                        .sections = SECTIONS_AUTO };
    printf ("vgg16 batch %lld in %lld GiB\n", (long long)cells[i][0], (long long)cells[i][1]);
    o.section_orders = ORDERS_LEVEL;
    cell (t, &o, "level by level");
    o.section_orders = ORDERS_DEPTH;
    cell (t, &o, "depth first");
  }
  return true;
}

/* The greedy prefixes alone, without search. */
static void greedy (const trace *t, const solve_options *o) {
  arena *a = arena_new (0);
  recompute_result r;
  error err = { 0 };
  if (a && recompute_search (t, NULL, o, NULL, 1000, a, &r, &err) &&
      r.greedy_value.step_ns != INT64_MAX)
    printf ("  %-22s %.4f  %d entries\n", "greedy mix",
            (double)r.greedy_value.step_ns / (double)trace_total_ns (t), r.greedy.n_recomputes);
  else
    printf ("  %-22s none %s\n", "greedy mix", err.text);
  arena_free (a);
}

static bool mix (const char *folder, const char *name, int64_t batch, arena *a, error *err) {
  static const int percents[] = { 80, 60, 40 };
  device d;
  units u;
  gaps g;
  if (!device_of (folder, "h200", a, &d, err))
    return false;
  d.link = (device_link){ 50000000000, 50000000000, 100000000000, 10000 };
  d.host_bytes = (int64_t)1 << 42;
  zoo_request r = {
    .name = name, .batch = batch, .dtype = DTYPE_BF16, .optimizer = ZOO_MOMENTUM, .device = &d
  };
  trace *t = zoo_trace (&r, a, err);
  if (!t || !units_of (t, NULL, 0, d.granule_bytes, 1 << 20, a, &u, err) ||
      !gaps_of (&u, d.granule_bytes, INT64_MAX / 8, a, &g, err))
    return false;
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    solve_options o = { .device = &d,
                        .budget_bytes = g.peak_bytes / 100 * percents[i],
                        .host_bytes = d.host_bytes,
                        .limit_ticks = 10000000 };
    printf ("%s batch %lld, %d %% of the peak\n", name, (long long)batch, percents[i]);
    cell (t, &o, "swap alone");
    o.recompute = RECOMPUTE_ONLY;
    cell (t, &o, "recompute alone");
    o.recompute = RECOMPUTE_AUTO;
    greedy (t, &o);
    cell (t, &o, "both");
  }
  return true;
}

int main (int count, char **words) {
  error err = { 0 };
  arena *a = arena_new (0);
  bool ok = a;
  if (count == 3 && strcmp (words[1], "vgg") == 0)
    ok = ok && vgg (words[2], a, &err);
  else if (count == 5 && strcmp (words[1], "mix") == 0)
    ok = ok && mix (words[4], words[2], strtoll (words[3], NULL, 10), a, &err);
  else if (count == 1 && a) {
    const char *source = getenv ("srcdir");
    const char *folder = arena_format (a, &err, "%s/data/devices", source ? source : ".");
    ok = folder && vgg (folder, a, &err) && mix (folder, "vgg16", 512, a, &err) &&
         mix (folder, "resnet50", 512, a, &err) && mix (folder, "gpt2", 8, a, &err);
  } else
    ok = error_set (&err, ERR_usage, "bench_mix vgg DEVICES | mix NETWORK BATCH DEVICES");
  if (!ok)
    fprintf (stderr, "bench_mix: %s\n", err.text);
  arena_free (a);
  return ok ? 0 : 1;
}
