/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry run`: a program in less device memory than it needs.  It runs on demand until its step
   repeats; then a plan is made in a process beside it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/planner.h"
#include "cli/inputs/policies.h"
#include "cli/run/emulated.h"
#include "cli/run/program.h"
#include "cli/remote/remote.h"
#include "cli/run/run_chrome.h"
#include "cli/run/run_html.h"
#include "cli/run/run_link.h"
#include "cli/run/run_report.h"
#include "cli/run/run_step.h"
#include "executor/driver/host.h"
#include "solver/ask/ranks.h"

enum { MOST_RANKS = HOST_MOST_CARDS };

typedef struct runner {
  call *call;
  int32_t rank;
  program_run run;
  share share; /* with --share */
  device device;
  pid_t solver;     /* -1: none */
  int32_t answered; /* steps that were answered */
  bool unkept;      /* a plan or its trace could not be written where the options say */
  bool shows;       /* the live line */
  int64_t shown_ns;
  shim_seen shown; /* as it was then */
} runner;

/* With --ranks: a process for each device. The program itself is the first's. */
typedef struct rank_runs {
  runner *ranks;
  int32_t n;
  int64_t budgets[MOST_RANKS];
  bool host_said; /* --host says what is left of the links */
} rank_runs;

/* ---- the plan of a step, in a process of its own ---- */

static void answered (runner *w, int status) {
  shim_block *b = w->run.block;
  int end = WIFEXITED (status) ? WEXITSTATUS (status) : RUN_NO_PLAN;
  b->plan_good = end != RUN_NO_PLAN;
  w->unkept |= end == RUN_UNKEPT;
  w->answered++;
  w->solver = -1;
  __atomic_store_n (&b->plan_ready, w->answered, __ATOMIC_RELEASE);
}

static void start_solver (runner *w) {
  int number = w->answered + 1;
  pid_t launcher = getpid ();
  fflush (NULL);
  w->solver = fork ();
  if (w->solver < 0)
    answered (w, RUN_NO_PLAN << 8); /* as a status of waitpid */
  if (w->solver != 0)
    return;
  if (!child_ends_with (launcher))
    _exit (1);
  call *c = w->call;
  c->err = (error){ 0 };
  run_outcome end = run_step (&(run_planner){ c, w->rank, &w->run, &w->share, &w->device }, number);
  char line[1024];
  error_line (&c->err, line, sizeof line);
  if (end == RUN_NO_PLAN && w->run.block->step_effort == 0)
    fprintf (stderr, "ferry: no plan for step %d: %s; it stays on demand\n", number, line);
  else if (end == RUN_UNKEPT)
    fprintf (stderr, "ferry: %s; the plan of step %d is followed\n", line, number);
  _exit ((int)end);
}

static void serve_solver (runner *w) {
  int status;
  if (w->solver > 0 && waitpid (w->solver, &status, WNOHANG) == w->solver)
    answered (w, status);
  if (w->solver < 0 && __atomic_load_n (&w->run.block->step_wanted, __ATOMIC_ACQUIRE) > w->answered)
    start_solver (w);
}

/* ---- the summary ---- */

static const char *mode_of (const runner *w) {
  const shim_block *b = w->run.block;
  if (b->seen.entries > b->seen.leaves)
    return "planned";
  return w->solver > 0 ? "on demand, a plan is being made" : "on demand";
}

/* The mean over the planned steps since the line was written last. */
static int64_t a_step (int64_t now, int64_t then, int64_t steps) {
  return steps > 0 ? (now - then) / steps : 0;
}

/* One line, written over itself. */
static void show_progress (runner *w, int32_t ranks) {
  const shim_seen *s = &w->run.block->seen, *t = &w->shown;
  char out[UNITS_TEXT], in[UNITS_TEXT], took[UNITS_TEXT];
  int64_t now = monotonic_ns (), steps = s->planned_steps - t->planned_steps;
  int64_t timed = s->planned_timed - t->planned_timed, alone = w->run.block->step_ops_ns;
  int64_t step_ns = a_step (s->planned_ns, t->planned_ns, timed);
  if (!w->shows || now - w->shown_ns < 500000000)
    return;
  w->shown_ns = now;
  fprintf (stderr, ranks > 1 ? "\rferry: rank 0 of %d: " : "\rferry: ", ranks);
  fprintf (stderr, "%s, %lld ops", mode_of (w), (long long)s->ops);
  if (steps > 0 && step_ns > 0 && alone > 0)
    fprintf (stderr, ", a step %s (%.2f of alone), %s out, %s in", units_time (took, step_ns),
             (double)step_ns / (double)alone,
             units_bytes (out, a_step (s->out_bytes, t->out_bytes, steps)),
             units_bytes (in, a_step (s->in_bytes, t->in_bytes, steps)));
  if (steps > 0 && s->dropped_bytes > t->dropped_bytes)
    fprintf (stderr, ", %s made again",
             units_bytes (out, a_step (s->dropped_bytes, t->dropped_bytes, steps)));
  fprintf (stderr, "\033[K");
  w->shown = *s;
}

/* ---- the command ---- */

static bool read_strict (call *c, shim_config *k) {
  static const char *const words[] = { "first", "always", "sync", NULL };
  static const char *const answers[] = { "yes", "no", NULL };
  static const char *const efforts[] = { "quick", "normal", "thorough", NULL };
  static const char *const remakes[] = { "off", "verified", "trusted", NULL };
  int which = SHIM_STRICT_FIRST, learn = 0, remake = REMAKE_VERIFIED;
  int effort = call_flag (c, "wait") ? 0 : 1;
  k->paranoid = 500;
  k->strict_steps = 3;
  k->time_every = 64;
  if (!call_word (c, "strict", words, &which) || !call_word (c, "learn", answers, &learn) ||
      !call_word (c, "remake", remakes, &remake) || !call_word (c, "effort", efforts, &effort) ||
      !call_quantity (c, "paranoid", &k->paranoid) ||
      !call_quantity (c, "strict-steps", &k->strict_steps) ||
      !call_quantity (c, "time-every", &k->time_every))
    return false;
  k->strict = (shim_strict)which;
  k->wait = call_flag (c, "wait");
  k->learns = learn == 0;
  k->efforts = effort;
  k->remake = k->learns ? (shim_remake)remake : REMAKE_OFF;
  k->shows_last = call_text (c, "chrome") || call_text (c, "html");
  return true;
}

/* Noticed before the program runs, and not hours later. */
static bool has_plan (call *c) {
  const char *given = call_text (c, "plan");
  return !given || plan_load (given, NULL, c->arena, &c->err);
}

/* One budget for all ranks, or one each. */
static bool read_budgets (call *c, rank_runs *all) {
  const char *rest = call_text (c, "budget"), *part;
  int32_t n = 0;
  if (!rest)
    return call_usage (c, "run needs --budget SIZE");
  while ((part = next_part (c, &rest))) {
    if (n == all->n)
      return call_usage (c, "--budget: more budgets than the %d rank%s", all->n,
                         all->n > 1 ? "s" : "; --ranks N says more");
    if (!call_part (c, "budget", part, 0, &all->budgets[n]))
      return false;
    if (all->budgets[n++] <= 0)
      return call_usage (c, "--budget: nothing is too little");
  }
  if (c->err.code)
    return false;
  if (n > 1 && n != all->n)
    return call_usage (c, "--budget: %d budgets for %d ranks: give one, or %d", n, all->n, all->n);
  for (int32_t i = n; i < all->n; i++)
    all->budgets[i] = all->budgets[0];
  return true;
}

/* The card and the link of a rank while all copy, and its part of what may be pinned. */
static bool read_host (call *c, rank_runs *all, device *card, shim_config *k) {
  gpu_host h;
  ranks_question r = { .host = &h };
  if (!host_ranks (c, &h, card, &r.ranks))
    return false;
  *card = ranks_card (&r, card);
  k->host_bytes = card->host_bytes;
  all->n = r.ranks;
  all->host_said = true;
  return true;
}

static bool read_ranks (call *c, rank_runs *all, device *card, shim_config *k) {
  const char *name = call_text (c, "device");
  int64_t ranks = 1;
  if (host_asked (c)) {
    if (!read_host (c, all, card, k))
      return false;
  } else if (!call_quantity (c, "host", &k->host_bytes) || !call_quantity (c, "ranks", &ranks) ||
             !device_named (c, name ? name : "titanx-pascal", card))
    return false;
  else
    all->n = (int32_t)ranks;
  if (all->n > 1 && call_text (c, "share"))
    return call_usage (c, "--share is for one card, and --ranks for one each: give one of them");
  if (all->n > 1 && !all->host_said)
    call_note (c,
               "plans are for a link that no other rank uses; --host NAME has the rates that are "
               "left while all copy");
  return read_budgets (c, all);
}

static bool read_limits (call *c, rank_runs *all, shim_config *k) {
  runner *w = all->ranks;
  host_limits h = host_limits_read ();
  k->mode = SHIM_RUN;
  k->host_bytes = h.available_bytes > 0 ? h.available_bytes / 2 : (int64_t)1 << 36;
  if (call_text (c, "plan") && call_text (c, "server"))
    return call_usage (
        c, "--plan is followed as it is, and --server would make one: give one of them");
  if (!remote_named (c))
    return false;
  if (call_text (c, "least") && !call_text (c, "share"))
    return call_usage (c, "--least needs --share NAME");
  if (!read_ranks (c, all, &w->device, k) || !read_strict (c, k))
    return false;
  if (all->n > 1 && !all->host_said && !call_text (c, "host"))
    k->host_bytes /= all->n;
  k->budget_bytes = all->budgets[0];
  k->ranks = all->n > 1 ? all->n : 0;
  w->device.host_bytes = k->host_bytes;
  return true;
}

/* Plans are for the link that is there, unless another one is named. */
static void use_link (call *c, runner *w, bool host_said) {
  shim_config *k = &w->run.block->config;
  if (host_said) {
    emulated_set_device (&k->emu, &w->device);
    return;
  }
  if (!k->emulated && !call_text (c, "device") && !run_link (c, &w->run, &w->device.link))
    call_note (c, "the link could not be measured, so plans are made for that of titanx-pascal; "
                  "--device says another");
  if (!k->emulated)
    return;
  w->device.link =
      (device_link){ .d2h_bytes_per_s = k->emu.d2h_bytes_per_s,
                     .h2d_bytes_per_s = k->emu.h2d_bytes_per_s,
                     .both_bytes_per_s = k->emu.both_bytes_per_s > 0
                                             ? k->emu.both_bytes_per_s
                                             : k->emu.d2h_bytes_per_s + k->emu.h2d_bytes_per_s,
                     .copy_ns = k->emu.copy_ns };
  w->device.share_ppm = k->emu.share_ppm > 0 ? k->emu.share_ppm : 1000000;
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

/* Each rank has a block and a budget of its own, and all see as many devices as there are ranks. */
static bool prepare (call *c, rank_runs *all) {
  runner *w = all->ranks;
  if (!program_prepare (c, &w->run))
    return false;
  use_link (c, w, all->host_said);
  w->device.memory_bytes = all->budgets[0] + w->device.reserved_bytes;
  if (all->n == 1)
    return true;
  emu_config *e = &w->run.block->config.emu;
  e->cards = all->n;
  bool as_budget = e->memory_bytes == all->budgets[0];
  for (int32_t i = 1; i < all->n; i++) {
    runner *r = &all->ranks[i];
    *r = (runner){ .call = c, .rank = i, .share = { .socket = -1 }, .solver = -1 };
    if (!program_add_rank (c, &w->run, i, &r->run))
      return false;
    shim_config *k = &r->run.block->config;
    k->budget_bytes = all->budgets[i];
    if (as_budget)
      k->emu.memory_bytes = all->budgets[i];
    r->device = w->device;
    r->device.memory_bytes = all->budgets[i] + w->device.reserved_bytes;
  }
  return true;
}

static void end_solvers (rank_runs *all) {
  for (int32_t i = 0; i < all->n; i++)
    if (all->ranks[i].solver > 0) {
      kill (all->ranks[i].solver, SIGKILL);
      waitpid (all->ranks[i].solver, NULL, 0);
    }
}

static bool supervise (call *c, rank_runs *all) {
  const char *name = call_text (c, "share");
  runner *w = all->ranks;
  if (!prepare (c, all))
    return false;
  if ((name && (!share_join (c, name, &w->device, &w->run.block->config, &w->share) ||
                !wait_for_room (c, w))) ||
      !program_start (c, &w->run))
    return false;
  w->shows = call_flag (c, "progress") || (!c->quiet && isatty (STDERR_FILENO));
  while (program_runs (&w->run, true)) {
    for (int32_t i = 0; i < all->n; i++)
      serve_solver (&all->ranks[i]);
    show_progress (w, all->n);
    if (name)
      share_serve (c, &w->share, w->run.block);
  }
  end_solvers (all);
  return true;
}

/* ---- the end ---- */

static bool draw (call *c, const runner *w, const char *option,
                  bool (*write) (call *, const program_run *, const char *)) {
  const char *given = call_text (c, option);
  const char *path = given ? call_rank_path (c, given, w->rank) : NULL;
  return !given || (path && program_told (c, &w->run) && write (c, &w->run, path));
}

/* The files and lines of each rank, and those of all. */
static bool tell (call *c, rank_runs *all, int status) {
  const shim_block *blocks[MOST_RANKS];
  bool good = true;
  for (int32_t i = 0; i < all->n; i++) {
    const shim_block *b = blocks[i] = all->ranks[i].run.block;
    if (all->n > 1)
      call_note (c, "rank %d%s", i, b->seen.ops ? ":" : " did nothing on a gpu");
    if (all->n == 1 || b->seen.ops)
      run_summary (c, b, i + 1 == all->n ? status : 0);
  }
  good = run_report (c, blocks, all->n, status,
                     call_text (c, "share") ? share_high_bytes (&all->ranks->share) : -1);
  for (int32_t i = 0; good && i < all->n; i++)
    good =
        (all->n > 1 && !blocks[i]->seen.ops) ||
        (draw (c, &all->ranks[i], "chrome", run_chrome) &&
         draw (c, &all->ranks[i], "html", run_html) && program_is_ordered (c, &all->ranks[i].run));
  return good;
}

/* The program's own, unless that is 0 and a rank failed in what ferry had to do. */
static int status_of (const rank_runs *all, int status) {
  for (int32_t i = 0; i < all->n && status == EXIT_YES; i++) {
    if (all->ranks[i].run.block->faults > 0)
      status = EXIT_NO;
    else if (all->ranks[i].unkept)
      status = error_exit_status (ERR_file);
  }
  return status;
}

static int run (call *c) {
  shim_block asked = { 0 };
  rank_runs all = { .ranks = NEW (c->arena, MOST_RANKS, runner, &c->err), .n = 1 };
  runner *w = all.ranks;
  if (!w)
    return call_failed (c);
  *w = (runner){ .call = c, .run = { .block = &asked }, .share = { .socket = -1 }, .solver = -1 };
  if (c->n_operands == 0) {
    if (!call_text (c, "share"))
      call_usage (c, "run needs a program behind its options");
    return call_text (c, "share") && share_ask (c, call_text (c, "share")) ? EXIT_YES
                                                                           : call_failed (c);
  }
  bool good = read_limits (c, &all, &asked.config) && has_plan (c) && supervise (c, &all);
  int status = good ? program_status (&w->run) : EXIT_NO;
  good = good && program_was_seen (c, &w->run);
  if (good && w->shown_ns > 0)
    fprintf (stderr, "\n");
  good = good && tell (c, &all, status);
  share_leave (&w->share);
  status = good ? status_of (&all, status) : program_failed (c, &w->run);
  for (int32_t i = all.n - 1; i > 0; i--)
    program_clean (&all.ranks[i].run);
  if (w->run.block != &asked)
    program_clean (&w->run);
  return status;
}

static const cli_option options[] = {
  { 'b', "budget", "SIZE,...",
    "device memory that the program's tensors may take, such as 4GiB; with --ranks one for all, or "
    "one each",
    RANGE_SIZE },
  { 0,
    "ranks",
    "N",
    "the program has N processes with a device each, which LOCAL_RANK or CUDA_VISIBLE_DEVICES "
    "tells, or their context; default: 1, or with a host's name its cards",
    { UNITS_COUNT, 1, HOST_MOST_CARDS } },
  { 0, "host", "SIZE|NAME|FILE",
    "host memory that may be pinned by each rank; or the host whose links the ranks share, a name "
    "of "
    "`ferry hosts` or a host file; default: half of what is available, for all ranks",
    RANGE_SIZE },
  { 'd', "device", "NAME|FILE",
    "the card whose link plans are made for; default: this machine's, which is "
    "measured first, and with --driver emulated the emulated one" },
  { 0, "plan", "FILE",
    "follow this plan instead of making one; it must be for the step's own trace" },
  OPTION_SERVER,
  { 0, "keep-plan", "FILE", "write the last plan that was made" },
  { 0, "keep-trace", "FILE", "write the trace that it is for" },
  { 0, "wait", NULL, "the program waits while a plan is made, so that runs are alike" },
  { 0, "strict", "first|always|sync",
    "what is away is unmapped in the first planned steps, always, or "
    "always with a wait after each launch, which names the op that uses a tensor unseen" },
  { 0,
    "strict-steps",
    "N",
    "number of strict planned steps at first; default: 3",
    { UNITS_COUNT, 0, INT32_MAX } },
  { 0,
    "paranoid",
    "N",
    "every N-th planned step is strict, 0: none; default: 500",
    { UNITS_COUNT, 0, INT32_MAX } },
  { 0,
    "time-every",
    "N",
    "the ops of every N-th planned step are timed, behind the first eight, 0: none; default: 64",
    { UNITS_COUNT, 0, INT32_MAX } },
  { 0, "learn", "yes|no", "learn what ops read and write, by digests in two steps; default: yes" },
  { 0, "effort", "quick|normal|thorough",
    "how long better plans are sought while the first is followed: not at all, 8 times as long, or "
    "64 times; default: normal, with --wait quick" },
  { 0, "limit", "TICKS",
    "the effort of a first plan in simulated events or their like; default: 400000", RANGE_TICKS },
  { 0, "remake", "off|verified|trusted",
    "tensors are made again by launching their kernels again: never, with each result's digest "
    "compared, or compared in strict steps only; default: verified" },
  { 0, "progress", NULL, "show progress while it runs, even without a terminal" },
  { 0, "report", "FILE", "write what happened as JSON" },
  { 0, "chrome", "FILE",
    "write the last planned step for chrome://tracing and Perfetto: its ops and ferry's copies" },
  { 0, "html", "FILE",
    "the last planned step as a page: as it was seen, and as its plan has it, with the memory" },
  { 0, "share", "NAME",
    "share the budget with all runs of that name; without a program: say who shares it" },
  { 0, "least", "SIZE",
    "with --share: the program waits until this much is free; default: an eighth of the budget",
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
      "Runs an unmodified CUDA program, with a library in front of its driver that keeps its "
      "tensors within the budget: what an op needs is brought onto the device, and what was used "
      "longest ago leaves. Once the program's step repeats, a plan is made in the background and "
      "followed as long as the program repeats that step. The program's exit status is passed on. "
      "docs/run.md has a session.\n",
  .options = options,
  .json = false,
  .run = run,
};
