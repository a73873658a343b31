/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How time and memory grow with the number of ops, from a trace in memory to the certified bound
   and to a plan within 1 % of it: synthetic networks at 60 % of their peak, each row in a process
   of its own. `shuffled` is the GPT-like one whose optimizer visits the weights at random, so that
   no order of slots keeps what belongs together close: the adversary of a sparse solver.

   bench_growth [KIND [MOST_OPS [LIMIT_S [LEAST_OPS]]]]; SVG in the environment names a file for the
   picture, FROM one of JSON lines to draw instead of running anything: large rows may come from
   several runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot/svg.h"
#include "solver/solve.h"
#include "tests/bench/bench.h"
#include "tests/synthetic.h"

enum { KINDS = 4, SIZES = 9, PERCENT = 60 };

static const char *const kinds[KINDS] = { "gpt", "resnet", "random", "shuffled" };
static const int32_t sizes[SIZES] = { 100, 300, 1000, 3000, 10000, 30000, 100000, 300000, 1000000 };

typedef struct task {
  synthetic_kind kind;
  int32_t ops;
} task;

typedef struct answer {
  int32_t ops;
  bool infeasible;
  int64_t bound_ns, step_ns, moves;
  double seconds;
} answer;

static void say (void *context, log_level level, const char *text) {
  const double *from = context;
  if (level >= LOG_PROGRESS && getenv ("VERBOSE"))
    fprintf (stderr, "  %7.2f s  %s\n", bench_cpu_s () - *from, text);
}

static bool run (const void *context, void *into, error *err) {
  const task *want = context;
  answer *out = into;
  device dev = { .name = "bench",
                 .memory_bytes = (int64_t)1 << 52,
                 .granule_bytes = 2 << 20,
                 .link = { 25000000000, 25000000000, 50000000000, 10000 },
                 .host_bytes = (int64_t)1 << 52,
                 .share_ppm = 1000000 };
  arena *a = arena_new (0), *aside = arena_new (0);
  trace *t = a && aside ? synthetic (want->kind, want->ops, 1, a, err) : NULL;
  units u;
  gaps g;
  if (!t || !units_of (t, NULL, 0, 1, 0, aside, &u, err) ||
      !gaps_of (&u, 1, INT64_MAX / 8, aside, &g, err))
    return false;
  double from = bench_cpu_s ();
  logger log = { say, &from };
  solve_options o = { .device = &dev,
                      .budget_bytes = g.peak_bytes / 100 * PERCENT,
                      .host_bytes = dev.host_bytes,
                      .gap_ppm = 10000,
                      .limit_ticks = 500000 + 40 * (int64_t)t->n_ops,
                      .log = &log };
  arena_free (aside);
  solution s;
  error why = { 0 };
  out->ops = t->n_ops;
  bool ok = solve (t, &o, a, &s, &why);
  out->seconds = bench_cpu_s () - from;
  if (ok) {
    out->bound_ns = s.bound.lower_bound_ns;
    out->step_ns = s.plan->predicted.step_ns;
    out->moves = s.plan->n_moves;
  } else if (why.code == ERR_infeasible || why.code == ERR_limit) {
    out->infeasible = ok = true;
  } else {
    *err = why;
  }
  arena_free (a);
  return ok;
}

/* ---- the picture ---- */

typedef struct picture {
  figure_point seconds[KINDS][SIZES], bytes[KINDS][SIZES];
  int32_t n[KINDS];
} picture;

static bool draw (const picture *p, const char *path, error *err) {
  static const figure_tone tones[KINDS] = { TONE_compute, TONE_in, TONE_out, TONE_stall };
  figure_series time[KINDS], memory[KINDS];
  int32_t n = 0;
  for (int k = 0; k < KINDS; k++) {
    if (!p->n[k])
      continue;
    time[n] = (figure_series){ .name = kinds[k],
                               .kind = FIGURE_LINE,
                               .tone = tones[k],
                               .points = p->seconds[k],
                               .n_points = p->n[k] };
    memory[n] = time[n];
    memory[n++].points = p->bytes[k];
  }
  figure figures[] = {
    { .id = "time",
      .title = "Time to the bound and a plan within 1 % of it",
      .x = { .title = "ops", .unit = FIGURE_COUNT, .from_zero = true },
      .y = { .title = "time", .unit = FIGURE_NS, .from_zero = true },
      .series = time,
      .n_series = n },
    { .id = "memory",
      .title = "Memory of the process",
      .x = { .title = "ops", .unit = FIGURE_COUNT, .from_zero = true },
      .y = { .title = "memory", .unit = FIGURE_BYTES, .from_zero = true },
      .series = memory,
      .n_series = n },
  };
  figure_page page = { .title = "Growth with the number of ops",
                       .subtitle = "synthetic networks at 60 % of their peak, one core",
                       .figures = figures,
                       .n_figures = 2 };
  bytes text = { 0 };
  bool ok =
      svg_page (&page, &text, err) && file_write (path, text.data, text.size, FILE_PLAIN, err);
  bytes_free (&text);
  return ok;
}

static void note (picture *p, int kind, int32_t ops, double seconds, int64_t peak_bytes) {
  if (p->n[kind] == SIZES)
    return;
  p->seconds[kind][p->n[kind]] = (figure_point){ .x = ops, .y = (int64_t)(seconds * 1e9) };
  p->bytes[kind][p->n[kind]++] = (figure_point){ .x = ops, .y = peak_bytes };
}

/* Lines that print wrote; others are passed over. */
static bool read_rows (picture *p, const char *path) {
  FILE *file = fopen (path, "r");
  char line[1000], kind[16];
  int ops;
  double seconds;
  long long peak_bytes;
  while (file && fgets (line, sizeof line, file))
    if (sscanf (line,
                "{\"bench\":\"growth\",\"kind\":\"%15[a-z]\",\"ops\":%d,\"seconds\":%lf,"
                "\"peak_bytes\":%lld",
                kind, &ops, &seconds, &peak_bytes) == 4)
      for (int k = 0; k < KINDS; k++)
        if (strcmp (kind, kinds[k]) == 0)
          note (p, k, ops, seconds, peak_bytes);
  return file && fclose (file) == 0;
}

static void print (const char *kind, const answer *s, const bench_end *end) {
  double gap = 100.0 * (double)s->step_ns / (double)s->bound_ns - 100;
  printf ("%-9s %8d ops  %7.2f s  %6.1f us an op  %6lld MB  %5.1f KB an op  %8lld moves  gap %7.3f "
          "%%\n",
          kind, s->ops, s->seconds, s->seconds * 1e6 / s->ops,
          (long long)(end->peak_bytes / 1000000), (double)end->peak_bytes / 1e3 / s->ops,
          (long long)s->moves, gap);
  printf ("{\"bench\":\"growth\",\"kind\":\"%s\",\"ops\":%d,\"seconds\":%.3f,\"peak_bytes\":%lld,"
          "\"moves\":%lld,\"lower_bound_ns\":%lld,\"step_ns\":%lld}\n",
          kind, s->ops, s->seconds, (long long)end->peak_bytes, (long long)s->moves,
          (long long)s->bound_ns, (long long)s->step_ns);
}

int main (int argc, char **argv) {
  const char *kind = bench_argument (argc, argv, 1), *most = bench_argument (argc, argv, 2);
  const char *limit = bench_argument (argc, argv, 3), *least = bench_argument (argc, argv, 4);
  const char *svg = getenv ("SVG");
  const char *rows = getenv ("FROM");
  int32_t most_ops = most ? (int32_t)strtol (most, NULL, 10) : sizes[SIZES - 1];
  int32_t least_ops = least ? (int32_t)strtol (least, NULL, 10) : 0;
  int limit_s = limit ? (int)strtol (limit, NULL, 10) : 60;
  static picture p;
  bool ok = !rows || read_rows (&p, rows);
  for (int k = 0; k < KINDS; k++)
    for (int i = 0; i < SIZES && sizes[i] <= most_ops && !rows; i++) {
      task t = { (synthetic_kind)k, sizes[i] };
      answer s = { 0 };
      if ((kind && strcmp (kind, kinds[k]) != 0) || sizes[i] < least_ops)
        continue;
      bench_end end = bench_row (run, &t, &s, sizeof s, limit_s);
      if (!end.ok) {
        printf ("%-9s %8d ops  %s after %.0f s, %lld MB\n", kinds[k], sizes[i],
                end.timed_out ? "no answer" : "failed", end.cpu_s,
                (long long)(end.peak_bytes / 1000000));
        ok = ok && end.timed_out;
        break; /* larger ones will not fare better */
      }
      if (s.infeasible) {
        printf ("%-9s %8d ops  below the floor\n", kinds[k], s.ops);
        continue;
      }
      print (kinds[k], &s, &end);
      note (&p, k, s.ops, s.seconds, end.peak_bytes);
    }
  error err = { 0 };
  char line[sizeof (error)];
  if (svg && !draw (&p, svg, &err)) {
    fprintf (stderr, "%s\n", error_line (&err, line, sizeof line));
    ok = false;
  }
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
