/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry replay`: what happens when a plan runs, beside what was predicted. */
#include "executor/replay/replay.h"

#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "cli/inputs/drivers.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/rank_jobs.h"
#include "cli/replay/replay_real.h"

static void print_row (const char *name, int64_t predicted_value, int64_t seen,
                       const char *(*text) (char *, int64_t)) {
  char p[UNITS_TEXT], s[UNITS_TEXT];
  printf ("%-8s  %12s  %12s", name, text (p, predicted_value), text (s, seen));
  if (predicted_value == seen)
    printf ("  equal\n");
  else if (predicted_value)
    printf ("  %+.2f %%\n", 100.0 * (double)(seen - predicted_value) / (double)predicted_value);
  else
    printf ("\n");
}

void replay_print (const replay_result *r) {
  const predicted *p = &r->predicted, *s = &r->seen;
  const trace *t = r->rewritten.trace;
  char a[UNITS_TEXT], b[UNITS_TEXT];
  printf ("%-8s  %12s  %12s  of %d step%s\n", "", "predicted", "seen", r->steps,
          r->steps == 1 ? "" : "s");
  print_row ("step", p->step_ns, s->step_ns, units_time);
  print_row ("stalls", p->stall_ns, s->stall_ns, units_time);
  print_row ("device", p->peak_bytes, s->peak_bytes, units_bytes);
  print_row ("host", p->host_peak_bytes, s->host_peak_bytes, units_bytes);
  print_row ("out", p->d2h_bytes, s->d2h_bytes, units_bytes);
  print_row ("in", p->h2d_bytes, s->h2d_bytes, units_bytes);
  printf ("starts of ops differ by %s at most, %s in the median\n", units_time (a, r->largest_ns),
          units_time (b, r->median_ns));
  for (int32_t i = 0; i < r->n_worst; i++)
    printf ("  op %-6d %-32s  %12s  %12s\n", r->worst[i].op, t->ops[r->worst[i].op].name,
            units_time (a, r->worst[i].predicted_ns), units_time (b, r->worst[i].seen_ns));
}

int replay_verdict (const replay_options *o, const replay_result *r) {
  const mismatch *m = &r->found;
  for (int i = 0; i < r->n_races && i < REPLAY_RACES; i++)
    fprintf (stderr, "ferry: race: %s\n", r->races[i].text);
  if (m->count > 0)
    fprintf (
        stderr,
        "ferry: %llu words were wrong, the first at byte %lld of tensor %lld, found by op %lld "
        "of step %lld\n",
        (unsigned long long)m->count, (long long)m->offset, (long long)m->tensor, (long long)m->op,
        (long long)m->step);
  else if (o->verify)
    printf ("every byte was where it should be\n");
  return m->count > 0 || r->n_races > 0 ? EXIT_NO : EXIT_YES;
}

/* The faults of the emulated device, and those that the run itself makes. */
static bool read_faults (call *c, replay_options *o, int64_t *spoiled_copy) {
  const char *rest = call_text (c, "fault"), *part;
  if (rest && !o->emulated)
    return call_usage (c, "--fault plants faults in the emulated device only");
  while ((part = next_part (c, &rest))) {
    const struct {
      const char *name;
      int64_t *to;
    } known[] = { { "missing=", &o->missing_bytes }, { "pinned=", &o->pinned_bytes },
                  { "copy=", &o->failed_copy },      { "lost=", &o->lost_copy },
                  { "wait=", &o->lost_wait },        { "counter=", spoiled_copy } };
    const char *value = strchr (part, '=');
    int64_t *to = NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && value; i++)
      if (strncmp (part, known[i].name, strlen (known[i].name)) == 0)
        to = known[i].to;
    error wrong = { 0 };
    if (!to || !units_parse_bytes (value + 1, to, &wrong) || *to <= 0)
      return call_usage (
          c,
          "--fault: `%s` is not missing=SIZE, pinned=SIZE, copy=N, lost=N, wait=N or "
          "counter=N",
          part);
  }
  return !c->err.code;
}

/* These say something of what is calculated, and nothing where nothing is. */
static bool check_compute (call *c, bool real, int64_t spoiled_copy) {
  static const char *const words[] = { "data", "compare", "own-kernels", "times" };
  for (size_t i = 0; i < sizeof words / sizeof words[0] && !real; i++)
    if (call_text (c, words[i]))
      return call_usage (c, "--%s goes with --compute real", words[i]);
  if (spoiled_copy > 0 && !real)
    return call_usage (c, "--fault counter=N goes with --compute real");
  return true;
}

static bool read_options_of (call *c, replay_options *o, bool *real, int64_t *spoiled_copy) {
  static const char *const clocks[] = { "real", "virtual", NULL };
  static const char *const all_or_none[] = { "all", "none", NULL };
  static const char *const computes[] = { "spin", "real", NULL };
  int compute = 0;
  if (!call_driver (c, &o->library, &o->emulated) || !call_word (c, "compute", computes, &compute))
    return false;
  *real = compute == 1;
  o->log = &c->log;
  o->verify = call_flag (c, "verify");
  o->races = call_flag (c, "races");
  int clock = o->emulated ? EMU_VIRTUAL : EMU_REAL;
  if (!call_word (c, "clock", clocks, &clock))
    return false;
  o->clock = (emu_clock)clock;
  int bytes = clock == EMU_VIRTUAL && !o->verify && !*real ? EMU_NONE : EMU_ALL;
  int64_t iterations = 0, seed = 0;
  if (!call_word (c, "bytes", all_or_none, &bytes) || !call_quantity (c, "steps", &iterations) ||
      !call_quantity (c, "fuzz", &o->fuzz_ns) || !call_quantity (c, "seed", &seed))
    return false;
  o->bytes = (emu_bytes)bytes;
  o->iterations = (int32_t)iterations;
  o->fuzz_seed = (uint64_t)seed;
  return read_faults (c, o, spoiled_copy) && check_compute (c, *real, *spoiled_copy);
}

bool replay_write_chrome (call *c, const sim_job *jobs, const replay_result *r, int32_t ranks) {
  const char *path = call_text (c, "chrome");
  if (!path)
    return true;
  bytes text = { 0 };
  bool good = replay_chrome (jobs, r, ranks, &text, &c->err) &&
              file_write (path, text.data, text.size, file_coding_of (path), &c->err);
  bytes_free (&text);
  return good;
}

/* ---- ranks ---- */

/* Each plan, then all ranks, beside what was predicted of them. */
static void print_ranks (const call *c, const rank_jobs *q, const replay_result *r) {
  int64_t start = 0, copy = 0;
  char a[UNITS_TEXT], b[UNITS_TEXT];
  bool equal = true;
  for (int32_t i = 0; i < q->pairs; i++) {
    if (q->pairs > 1)
      printf ("%s%s %s\n", i ? "\n" : "", c->operands[2 * i], c->operands[2 * i + 1]);
    replay_print (&r[i]);
  }
  for (int32_t i = 0; i < q->ranks; i++) {
    start = max_of (start, r[i].largest_ns);
    copy = max_of (copy, r[i].largest_copy_ns);
    equal &= r[i].seen.step_ns == r[i].predicted.step_ns;
  }
  printf ("%s%d rank%s on %s: %s as predicted, starts of ops differ by %s at most",
          q->pairs > 1 ? "\n" : "", q->ranks, q->ranks > 1 ? "s" : "", q->host.name,
          equal ? "steps are" : "steps are not", units_time (a, start));
  if (r->exact)
    printf (", copies by %s", units_time (b, copy));
  printf ("\n");
}

/* Says of each rank that something is wrong; that nothing is, once. */
static int verdict_of (const call *c, const replay_options *o, const replay_result *r,
                       int32_t ranks) {
  int verdict = EXIT_YES;
  for (int32_t i = 0; i < ranks; i++)
    if (r[i].found.count > 0 || r[i].n_races > 0)
      verdict = c->json ? EXIT_NO : replay_verdict (o, &r[i]);
  return c->json || verdict != EXIT_YES ? verdict : replay_verdict (o, r);
}

static bool print_ranks_json (call *c, const rank_jobs *q, const replay_result *r) {
  json_writer w;
  json_begin_object (&w, 2);
  json_add_text (&w, "host", q->host.name);
  json_add_array (&w, "ranks");
  for (int32_t i = 0; i < q->ranks; i++)
    replay_write (&w, &r[i]);
  json_close_array (&w);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run_ranks (call *c, const replay_options *o, bool real) {
  rank_jobs q = { 0 };
  int32_t broken = 0;
  replay_result *r = NEW (c->arena, HOST_MOST_CARDS, replay_result, &c->err);
  if (real)
    call_usage (c, "--compute real is for one card: leave it out, or --host");
  if (!r || real || !rank_jobs_read (c, &q) ||
      !replay_ranks (q.jobs, q.ranks, &q.host, o, c->arena, r, &broken, &c->err) ||
      !replay_write_chrome (c, q.jobs, r, q.ranks) || (c->json && !print_ranks_json (c, &q, r)))
    return call_failed (c);
  if (!c->json)
    print_ranks (c, &q, r);
  return verdict_of (c, o, r, q.ranks);
}

static int run (call *c) {
  replay_options o = { 0 };
  replay_result r;
  bool real;
  int64_t spoiled_copy = 0;
  if (!read_options_of (c, &o, &real, &spoiled_copy))
    return call_failed (c);
  if (call_given (c, "host") || host_is_asked (c))
    return run_ranks (c, &o, real);
  if (c->n_operands > 2) {
    call_usage (c, "several plans are those of ranks: give --host NAME");
    return call_failed (c);
  }
  trace *t = call_trace (c, c->operands[0]);
  plan *p = t ? call_plan (c, c->operands[1]) : NULL;
  if (p && real)
    return replay_real (c, &o, spoiled_copy, t, p);
  if (!p || !replay_run (t, p, &o, c->arena, &r, &c->err) ||
      !replay_write_chrome (c, &(sim_job){ .plan = p }, &r, 1)) {
    if (p && c->err.where[0]) /* a rule that the plan breaks */
      error_in_file (&c->err, c->operands[1]);
    return call_failed (c);
  }
  if (!c->json) {
    replay_print (&r);
    return replay_verdict (&o, &r);
  }
  bytes text = { 0 };
  bool good = replay_json (&r, &text, &c->err) && call_write (c, NULL, text.data, text.size);
  bytes_free (&text);
  return !good ? call_failed (c) : r.found.count > 0 || r.n_races > 0 ? EXIT_NO : EXIT_YES;
}

static const cli_option options[] = {
  OPTION_DRIVER,
  { 0, "host", "NAME|FILE",
    "the plans are those of ranks, each on a device of its own, that share the links of this "
    "host: a name of `ferry hosts` or a host file" },
  OPTION_RANKS,
  { 0, "clock", "real|virtual",
    "clock of the emulated device: real threads and time, or counted nanoseconds that are the "
    "same in every run (the default)" },
  { 0, "bytes", "all|none",
    "none: memory is addresses only, so a plan larger than this machine can be replayed; the "
    "default on the virtual clock" },
  { 'n',
    "steps",
    "N",
    "steps to run; default: on the virtual clock until a step repeats an earlier one, 32 at "
    "most, and else 10, or 4 with --verify, or 20 with --compute real",
    { UNITS_COUNT, 1, REPLAY_MOST_STEPS } },
  { 0, "compute", "spin|real",
    "what an op does: take its time (the default), or calculate what the trace says it is, so that "
    "the steps train (traces of `ferry zoo`; bf16 by a GPU's kernels)" },
  { 0, "data", "FILE",
    "with --compute real: a text for a language model to learn; default: a made one" },
  { 0, "compare", NULL,
    "with --compute real: do the step without the plan as well (on the CPU beside it, on a GPU "
    "before it), and compare each loss and every parameter bit for bit" },
  { 0, "own-kernels", NULL, "with --compute real on a GPU: do not use cuBLAS and cuDNN" },
  { 0, "times", "FILE",
    "with --compute real, under a plan that only keeps: write the trace with the times that the "
    "ops "
    "took, so that plans can be made for them" },
  { 0, "verify", NULL,
    "every op checks and rewrites a pattern in every byte of its tensors, in every step" },
  { 0, "races", NULL,
    "look for accesses that nothing orders, and for waits and copies of the plan that the device "
    "was not given (emulated)" },
  { 0, "fuzz", "TIME", "delay each operation by up to TIME (emulated)", RANGE_TIME },
  { 0, "seed", "N", "seed of those delays", RANGE_SEED },
  { 0, "fault", "KIND=VALUE,...",
    "missing=SIZE: this part of the reported device memory is missing; pinned=SIZE: no more is "
    "pinned; "
    "copy=N: the N-th copy fails; lost=N, wait=N: the N-th copy or wait is left out; counter=N: "
    "the "
    "N-th recomputed copy that draws random numbers draws others (emulated)" },
  { 0, "chrome", "FILE", "write what happened as a Chrome trace" },
  OPTIONS_END,
};

const cli_command command_replay = {
  .name = "replay",
  .says = "execute a plan, and compare it with its prediction",
  .operands = "TRACE PLAN [TRACE PLAN]...",
  .least = 2,
  .most = 2 * HOST_MOST_CARDS,
  .about =
      "Runs the trace's ops under the plan on a device: as kernels that take the ops' time, on the "
      "trace's streams, with "
      "the plan's copies on two streams of their own and its waits as events. The device is an "
      "emulated one unless --driver says otherwise. Exactly the plan's memory is taken on both "
      "sides.\n"
      "With --compute real the ops are calculated and the network trains: the loss of each step "
      "is printed.\n"
      "With --host the plans run at once, each in a thread on a device of its own, in step with "
      "the others, which meet in their collectives; with --ranks they are assigned in turn.\n"
      "A plan that `ferry check` refuses is refused here too. The exit status is 1 where a byte "
      "was wrong or an order was missing, or --compare found a difference.\n",
  .options = options,
  .json = true,
  .run = run,
};
