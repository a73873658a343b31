/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace under a plan on a driver: what the plan says, done with streams and events, and what was
   seen beside what was predicted.  The same code runs on the emulator and on a GPU. */
#pragma once

#include "base/log.h"
#include "executor/calculate/calculate.h"
#include "executor/emu/emu.h"
#include "executor/kernels/kernels.h"
#include "trace/simulate/simulate.h"

enum { REPLAY_WORST = 10, REPLAY_RACES = 8, REPLAY_MOST_STEPS = 10000, REPLAY_TIMED = 32 };

typedef struct replay_options {
  const char *library; /* NULL: the real driver, by its name */
  bool emulated;       /* the library is the emulator */
  emu_clock clock;     /* of the emulator; a GPU has the real one */
  emu_bytes bytes;     /* likewise */
  int32_t iterations;  /* 0: 32 on the virtual clock, else 10 */
  bool verify;         /* every op checks and rewrites every byte of its tensors */
  bool races;          /* look for unordered accesses (the emulator) */
  bool unchecked;      /* run the plan even if check refuses it: for tests of the race checker */
  int64_t fuzz_ns;     /* the emulator's, as the five below */
  uint64_t fuzz_seed;
  int64_t missing_bytes, pinned_bytes, failed_copy;
  int64_t lost_copy, lost_wait; /* the n-th of the run is left out (planted faults); 0: none */
  calculation *calculation;     /* the ops are calculated; NULL: they take their time and no more */
  const logger *log;
} replay_options;

/* One op: its start, relative to op 0 of its step. */
typedef struct replay_difference {
  int32_t op;
  int64_t predicted_ns, seen_ns;
} replay_difference;

typedef struct replay_result {
  predicted predicted, seen;
  bool exact;                       /* the virtual clock: every nanosecond counts */
  bool laden;                       /* the figure is that of the laden run */
  int32_t steps;                    /* that were run */
  int64_t device_bytes, host_bytes; /* that were taken */
  /* Starts of ops: the virtual clock's of the simulated step, else medians over steps. */
  replay_difference worst[REPLAY_WORST];
  int32_t n_worst;
  int64_t largest_ns, median_ns; /* of the differences, without their signs */
  int64_t largest_copy_ns;       /* the same of starts and ends of copies; virtual clock only */
  int32_t plan_waits, waits;     /* of a step: the plan's, and those that no others imply */
  int64_t issued_waits, issued_copies; /* in the run */
  mismatch found;
  int32_t n_races;
  emu_race races[REPLAY_RACES];
  /* The last steps as they were, on the device's clock. */
  rewritten rewritten;
  int32_t timed;          /* steps */
  span *ops, *outs, *ins; /* timed x ops; timed x moves, -1 where there is none */
} replay_result;

/* Refuses a plan that check refuses. A mismatch or a race is no error here: the result says so. */
bool replay_run (const trace *t, const plan *p, const replay_options *o, arena *a,
                 replay_result *out, error *err) MUST_CHECK;

/* Plans on ranks of a host, jobs[i] on its card i, all at once and in step; out[i] of each. The
   rewritten traces are made here. A plan that breaks a rule: *broken is its job. */
bool replay_ranks (const sim_job *jobs, int32_t n, const gpu_host *h, const replay_options *o,
                   arena *a, replay_result *out, int32_t *broken, error *err) MUST_CHECK;

/* The observations of all ranks as a Chrome trace (chrome://tracing, Perfetto). */
bool replay_chrome (const sim_job *jobs, const replay_result *r, int32_t ranks, bytes *out,
                    error *err) MUST_CHECK;
/* The report as JSON. */
void replay_write (json_writer *w, const replay_result *r);
bool replay_json (const replay_result *r, bytes *out, error *err) MUST_CHECK;
