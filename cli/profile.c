/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry profile`: run a program as it is, and write a trace of the step that it repeats. */
#include <string.h>

#include "base/units.h"
#include "cli/program.h"
#include "executor/watch/steps.h"
#include "trace/summary.h"

static void tell (const call *c, const trace *t, const steps_map *map, const shim_seen *seen) {
  char step[UNITS_TEXT], most[UNITS_TEXT];
  call_note (c,
             "a step of %d ops on %d tensors, %s long, found %d times; the program held %s at most",
             t->n_ops, t->n_tensors, units_time (step, trace_total_ns (t)), map->found,
             units_bytes (most, seen->live_high_bytes));
}

/* A trace of the program's record, with the ops of the first `skip` steps left out of the medians.
 */
static bool write_trace (call *c, const program_run *r, const char *output) {
  char path[SHIM_PATH + 64];
  steps s;
  steps_map map;
  int64_t most = 0, skip = 0;
  steps_options o = { .name = c->operands[0], .detail = "event pairs around each op" };
  if (!call_quantity (c, "steps", &most) || !call_quantity (c, "skip", &skip) ||
      !steps_read (program_file (r, path, sizeof path, SHIM_RECORD, -1), c->arena, &s, &c->err))
    return false;
  const char *slash = strrchr (o.name, '/');
  o.name = slash ? slash + 1 : o.name;
  o.most = most;
  o.skip = skip;
  trace *t = steps_trace (&s, &o, c->arena, &map, &c->err);
  bool good = t && trace_store (t, output, TRACE_PLAIN, &c->err);
  steps_close (&s);
  if (good)
    tell (c, t, &map, &r->block->seen);
  return good;
}

static int run (call *c) {
  const char *output = call_text (c, "output");
  shim_block asked = { .config = { .mode = SHIM_PROFILE } };
  program_run r = { .block = &asked };
  if (!output) {
    error_set (&c->err, ERR_usage, "profile needs --output FILE for the trace");
    return call_failed (c);
  }
  bool good = file_creatable (output, &c->err) && program_prepare (c, &r) && program_start (c, &r);
  while (good && program_runs (&r, true)) {
  }
  int status = good ? program_status (&r) : EXIT_NO;
  good = good && program_was_seen (c, &r);
  if (good && r.block->refused)
    good = error_set (&c->err, ERR_infeasible,
                      "no trace is written: the program uses what a profile "
                      "cannot see");
  if (good && !write_trace (c, &r, output))
    good = false;
  if (r.block != &asked)
    program_clean (&r);
  return good ? status : call_failed (c);
}

static const cli_option options[] = {
  OPTION_OUTPUT ("where the trace goes"),
  { 0,
    "steps",
    "N",
    "the last N steps are read; without it, all that are alike",
    { UNITS_COUNT, 1, INT32_MAX } },
  { 0,
    "skip",
    "N",
    "the first N steps of those that are alike are not read; without it, 0",
    { UNITS_COUNT, 0, INT32_MAX } },
  OPTION_RUN_DRIVER,
  OPTION_RUN_EMULATED,
  OPTIONS_END,
};

const cli_command command_profile = {
  .name = "profile",
  .says = "watch a program, and write a trace of its step",
  .operands = "-- PROGRAM ARGUMENT...",
  .least = 1,
  .most = -1,
  .about =
      "Runs a CUDA program as it is, with a library in front of its driver, and writes a trace of "
      "the step that it repeats: its ops with their times, which tensors each touches, how long "
      "each lives. The program's exit status is passed on. docs/run.md has a session.\n",
  .options = options,
  .json = false,
  .run = run,
};
