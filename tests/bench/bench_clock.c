/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The real clock against the prediction: networks under plans that move a lot, replayed by threads
   that sleep and copy; the median step of ten, and of five such runs the median and the worst. */
#include <stdio.h>
#include <stdlib.h>

#include "executor/replay/replay.h"
#include "solver/policy/policy.h"
#include "trace/zoo/zoo.h"

enum { RUNS = 5, STEPS = 10 };

static const device card = { .name = "card",
                             .memory_bytes = (int64_t)1 << 42,
                             .granule_bytes = 2 << 20,
                             .link = { 12000000000, 12000000000, 22000000000, 10000 },
                             .host_bytes = (int64_t)1 << 42,
                             .section_ns = 10000,
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 10970000000000,
                                           .memory_bytes_per_s = 480000000000,
                                           .efficiency_ppm = 700000,
                                           .op_ns = 5000 } };

/* So slow that this machine can really carry its bytes meanwhile. */
static const device slow = { .name = "slow",
                             .memory_bytes = (int64_t)1 << 42,
                             .granule_bytes = 65536,
                             .link = { 400000000, 400000000, 700000000, 10000 },
                             .host_bytes = (int64_t)1 << 42,
                             .section_ns = 10000,
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 100000000000,
                                           .memory_bytes_per_s = 5000000000,
                                           .efficiency_ppm = 700000,
                                           .op_ns = 50000 } };

typedef struct row {
  zoo_request network;
  const char *policy;
  emu_bytes bytes;
} row;

static const row rows[] = {
  { { .name = "vgg16", .batch = 32, .device = &card }, "capuchin", EMU_NONE },
  { { .name = "resnet50", .batch = 32, .device = &card }, "capuchin", EMU_NONE },
  { { .name = "inception3", .batch = 32, .device = &card }, "capuchin", EMU_NONE },
  { { .name = "densenet121", .batch = 32, .device = &card }, "capuchin", EMU_NONE },
  { { .name = "bert-base", .batch = 4, .device = &card }, "capuchin", EMU_NONE },
  { { .name = "gpt2", .batch = 1, .device = &card }, "capuchin", EMU_NONE },
  { { .name = "seq2seq", .batch = 64, .device = &card }, "capuchin", EMU_NONE },
  { { .name = "vgg16",
      .batch = 4,
      .width_divisor = 4,
      .image = 96,
      .classes = 10,
      .device = &slow },
    "vdnn-all",
    EMU_ALL },
  { { .name = "resnet18",
      .batch = 8,
      .width_divisor = 2,
      .image = 96,
      .classes = 10,
      .device = &slow },
    "vdnn-all",
    EMU_ALL },
};

static void must (bool good, const error *err) {
  if (good)
    return;
  fprintf (stderr, "bench_clock: %s\n", err->text);
  exit (EXIT_FAILURE);
}

static int64_t peak_of (const trace *t, const device *d, arena *a) {
  policy_view v;
  error err = { 0 };
  must (policy_view_build (t, d, 0, 0, a, &v, &err), &err);
  return v.res[view_peak (&v, v.res)];
}

/* In the least of some shares of its peak for which the policy finds a plan. */
static plan *plan_of (const trace *t, const device *d, const char *policy, int *percent, arena *a) {
  policy_values values = policy_standard ();
  int64_t peak = peak_of (t, d, a);
  for (*percent = 50; *percent <= 100; *percent += 10) {
    error err = { 0 };
    policy_request q = { .trace = t,
                         .device = d,
                         .budget_bytes = peak / 100 * *percent,
                         .host_bytes = d->host_bytes,
                         .values = &values };
    policy_answer answer;
    must (policy_run (policy_named (policy), &q, a, &answer, &err), &err);
    if (answer.fits && answer.plan != NULL && answer.plan->n_moves > 0)
      return answer.plan;
  }
  return NULL;
}

static int compare_ppm (const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* The difference of the median step, in millionths. */
static int64_t run (const trace *t, const plan *p, emu_bytes bytes, int64_t *predicted_ns,
                    arena *a) {
  error err = { 0 };
  replay_options o = { .library = getenv ("FERRY_EMU"),
                       .emulated = true,
                       .clock = EMU_REAL,
                       .bytes = bytes,
                       .iterations = STEPS };
  replay_result r;
  must (replay_run (t, p, &o, a, &r, &err), &err);
  *predicted_ns = r.predicted.step_ns;
  return (r.seen.step_ns - r.predicted.step_ns) * 1000000 / r.predicted.step_ns;
}

static void measure (const row *x) {
  error err = { 0 };
  arena *a = arena_new (0);
  trace *t = zoo_trace (&x->network, a, &err);
  must (t != NULL, &err);
  int percent;
  plan *p = plan_of (t, x->network.device, x->policy, &percent, a);
  if (p == NULL) {
    printf ("%-12s no plan with moves\n", x->network.name);
    arena_free (a);
    return;
  }
  int64_t ppm[RUNS], predicted_ns = 0;
  for (int i = 0; i < RUNS; i++) {
    arena_mark mark = arena_here (a);
    ppm[i] = run (t, p, x->bytes, &predicted_ns, a);
    arena_back (a, mark);
  }
  qsort (ppm, RUNS, sizeof *ppm, compare_ppm);
  int64_t worst = -ppm[0] > ppm[RUNS - 1] ? ppm[0] : ppm[RUNS - 1];
  printf ("%-12s %3d %% of memory, %5d ops, %4d moves, %s: %7.1f ms predicted, %+.2f %% seen, "
          "worst of %d %+.2f %%\n",
          x->network.name, percent, t->n_ops, p->n_moves,
          x->bytes == EMU_ALL ? "with bytes" : "no bytes  ", (double)predicted_ns / 1e6,
          (double)ppm[RUNS / 2] / 1e4, RUNS, (double)worst / 1e4);
  printf ("{\"bytes\": %s, \"median_ppm\": %lld, \"moves\": %d, \"network\": \"%s\", "
          "\"predicted_ns\": %lld, \"worst_ppm\": %lld}\n",
          x->bytes == EMU_ALL ? "true" : "false", (long long)ppm[RUNS / 2], p->n_moves,
          x->network.name, (long long)predicted_ns, (long long)worst);
  fflush (stdout);
  arena_free (a);
}

int main (void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    measure (&rows[i]);
  return EXIT_SUCCESS;
}
