/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry run`: a program in less device memory than it needs.  It runs on demand until its step
   repeats; then a plan is made in a process beside it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/planner.h"
#include "cli/program.h"
#include "cli/share.h"
#include "executor/driver/host.h"
#include "executor/watch/answer.h"
#include "executor/watch/foresee.h"
#include "executor/watch/steps.h"
#include "solver/solve.h"
#include "trace/check/check.h"
#include "trace/summary.h"

enum { PLAN_TICKS = 400000 };

typedef struct runner {
  call *call;
  program_run run;
  share share; /* with --share */
  device device;
  pid_t solver;     /* -1: none */
  int32_t answered; /* so many steps */
  int64_t shown_ns;
} runner;

/* ---- the plan of a step, in a process of its own ---- */

/* The device's and the options' limits, as the planner's options. */
static void allow (const runner *w, int64_t budget_bytes, solve_options *o) {
  const shim_config *k = &w->run.block->config;
  *o = (solve_options){ .device = &w->device,
                        .budget_bytes = budget_bytes,
                        .host_bytes = k->host_bytes,
                        .limit_ticks = PLAN_TICKS,
                        .seed = 1,
                        .same_places = true };
}

/* The answer has the time that the program's own step takes, by what the shim does. */
static bool foresee (runner *w, const steps *s, const steps_map *map, bytes *text) {
  int64_t ns = 0;
  if (!foresee_step (s, map, text, &w->device, w->call->arena, &ns, &w->call->err))
    return false;
  memcpy (text->data + sizeof ns * PLAN_PREDICTED, &ns, sizeof ns);
  return true;
}

static bool write_files (runner *w, const steps *s, const trace *t, const plan *p,
                         const steps_map *map, int number) {
  call *c = w->call;
  char path[SHIM_PATH + 64];
  bytes text = { 0 };
  const char *kept = call_text (c, "keep-plan"), *kept_trace = call_text (c, "keep-trace");
  bool good = answer_text (t, p, map, c->arena, &text, &c->err) && foresee (w, s, map, &text) &&
              file_write (program_file (&w->run, path, sizeof path, SHIM_PLAN, number), text.data,
                          text.size, FILE_PLAIN, &c->err) &&
              (!kept || plan_store (p, kept, false, &c->err)) &&
              (!kept_trace || trace_store (t, kept_trace, TRACE_PLAIN, &c->err));
  bytes_free (&text);
  return good;
}

static bool plan_step (runner *w, int number) {
  call *c = w->call;
  char path[SHIM_PATH + 64];
  const shim_block *b = w->run.block;
  steps s;
  steps_map map;
  solution found;
  solve_options o;
  const char *given = call_text (c, "plan");
  if (!steps_read (program_file (&w->run, path, sizeof path, SHIM_STEP, number), c->arena, &s,
                   &c->err))
    return false;
  steps_options told = { .name = c->operands[0],
                         .detail = "event pairs around each op, in a run under a budget",
                         .round_bytes = b->step_granule };
  trace *t = steps_trace (&s, &told, c->arena, &map, &c->err);
  w->device.granule_bytes = b->step_granule;
  allow (w, b->step_granules * b->step_granule, &o);
  const plan *p = NULL;
  if (t && given) {
    p = plan_load (given, NULL, c->arena, &c->err);
    if (p && !check_plan (t, p, c->arena, NULL, &c->err))
      p = NULL;
  } else if (t && solve (t, &o, c->arena, &found, &c->err))
    p = found.plan;
  if (t)
    w->run.block->step_ops_ns = trace_total_ns (t);
  bool good = p && write_files (w, &s, t, p, &map, number) &&
              (!call_text (c, "share") || share_tell_step (c, &w->share, t));
  steps_close (&s);
  return good;
}

static void answer (runner *w, int status) {
  shim_block *b = w->run.block;
  b->plan_good = WIFEXITED (status) && WEXITSTATUS (status) == 0;
  w->answered++;
  w->solver = -1;
  __atomic_store_n (&b->plan_ready, w->answered, __ATOMIC_RELEASE);
}

static void start_solver (runner *w) {
  int number = w->answered + 1;
  fflush (NULL);
  w->solver = fork ();
  if (w->solver < 0)
    answer (w, 1 << 8); /* a status that is a failure's */
  if (w->solver != 0)
    return;
  call *c = w->call;
  c->err = (error){ 0 };
  bool good = plan_step (w, number);
  if (!good)
    fprintf (stderr, "ferry: no plan for step %d: %s; it stays on demand\n", number, c->err.text);
  _exit (good ? 0 : 1);
}

static void serve_solver (runner *w) {
  int status;
  if (w->solver > 0 && waitpid (w->solver, &status, WNOHANG) == w->solver)
    answer (w, status);
  if (w->solver < 0 && __atomic_load_n (&w->run.block->step_wanted, __ATOMIC_ACQUIRE) > w->answered)
    start_solver (w);
}

/* ---- the summary ---- */

static void show_progress (runner *w) {
  const shim_seen *s = &w->run.block->seen;
  char out[UNITS_TEXT], in[UNITS_TEXT], device[UNITS_TEXT];
  int64_t now = planner_now_ns ();
  if (!call_flag (w->call, "progress") || now - w->shown_ns < 500000000)
    return;
  w->shown_ns = now;
  fprintf (stderr, "\rferry: %lld ops, %lld planned steps, %s out, %s in, %s of the device   ",
           (long long)s->ops, (long long)s->planned_steps, units_bytes (out, s->out_bytes),
           units_bytes (in, s->in_bytes), units_bytes (device, s->device_high_bytes));
}

/* The mean of a sum over the planned steps that were timed. */
static int64_t step_ns (const shim_seen *s, int64_t sum_ns) {
  return s->planned_timed > 0 ? sum_ns / s->planned_timed : 0;
}

/* A planned step's time beyond that of its ops: it waits for copies. */
static int64_t stall_ns (const shim_block *b) {
  int64_t ns = step_ns (&b->seen, b->seen.planned_ns) - b->step_ops_ns;
  return ns > 0 ? ns : 0;
}

static void print_summary (const runner *w) {
  const shim_block *b = w->run.block;
  const shim_seen *s = &b->seen;
  char a[UNITS_TEXT], d[UNITS_TEXT], e[UNITS_TEXT], f[UNITS_TEXT];
  const call *c = w->call;
  call_note (c, "%lld ops; %s of %s on the device (the program held %s), %s of the host",
             (long long)s->ops, units_bytes (a, s->device_high_bytes),
             units_bytes (d, b->config.budget_bytes), units_bytes (e, s->live_high_bytes),
             units_bytes (f, s->host_high_bytes));
  if (s->evictions == 0) {
    call_note (c, "nothing had to leave the device");
    return;
  }
  call_note (c, "%lld evictions; %s out, %s in, of these %lld copies in on demand",
             (long long)s->evictions, units_bytes (a, s->out_bytes), units_bytes (d, s->in_bytes),
             (long long)s->unplanned);
  if (s->clean_bytes > 0)
    call_note (c, "%s more left without a copy, because the host had the same bytes",
               units_bytes (a, s->clean_bytes));
  if (s->entries == 0)
    call_note (c, "no plan was followed: all steps ran on demand");
  else if (s->planned_timed > 0)
    call_note (c,
               "%lld planned steps (%lld strict), entered %lld times, left %lld times; a step took "
               "%s, predicted %s, and waited %s for copies",
               (long long)s->planned_steps, (long long)s->strict_steps, (long long)s->entries,
               (long long)s->leaves, units_time (a, step_ns (s, s->planned_ns)),
               units_time (d, step_ns (s, s->predicted_ns)), units_time (e, stall_ns (b)));
  else
    call_note (c, "%lld planned steps (%lld strict), entered %lld times, left %lld times",
               (long long)s->planned_steps, (long long)s->strict_steps, (long long)s->entries,
               (long long)s->leaves);
}

static bool write_report (call *c, const runner *w, int status) {
  const shim_block *b = w->run.block;
  const shim_seen *s = &b->seen;
  const char *path = call_text (c, "report");
  json_writer w2;
  bytes text = { 0 };
  if (!path)
    return true;
  json_begin (&w2, 1);
  json_open_object (&w2);
  json_add_int (&w2, "budget_bytes", b->config.budget_bytes);
  json_add_int (&w2, "clean_bytes", s->clean_bytes);
  json_add_int (&w2, "device_high_bytes", s->device_high_bytes);
  json_add_int (&w2, "driver_high_bytes", s->driver_high_bytes);
  json_add_bool (&w2, "ended", b->ended);
  json_add_int (&w2, "entries", s->entries);
  json_add_int (&w2, "evictions", s->evictions);
  json_add_int (&w2, "exit_status", status);
  json_add_text (&w2, "fault_op", b->fault_op);
  json_add_int (&w2, "faults", b->faults);
  json_add_int (&w2, "floor_bytes", s->floor_bytes);
  json_add_text (&w2, "floor_op", b->floor_op);
  json_add_int (&w2, "host_high_bytes", s->host_high_bytes);
  json_add_int (&w2, "in_bytes", s->in_bytes);
  json_add_int (&w2, "launches", s->launches);
  json_add_int (&w2, "leaves", s->leaves);
  json_add_int (&w2, "live_high_bytes", s->live_high_bytes);
  json_add_int (&w2, "map_calls", s->map_calls);
  json_put_key (&w2, "messages");
  json_open_array (&w2);
  for (int i = 0; i < b->messages && i < SHIM_MESSAGES; i++)
    json_put_text (&w2, b->message[i]);
  json_close_array (&w2);
  json_add_int (&w2, "ops", s->ops);
  json_add_int (&w2, "out_bytes", s->out_bytes);
  json_add_int (&w2, "planned_map_calls", s->planned_map_calls);
  json_add_int (&w2, "planned_step_ns", step_ns (s, s->planned_ns));
  json_add_int (&w2, "planned_steps", s->planned_steps);
  json_add_int (&w2, "plans", s->plans);
  json_add_int (&w2, "predicted_step_ns", step_ns (s, s->predicted_ns));
  json_add_bool (&w2, "refused", b->refused);
  json_add_int (&w2, "resizes", s->resizes);
  json_add_int (&w2, "room_waits", s->room_waits);
  json_add_int (&w2, "shared_high_bytes",
                call_text (c, "share") ? share_high_bytes (&w->share) : -1);
  json_add_int (&w2, "stall_ns", s->planned_timed > 0 ? stall_ns (b) : 0);
  json_add_int (&w2, "strict_steps", s->strict_steps);
  json_add_int (&w2, "unplanned", s->unplanned);
  json_close_object (&w2);
  bool good = json_finish (&w2, &text, &c->err) && call_write (c, path, text.data, text.size);
  bytes_free (&text);
  return good;
}

/* ---- the command ---- */

static bool read_strict (call *c, shim_config *k) {
  static const char *const words[] = { "first", "always", "sync", NULL };
  int which = SHIM_STRICT_FIRST;
  k->paranoid = 500;
  k->strict_steps = 3;
  if (!call_word (c, "strict", words, &which) || !call_quantity (c, "paranoid", &k->paranoid) ||
      !call_quantity (c, "strict-steps", &k->strict_steps))
    return false;
  k->strict = (shim_strict)which;
  k->wait = call_flag (c, "wait");
  return true;
}

static bool read_limits (call *c, runner *w, shim_config *k) {
  host_limits h = host_limits_read ();
  const char *name = call_text (c, "device");
  k->mode = SHIM_RUN;
  k->host_bytes = h.available_bytes > 0 ? h.available_bytes / 2 : (int64_t)1 << 36;
  if (!call_text (c, "budget"))
    return error_set (&c->err, ERR_usage, "run needs --budget SIZE");
  if (!call_quantity (c, "budget", &k->budget_bytes) ||
      !call_quantity (c, "host", &k->host_bytes) || !read_strict (c, k) ||
      !device_named (c, name ? name : "titanx-pascal", &w->device))
    return false;
  w->device.memory_bytes = k->budget_bytes + w->device.reserved_bytes;
  w->device.host_bytes = k->host_bytes;
  return k->budget_bytes > 0 || error_set (&c->err, ERR_usage, "--budget: nothing is too little");
}

static void use_emulated_link (runner *w) {
  const shim_config *k = &w->run.block->config;
  if (!k->emulated)
    return;
  w->device.link =
      (device_link){ .d2h_bytes_per_s = k->emu.d2h_bytes_per_s,
                     .h2d_bytes_per_s = k->emu.h2d_bytes_per_s,
                     .both_bytes_per_s = k->emu.d2h_bytes_per_s + k->emu.h2d_bytes_per_s,
                     .copy_ns = k->emu.copy_ns };
}

/* The program does not begin before it has room on the card that it shares. */
static bool wait_for_room (call *c, runner *w) {
  const struct timespec moment = { 0, 10000000 };
  sigset_t ends;
  sigemptyset (&ends);
  sigaddset (&ends, SIGINT);
  sigaddset (&ends, SIGTERM);
  sigaddset (&ends, SIGHUP);
  sigprocmask (SIG_BLOCK, &ends, NULL);
  int got = 0;
  for (;;) {
    share_serve (c, &w->share, w->run.block);
    if (share_may_start (c, &w->share))
      break;
    if ((got = sigtimedwait (&ends, NULL, &moment)) > 0)
      break;
  }
  sigprocmask (SIG_UNBLOCK, &ends, NULL);
  return got <= 0 || error_set (&c->err, ERR_infeasible, "ended by a signal while it waited");
}

static bool supervise (call *c, runner *w) {
  const char *name = call_text (c, "share");
  if (!program_prepare (c, &w->run))
    return false;
  use_emulated_link (w);
  if ((name && (!share_join (c, name, &w->device, &w->run.block->config, &w->share) ||
                !wait_for_room (c, w))) ||
      !program_start (c, &w->run))
    return false;
  while (program_runs (&w->run, true)) {
    serve_solver (w);
    show_progress (w);
    if (name)
      share_serve (c, &w->share, w->run.block);
  }
  if (w->solver > 0) {
    kill (w->solver, SIGKILL);
    waitpid (w->solver, NULL, 0);
  }
  return true;
}

static int run (call *c) {
  shim_block asked = { 0 };
  runner w = { .call = c, .run = { .block = &asked }, .share = { .socket = -1 }, .solver = -1 };
  if (c->n_operands == 0) {
    if (!call_text (c, "share"))
      error_set (&c->err, ERR_usage, "run needs a program behind its options");
    return call_text (c, "share") && share_ask (c, call_text (c, "share")) ? EXIT_YES
                                                                           : call_failed (c);
  }
  bool good = read_limits (c, &w, &asked.config) && supervise (c, &w);
  int status = good ? program_status (&w.run) : EXIT_NO;
  good = good && program_was_seen (c, &w.run);
  if (good && call_flag (c, "progress"))
    fprintf (stderr, "\n");
  if (good)
    print_summary (&w);
  good = good && write_report (c, &w, status);
  share_leave (&w.share);
  if (good && w.run.block->faults > 0 && status == EXIT_YES)
    status = EXIT_NO;
  if (w.run.block != &asked)
    program_clean (&w.run);
  return good ? status : call_failed (c);
}

static const cli_option options[] = {
  { 'b', "budget", "SIZE", "device memory that the program's tensors may take, such as 4GiB",
    RANGE_SIZE },
  { 0, "host", "SIZE", "host memory that may be pinned; without it, half of what is available",
    RANGE_SIZE },
  { 'd', "device", "NAME|FILE",
    "the card whose link plans are made for; without it, titanx-pascal, "
    "and with --driver emulated the emulated link" },
  { 0, "plan", "FILE",
    "follow this plan instead of making one; it must be for the step's own trace" },
  { 0, "keep-plan", "FILE", "write the last plan that was made" },
  { 0, "keep-trace", "FILE", "write the trace that it is for" },
  { 0, "wait", NULL, "the program waits while a plan is made, so that runs are alike" },
  { 0, "strict", "first|always|sync",
    "what is away is unmapped in the first planned steps, always, or "
    "always with a wait after each launch, which names the op that uses a tensor unseen" },
  { 0,
    "strict-steps",
    "N",
    "so many planned steps are strict at first; without it, 3",
    { UNITS_COUNT, 0, INT32_MAX } },
  { 0,
    "paranoid",
    "N",
    "every N-th planned step is strict, 0: none; without it, 500",
    { UNITS_COUNT, 0, INT32_MAX } },
  { 0, "progress", NULL, "say how it goes while it runs" },
  { 0, "report", "FILE", "write what happened as JSON" },
  { 0, "share", "NAME",
    "share the budget with all runs of that name; without a program: say who shares it" },
  { 0, "least", "SIZE",
    "with --share: the program waits until it can have so much; without it, an eighth of the "
    "budget",
    RANGE_SIZE },
  OPTION_RUN_DRIVER,
  OPTION_RUN_EMULATED,
  OPTIONS_END,
};

const cli_command command_run = {
  .name = "run",
  .says = "run a program in less device memory than it needs",
  .operands = "-- [PROGRAM ARGUMENT...]",
  .least = 0,
  .most = -1,
  .about =
      "Runs a CUDA program as it is, with a library in front of its driver that keeps its tensors "
      "within the budget: what an op needs is brought onto the device, and what was used longest "
      "ago leaves. Once the program's step repeats, a plan is made in the background and "
      "followed as long as the program does what it is for. The program's exit status is passed "
      "on. docs/run.md has a session.\n",
  .options = options,
  .json = false,
  .run = run,
};
