/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What ferry costs the host by op where its plan moves nothing: `bench_replay` sets wall times of
   the real clock side by side, and where valgrind is installed counts instructions of `bench_replay
   bare|replay STEPS`, which does only that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "executor/replay/replay.h"
#include "trace/build.h"

enum { OPS = 100, GRANULE = 65536, FEW_STEPS = 33, MANY_STEPS = 73, ROUNDS = 5 };
static const int64_t real_op_ns = 300000;

static void must (bool good, const error *err) {
  if (good)
    return;
  fprintf (stderr, "bench_replay: %s\n", err->text);
  exit (EXIT_FAILURE);
}

static int64_t now_ns (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static trace *even_trace (int64_t op_ns, arena *a) {
  error err = { 0 };
  trace_builder *b = build_new (a, "even", 1, &err);
  must (b != NULL, &err);
  build_source (b, "bench", "");
  build_tensor (b, "x", GRANULE, TENSOR_ACTIVATION);
  for (int k = 0; k < OPS; k++) {
    build_op (b, "op", OP_FORWARD, op_ns);
    build_write (b, 0);
  }
  trace *t = build_finish (b, &err);
  must (t != NULL, &err);
  return t;
}

/* Steps under a plan without moves; the time of a step as it was seen. */
static int64_t replay_steps_of (emu_clock clock, int64_t op_ns, int steps) {
  error err = { 0 };
  arena *a = arena_new (0);
  trace *t = even_trace (op_ns, a);
  char digest[TRACE_DIGEST];
  must (trace_digest (t, digest, &err), &err);
  stay s = { STAY_TENSOR, 0, 0, 0, 1 };
  granule_run g = { 0, 1 };
  plan p = { .trace_digest = digest,
             .device = { .name = "even",
                         .memory_bytes = 2 * GRANULE,
                         .granule_bytes = GRANULE,
                         .link = { 1000000000, 1000000000, 2000000000, 0 },
                         .share_ppm = 1000000 },
             .budget_bytes = GRANULE,
             .placement = { .granule_bytes = GRANULE,
                            .granules = 1,
                            .stays = &s,
                            .n_stays = 1,
                            .runs = &g,
                            .n_runs = 1 } };
  replay_options o = { .library = getenv ("FERRY_EMU"),
                       .emulated = true,
                       .clock = clock,
                       .bytes = EMU_NONE,
                       .iterations = steps };
  replay_result r;
  must (replay_run (t, &p, &o, a, &r, &err), &err);
  arena_free (a);
  return r.seen.step_ns;
}

/* The same launches and nothing else: the same kernels with the same parameters, one after another
   on one of as many streams of the same driver. The wall time of a step. */
static int64_t bare_steps_of (emu_clock clock, int64_t op_ns, int steps) {
  error err = { 0 };
  driver d;
  kernels k;
  CUstream s[3];
  emu_configure configure;
  emu_config c = { .memory_bytes = 1 << 20,
                   .granule_bytes = GRANULE,
                   .d2h_bytes_per_s = 1000000000,
                   .h2d_bytes_per_s = 1000000000,
                   .clock = clock,
                   .bytes = EMU_NONE };
  must (driver_open (&d, getenv ("FERRY_EMU"), &err), &err);
  void *entry = driver_symbol (&d, EMU_CONFIGURE);
  memcpy (&configure, &entry, sizeof configure);
  must (driver_ok (&d, configure (&c), EMU_CONFIGURE, &err) && driver_start (&d, 0, &err) &&
            kernels_load (&d, true, false, &k, &err),
        &err);
  for (int i = 0; i < 3; i++)
    must (driver_ok (&d, d.stream_create (&s[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate", &err),
          &err);
  int64_t start = now_ns ();
  void *params[] = { &op_ns };
  for (int i = 0; i < steps * OPS; i++) {
    CUresult r = d.launch (k.wait, 1, 1, 1, 1, 1, 1, 0, s[0], params, NULL);
    if (r != CUDA_SUCCESS)
      must (driver_ok (&d, r, "cuLaunchKernel", &err), &err);
  }
  must (driver_ok (&d, d.ctx_synchronize (), "cuCtxSynchronize", &err), &err);
  int64_t ns = (now_ns () - start) / steps;
  driver_stop (&d);
  return ns;
}

/* Instructions of a run of so many steps; -1: there is no valgrind, or it failed. */
static int64_t instructions (const char *self, const char *what, const char *steps) {
  char file[] = "/tmp/bench_replay.XXXXXX", option[80], line[200];
  int made = mkstemp (file);
  if (made < 0)
    return -1;
  close (made);
  snprintf (option, sizeof option, "--callgrind-out-file=%s", file);
  pid_t child = fork ();
  if (child == 0) {
    execlp ("valgrind", "valgrind", "-q", "--tool=callgrind", option, self, what, steps,
            (char *)NULL);
    _exit (127);
  }
  int status = -1;
  long long n = -1;
  if (child > 0 && waitpid (child, &status, 0) == child && status == 0) {
    FILE *f = fopen (file, "r");
    while (f != NULL && fgets (line, sizeof line, f) != NULL)
      if (sscanf (line, "totals: %lld", &n) == 1)
        break;
    if (f != NULL)
      fclose (f);
  }
  unlink (file);
  return n;
}

/* Between two lengths, so that starting and ending cancel out. */
static int64_t by_op (const char *self, const char *what, const char *few, const char *many) {
  int64_t a = instructions (self, what, few), b = instructions (self, what, many);
  return a < 0 || b < 0 ? -1
                        : (b - a) / ((strtoll (many, NULL, 10) - strtoll (few, NULL, 10)) * OPS);
}

typedef int64_t steps_of (emu_clock clock, int64_t op_ns, int steps);

static void keep_least (int64_t *least_ns, steps_of *run, int steps) {
  int64_t start = now_ns ();
  run (EMU_REAL, real_op_ns, steps);
  int64_t ns = now_ns () - start;
  *least_ns = *least_ns == 0 || ns < *least_ns ? ns : *least_ns;
}

/* Wall time of a step beyond the timed ones, of the real clock. Whoever else is busy only adds, so
   the least of some rounds counts, and the rounds of both are made in turns. */
static void wall_steps (int64_t *bare_ns, int64_t *with_ns) {
  int64_t few[2] = { 0, 0 }, many[2] = { 0, 0 };
  for (int i = 0; i < ROUNDS; i++) {
    keep_least (&few[0], bare_steps_of, FEW_STEPS);
    keep_least (&few[1], replay_steps_of, FEW_STEPS);
    keep_least (&many[0], bare_steps_of, MANY_STEPS);
    keep_least (&many[1], replay_steps_of, MANY_STEPS);
  }
  *bare_ns = (many[0] - few[0]) / (MANY_STEPS - FEW_STEPS);
  *with_ns = (many[1] - few[1]) / (MANY_STEPS - FEW_STEPS);
}

static double percent (int64_t more, int64_t than) {
  return 100.0 * (double)(more - than) / (double)than;
}

int main (int argc, char **argv) {
  if (argc == 3) {
    int steps = (int)strtol (argv[2], NULL, 10);
    if (strcmp (argv[1], "bare") == 0)
      bare_steps_of (EMU_VIRTUAL, 1000, steps);
    else
      replay_steps_of (EMU_VIRTUAL, 1000, steps);
    return EXIT_SUCCESS;
  }
  int64_t bare_ns, with_ns;
  wall_steps (&bare_ns, &with_ns);
  int64_t launch = by_op (argv[0], "bare", "40", "140");
  int64_t plain = launch < 0 ? -1 : by_op (argv[0], "replay", "40", "140");
  int64_t timed = launch < 0 ? -1 : by_op (argv[0], "replay", "8", "28");
  printf ("step of %d ops of 0.3 ms, least of %d: %lld ns bare, %lld ns replayed, %+.3f %%\n", OPS,
          ROUNDS, (long long)bare_ns, (long long)with_ns, percent (with_ns, bare_ns));
  if (launch < 0)
    printf ("instructions: valgrind is not there\n");
  else
    printf (
        "instructions by op, the emulator's included: %lld bare, %lld replayed (%+.2f %%), %lld "
        "where it is timed\n",
        (long long)launch, (long long)plain, percent (plain, launch), (long long)timed);
  printf ("{\"bare_instructions\": %lld, \"bare_step_ns\": %lld, \"replayed_instructions\": %lld, "
          "\"replayed_step_ns\": %lld, \"timed_instructions\": %lld}\n",
          (long long)launch, (long long)bare_ns, (long long)plain, (long long)with_ns,
          (long long)timed);
  return EXIT_SUCCESS;
}
