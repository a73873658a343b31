/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry profile`: run a program as it is, and write a trace of the step that it repeats. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/run/emulated.h"
#include "cli/run/program.h"
#include "executor/shim/record/cupti.h"
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
  int64_t most = 0;
  steps_options o = { .name = c->operands[0],
                      .detail = r->block->by_cupti ? "CUPTI activity records"
                                                   : "event pairs around each op" };
  if (!call_quantity (c, "steps", &most) ||
      !steps_read (program_file (r, path, sizeof path, SHIM_RECORD, -1), c->arena, &s, &c->err))
    return false;
  const char *slash = strrchr (o.name, '/');
  o.name = slash ? slash + 1 : o.name;
  o.most = most;
  trace *t = steps_trace (&s, &o, c->arena, &map, &c->err);
  bool good = t && trace_store (t, output, TRACE_PLAIN, &c->err);
  steps_close (&s);
  if (good)
    tell (c, t, &map, &r->block->seen);
  return good;
}

/* Times are CUPTI's where it is; on the emulated device where it is named. */
static bool read_cupti (call *c, shim_config *o) {
  const char *given = call_text (c, "cupti");
  const char *from = given ? given : o->emulated ? "none" : CUPTI_ANY;
  o->audits = call_flag (c, "audit");
  if (strcmp (from, "none") == 0)
    return !o->audits || call_usage (c, "--audit needs CUPTI; --cupti names its library");
  return (size_t)snprintf (o->cupti, sizeof o->cupti, "%s", from) < sizeof o->cupti ||
         call_usage (c, "--cupti: the name is longer than %d characters", SHIM_PATH - 1);
}

/* Every call that makes or uses memory came through the shim, as far as CUPTI can tell. */
static bool audit (call *c, const shim_block *b) {
  const shim_audit *a = &b->audit;
  if (!b->config.audits)
    return true;
  if (!a->begun)
    return error_set (&c->err, ERR_unreachable, "no audit: CUPTI cannot be used");
  if (a->escapes > 0)
    return error_set (&c->err, ERR_infeasible,
                      "the audit found calls of the driver that ferry did not see: %lld, the first "
                      "of them %s; no trace is written",
                      (long long)a->escapes, a->first);
  if (a->launches != b->seen.launches + b->seen.own_launches)
    return error_set (&c->err, ERR_infeasible,
                      "the audit counted %lld launches, and ferry %lld; no trace is written",
                      (long long)a->launches, (long long)(b->seen.launches + b->seen.own_launches));
  call_note (c, "the audit counted %lld launches, as ferry did, and no call that ferry did not see",
             (long long)a->launches);
  return true;
}

static bool has_times (call *c, const shim_block *b) {
  return !b->by_cupti || b->cupti_ops >= b->seen.ops / 2 ||
         error_set (&c->err, ERR_infeasible,
                    "no trace is written: CUPTI told the times of %lld of %lld ops; --cupti none "
                    "measures by events",
                    (long long)b->cupti_ops, (long long)b->seen.ops);
}

/* A program that failed may have done less than its step. */
static bool has_ops (call *c, const program_run *r) {
  int status = program_status (r);
  if (r->block->seen.ops == 0)
    return error_set (&c->err, ERR_infeasible,
                      "no trace is written: %s ended with status %d before its first op",
                      c->operands[0], status);
  if (status)
    call_note (c, "%s ended with status %d; the trace is of what it did until then", c->operands[0],
               status);
  return true;
}

static int run (call *c) {
  const char *output = call_text (c, "output");
  shim_block asked = { .config = { .mode = SHIM_PROFILE, .learns = call_flag (c, "learn") } };
  program_run r = { .block = &asked };
  if (!output) {
    call_usage (c, "profile needs --output FILE for the trace");
    return call_failed (c);
  }
  bool good = program_prepare (c, &r) && read_cupti (c, &r.block->config) && program_start (c, &r);
  while (good && program_runs (&r, true)) {
  }
  int status = good ? program_status (&r) : EXIT_NO;
  good = good && program_was_seen (c, &r) && program_told (c, &r);
  if (good && r.block->refused)
    good = error_set (&c->err, ERR_infeasible,
                      "no trace is written: the program uses what a profile "
                      "cannot see");
  good = good && has_ops (c, &r) && audit (c, r.block) && has_times (c, r.block) &&
         write_trace (c, &r, output) && program_is_ordered (c, &r);
  status = good ? status : program_failed (c, &r);
  if (r.block != &asked)
    program_clean (&r);
  return status;
}

static const cli_option options[] = {
  OPTION_OUTPUT ("where the trace goes"),
  { 0,
    "steps",
    "N",
    "the last N steps are read; default: all that are alike",
    { UNITS_COUNT, 1, INT32_MAX } },
  { 0, "cupti", "FILE|none",
    "the library whose records give the times; none: pairs of events do; default: the "
    "toolkit's where it is, and none with --driver emulated" },
  { 0, "learn", NULL,
    "digests of all tensors before and after each op, in two steps: the trace then says what ops "
    "read and write" },
  { 0, "audit", NULL,
    "count the driver's calls by CUPTI too: one that ferry did not see is an error" },
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
      "Runs an unmodified CUDA program, with a library in front of its driver, and writes a trace "
      "of the step that it repeats: its ops with their times, which tensors each touches, how "
      "long each lives. The program's exit status is passed on. docs/run.md has a session.\n",
  .options = options,
  .json = false,
  .run = run,
};
