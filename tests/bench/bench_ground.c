/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast the ground is: simulate per event from 1,000 to 1,000,000 ops, and loading, schedule and
   check of a trace of 100,000 ops with 20,000 moves.  A table on stderr, JSON lines on stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/units.h"
#include "tests/bench/big_trace.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

static double now_s (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up (const error *err) {
  char line[sizeof (error)];
  fprintf (stderr, "bench_ground: %s\n", error_line (err, line, sizeof line));
  exit (EXIT_FAILURE);
}

typedef struct planned {
  trace *trace;
  rewritten rewritten;
  plan *plan;
  double schedule_s;
} planned;

static planned make (int32_t n_ops, int32_t n_moves, arena *a) {
  planned p = { 0 };
  error err = { 0 };
  wish *wishes;
  int32_t count;
  device d = big_device ();
  p.trace = big_trace (n_ops, a, &err);
  if (!p.trace || !trace_rewrite (p.trace, &(rewriting){ 0 }, a, &p.rewritten, &err) ||
      !big_wishes (p.trace, n_moves, a, &wishes, &count, &err))
    give_up (&err);
  int64_t all = 0, away = 0;
  for (int32_t i = 0; i < p.trace->n_tensors; i++)
    all += p.trace->tensors[i].bytes;
  for (int32_t i = 0; i < count; i++)
    away += p.trace->tensors[wishes[i].unit].bytes;
  schedule_options o = { .budget_bytes = all - away + away / 2, .host_bytes = d.host_bytes };
  double start = now_s ();
  p.plan = schedule (&(schedule_request){ .original = p.trace,
                                          .rewritten = &p.rewritten,
                                          .device = &d,
                                          .wishes = wishes,
                                          .n_wishes = count,
                                          .options = &o },
                     a, NULL, &err);
  p.schedule_s = now_s () - start;
  if (!p.plan)
    give_up (&err);
  return p;
}

static void bench_simulate (int32_t n_ops) {
  arena *a = arena_new (0);
  error err = { 0 };
  planned p = make (n_ops, n_ops / 5, a);
  int64_t events = 0;
  predicted cost;
  sim_job job = { p.trace, &p.rewritten, p.plan };
  sim_options o = { .events = &events };
  double start = now_s (), spent;
  do {
    if (!simulate (&job, 1, &o, a, &cost, NULL, &err))
      give_up (&err);
    spent = now_s () - start;
  } while (spent < 0.5);
  double rate = (double)events / spent;
  fprintf (stderr, "simulate   %8d ops %8d moves  %6.1f ns an event  %5.1f million events/s\n",
           p.trace->n_ops, p.plan->n_moves, 1e9 / rate, rate / 1e6);
  printf ("{\"bench\":\"simulate\",\"ops\":%d,\"moves\":%d,\"events_per_s\":%.0f}\n",
          p.trace->n_ops, p.plan->n_moves, rate);
  arena_free (a);
}

static void row (const char *what, double seconds) {
  struct rusage usage;
  getrusage (RUSAGE_SELF, &usage);
  fprintf (stderr, "%-10s %7.3f s  (process peak %ld MiB)\n", what, seconds,
           usage.ru_maxrss / 1024);
  printf ("{\"bench\":\"%s\",\"seconds\":%.4f,\"peak_bytes\":%lld}\n", what, seconds,
          (long long)usage.ru_maxrss * 1024);
}

/* In this order, so that the peak of the process at each row is of what came before. */
static void bench_files (int32_t n_ops, int32_t n_moves) {
  arena *a = arena_new (0);
  error err = { 0 };
  bytes packed;
  trace *t = big_trace (n_ops, a, &err);
  if (!t || !trace_text (t, TRACE_PACKED, &packed, &err))
    give_up (&err);
  arena_free (a);
  a = arena_new (0);
  double start = now_s ();
  if (!trace_parse (packed.data, packed.size, NULL, a, &err))
    give_up (&err);
  row ("load", now_s () - start);
  bytes_free (&packed);
  planned p = make (n_ops, n_moves, a);
  row ("schedule", p.schedule_s);
  start = now_s ();
  if (!check_plan (p.trace, p.plan, a, NULL, &err))
    give_up (&err);
  row ("check", now_s () - start);
  arena_free (a);
}

int main (void) {
  fprintf (stderr, "100,000 ops, 20,000 moves:\n");
  bench_files (100000, 20000);
  for (int32_t n = 1000; n <= 1000000; n *= 10)
    bench_simulate (n);
  return 0;
}
