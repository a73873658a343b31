/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a plan takes from a trace in memory until it lies within so much of its bound, and with
   how much memory: one row a trace, each in a process of its own, seconds of one core.  `made` is
   the time to the answer, `bound` the certified bound's part of it. bench_speed [ROW [PERCENT]];
   VERBOSE in the environment for progress. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/solve.h"
#include "tests/bench/bench.h"
#include "tests/synthetic.h"
#include "trace/zoo/zoo.h"

typedef struct row {
  const char *name;
  const char *network; /* of the zoo, or NULL: synthetic */
  int64_t batch;
  synthetic_kind kind;
  int32_t ops;
  int64_t gap_ppm;
  double limit_s, limit_mb; /* to be reached; 0: none stated */
} row;

static const row rows[] = {
  { "vgg16", "vgg16", 256, 0, 0, 10000, 0.3, 0 },
  { "resnet50", "resnet50", 256, 0, 0, 10000, 1, 0 },
  { "gpt2-xl", "gpt2-xl", 8, 0, 0, 10000, 3, 0 },
  { "gpt-20k", NULL, 0, SYNTHETIC_GPT, 20000, 5000, 5, 0 },
  { "resnet-20k", NULL, 0, SYNTHETIC_RESNET, 20000, 5000, 5, 0 },
  { "gpt-100k", NULL, 0, SYNTHETIC_GPT, 100000, 6000, 10, 400 },
  { "resnet-100k", NULL, 0, SYNTHETIC_RESNET, 100000, 6000, 10, 400 },
  { "random-26k", NULL, 0, SYNTHETIC_RANDOM, 26000, 15000, 60, 0 },
};
static const int percents[] = { 80, 60, 50, 40 };

typedef struct task {
  const row *row;
  int percent;
} task;

typedef struct answer {
  int32_t ops;
  bool infeasible;
  int64_t bound_ns, step_ns, candidates;
  double seconds, bound_s, first_s;
  char found_by[24];
} answer;

typedef struct watch {
  double from, bound_s, first_s;
} watch;

/* The lines of progress say when each part was done. */
static void say (void *context, log_level level, const char *text) {
  watch *w = context;
  if (level == LOG_PROGRESS && strncmp (text, "bound:", 6) == 0 && w->first_s == 0)
    w->bound_s = bench_cpu_s () - w->from;
  if (level == LOG_PROGRESS && strncmp (text, "plan ", 5) == 0 && w->first_s == 0)
    w->first_s = bench_cpu_s () - w->from;
  if (level >= LOG_PROGRESS && getenv ("VERBOSE"))
    fprintf (stderr, "  %7.3f s  %s\n", bench_cpu_s () - w->from, text);
}

static bool solve_task (const void *context, void *into, error *err) {
  const task *want = context;
  const row *r = want->row;
  answer *out = into;
  device dev = { .name = "bench",
                 .memory_bytes = (int64_t)1 << 50,
                 .granule_bytes = 2 << 20,
                 .link = { 25000000000, 25000000000, 50000000000, 10000 },
                 .host_bytes = (int64_t)1 << 50,
                 .share_ppm = 1000000,
                 .has_roofline = true,
                 .roofline = { .fp32_flops = 10970000000000, .memory_bytes_per_s = 480000000000 } };
  zoo_request z = { .name = r->network,
                    .batch = r->batch,
                    .dtype = DTYPE_FP32,
                    .optimizer = ZOO_MOMENTUM,
                    .device = &dev };
  arena *a = arena_new (0);
  trace *t = !a           ? NULL
             : r->network ? zoo_trace (&z, a, err)
                          : synthetic (r->kind, r->ops, 1, a, err);
  units u;
  gaps g;
  if (!t || !units_of (t, NULL, 0, 1, 0, a, &u, err) || !gaps_of (&u, 1, INT64_MAX / 8, a, &g, err))
    return false;
  out->ops = t->n_ops;
  watch w = { .from = bench_cpu_s () };
  logger log = { say, &w };
  solve_options o = { .device = &dev,
                      .budget_bytes = g.peak_bytes / 100 * want->percent,
                      .host_bytes = dev.host_bytes,
                      .gap_ppm = r->gap_ppm,
                      .log = &log };
  solution s;
  error why = { 0 };
  bool ok = solve (t, &o, a, &s, &why);
  out->seconds = bench_cpu_s () - w.from;
  out->bound_s = w.bound_s;
  out->first_s = w.first_s;
  if (ok) {
    out->bound_ns = s.bound.lower_bound_ns;
    out->step_ns = s.plan->predicted.step_ns;
    out->candidates = s.candidates;
    snprintf (out->found_by, sizeof out->found_by, "%s", s.plan->certificate.found_by);
  } else if (why.code == ERR_infeasible || why.code == ERR_limit) {
    out->infeasible = ok = true;
  } else {
    *err = why;
  }
  arena_free (a);
  return ok;
}

static void print (const task *t, const answer *s, const bench_end *end) {
  const row *r = t->row;
  double gap = 100.0 * (double)s->step_ns / (double)s->bound_ns - 100;
  bool close = s->step_ns <= s->bound_ns + s->bound_ns / 1000000 * r->gap_ppm;
  bool fast = !r->limit_s || s->seconds <= r->limit_s;
  bool small = !r->limit_mb || (double)end->peak_bytes <= r->limit_mb * 1e6;
  printf ("%-12s %6d ops %3d %%  bound %6.2f s  first plan %6.2f s  answer %6.2f s of %4.1f"
          "  gap %7.3f %% of %.1f  %5lld tried  %4lld MB  %s%s%s%s\n",
          r->name, s->ops, t->percent, s->bound_s, s->first_s, s->seconds, r->limit_s, gap,
          (double)r->gap_ppm / 10000, (long long)s->candidates,
          (long long)(end->peak_bytes / 1000000), s->found_by, close ? "" : "  FAR",
          fast ? "" : "  SLOW", small ? "" : "  LARGE");
  printf ("{\"bench\":\"speed\",\"row\":\"%s\",\"ops\":%d,\"percent\":%d,\"seconds\":%.3f,"
          "\"bound_s\":%.3f,\"first_plan_s\":%.3f,\"lower_bound_ns\":%lld,\"step_ns\":%lld,"
          "\"candidates\":%lld,\"peak_bytes\":%lld}\n",
          r->name, s->ops, t->percent, s->seconds, s->bound_s, s->first_s, (long long)s->bound_ns,
          (long long)s->step_ns, (long long)s->candidates, (long long)end->peak_bytes);
}

int main (int argc, char **argv) {
  const char *name = bench_argument (argc, argv, 1), *percent = bench_argument (argc, argv, 2);
  bool ok = true;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t j = 0; j < sizeof percents / sizeof *percents; j++) {
      task t = { &rows[i], percents[j] };
      answer s;
      if ((name && strcmp (name, rows[i].name) != 0) ||
          (percent && strtol (percent, NULL, 10) != percents[j]))
        continue;
      bench_end end = bench_row (solve_task, &t, &s, sizeof s, 300);
      if (!end.ok) {
        printf ("%-12s %3d %%  %s after %.0f s\n", rows[i].name, t.percent,
                end.timed_out ? "no answer" : "failed", end.cpu_s);
        ok = ok && end.timed_out;
      } else if (s.infeasible)
        printf ("%-12s %6d ops %3d %%  below the floor\n", rows[i].name, s.ops, t.percent);
      else
        print (&t, &s, &end);
    }
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
