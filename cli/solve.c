/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry solve`: a plan for a trace, by our planner or by a published policy (solve_policy.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/effort.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/explain/closing.h"
#include "cli/inputs/planner.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/starts.h"
#include "cli/inputs/tunings.h"
#include "cli/inputs/rewriting.h"
#include "cli/remote/remote.h"
#include "cli/solve_policy.h"
#include "cli/solve_ranks.h"
#include "solver/fleet/floor.h"
#include "solver/solve.h"
#include "trace/simulate/lost.h"
#include "trace/simulate/noise.h"

/* ---- by our planner ---- */

/* The program behind the bound, for the plan's own sections and drops. */
static bool dump_program (call *c, const planner *p, const trace *t, const plan *made,
                          const char *path, bound_stats *seen) {
  bytes text = { 0 };
  solve_options o = p->ask.options;
  rewritten rw;
  bound b;
  char budget[UNITS_TEXT];
  o.program = &text;
  o.log = NULL; /* its lines were said before */
  o.stop = NULL;
  bool ok = plan_rewrite (t, made, c->arena, &rw, &c->err) &&
            solve_bound (rw.trace, &o, c->arena, &b, &c->err);
  if (ok && !text.size)
    ok = call_usage (c, "--dump: %s in %s, so there is no program",
                     made->n_moves + made->n_sections + made->n_recomputes ? "nothing has to wait"
                                                                           : "everything fits",
                     units_bytes (budget, o.budget_bytes));
  ok = ok && call_write (c, path, text.data, text.size);
  *seen = b.stats;
  bytes_free (&text);
  return ok;
}

static void put_program (json_writer *w, const bound_stats *seen) {
  json_add_object (w, "program");
  json_add_int (w, "columns", seen->columns);
  json_add_int (w, "rows", seen->rows);
  json_add_int (w, "value_ns", llround (seen->value_ns));
  json_close_object (w);
}

/* The part of an answer beside the plan. */
typedef struct beside {
  bound_stats program;
  const plan *free;   /* the same plan without --same-places; or NULL */
  int64_t lost_bytes; /* the plan takes them beside the bytes that live */
  allowed allowed;
  const char *allowed_says;
  closing end;
} beside;

static void put_robustness (json_writer *w, const robustness *n) {
  json_add_object (w, "noise");
  json_add_int (w, "days", n->days);
  json_add_share (w, "fastest_p95", n->fastest_p95_ppm);
  json_add_share (w, "p95", n->p95_ppm);
  json_add_int (w, "percent", n->percent);
  json_add_int (w, "plans", n->plans);
  json_close_object (w);
}

static bool put_plan (call *c, const planner *p, const trace *t, const solution *s,
                      const beside *also) {
  json_writer w;
  const plan *made = s->plan;
  json_begin_object (&w, 1);
  allowed_write (&w, &also->allowed);
  json_add_int (&w, "budget_bytes", made->budget_bytes);
  json_add_int (&w, "candidates", s->candidates);
  certificate_write (&w, &made->certificate, false); /* the plan has the proof */
  confidence_write (&w, t->source.confidence, t->source.doubt);
  json_add_bool (&w, "fits", true);
  if (also->free)
    json_add_int (&w, "free_places_step_ns", also->free->predicted.step_ns);
  json_add_int (&w, "host_bytes", made->host_bytes);
  json_add_int (&w, "lost_bytes", also->lost_bytes);
  json_add_raw (&w, "made_by", made->made_by);
  json_add_int (&w, "moves", made->n_moves);
  if (s->robust.plans)
    put_robustness (&w, &s->robust);
  closing_put (&w, &also->end);
  json_add_text (&w, "placement", placement_names[made->placement.kind]);
  predicted_write (&w, "predicted", &made->predicted);
  if (also->program.rows)
    put_program (&w, &also->program);
  json_add_int (&w, "reserve_bytes", p->ask.reserve_bytes);
  json_add_int (&w, "ticks", s->ticks);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static bool put_refusal (call *c, const planner *p, const trace *t, const error *why) {
  json_writer w;
  memory_floor f;
  error fresh = { 0 };
  if (!floor_least (t, &p->ask.device, c->arena, &f, &fresh))
    return true; /* the first error is said */
  json_begin_object (&w, 1);
  json_add_int (&w, "budget_bytes", p->ask.options.budget_bytes);
  confidence_write (&w, t->source.confidence, t->source.doubt);
  json_add_bool (&w, "fits", false);
  json_add_int (&w, "floor_bytes", f.bytes);
  json_add_object (&w, "floor_op");
  json_add_text (&w, "name", t->ops[f.op].name);
  json_add_int (&w, "op", f.op);
  json_close_object (&w);
  json_add_object (&w, "floor_parts");
  json_add_int (&w, "granule_bytes", f.granule_bytes);
  json_add_int (&w, "pinned_bytes", f.pinned_bytes);
  json_add_int (&w, "pool_bytes", f.pool_bytes);
  json_add_int (&w, "touched_bytes", f.touched_bytes);
  json_add_int (&w, "workspace_bytes", f.workspace_bytes);
  json_close_object (&w);
  json_add_int (&w, "found_bytes", p->ask.least.found_bytes);
  json_add_int (&w, "host_bytes", p->ask.options.host_bytes);
  json_add_int (&w, "least_bytes", ask_with_reserve (&p->ask, f.bytes));
  json_add_text (&w, "reasons", why->more);
  json_add_text (&w, "refusal", why->code == ERR_limit ? "none_found" : "none_fits");
  json_add_int (&w, "reserve_bytes", p->ask.reserve_bytes);
  json_add_text (&w, "why", why->text);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static void tell_noise (FILE *to, const robustness *n) {
  fprintf (to, "%-8s %+9.2f %%  over compute in 95 of 100 runs in which ops vary by %d %%; ",
           "noise", (double)n->p95_ppm / 10000, n->percent);
  if (n->plans > 1)
    fprintf (to, "%+.2f %% by the fastest of %d plans as good\n",
             (double)n->fastest_p95_ppm / 10000, n->plans);
  else
    fputs ("no other plan as good was met\n", to);
}

/* The last line is the answer. */
static void tell_plan (FILE *to, const planner *p, const solution *s, const beside *also) {
  char a[UNITS_TEXT], b[UNITS_TEXT], d[UNITS_TEXT], covers[COVER_TEXT];
  const predicted *cost = &s->plan->predicted;
  const certificate *proof = &s->plan->certificate;
  double slower =
      cost->baseline_ns ? 100.0 * (double)cost->step_ns / (double)cost->baseline_ns - 100 : 0;
  fprintf (to, "%-8s %10s  %+.1f %% beside %s without a plan; %s of stalls%s\n", "step",
           units_time (a, cost->step_ns), slower, units_time (b, cost->baseline_ns),
           units_time (d, cost->stall_ns),
           cost->settled ? "" : "; the steps do not settle: an estimate");
  fprintf (to, "%-8s %10s  certified by %s; it covers %s\n", "bound",
           units_time (a, proof->lower_bound_ns), proof->bound_by,
           closing_covers (s->plan, covers));
  fprintf (to, "%-8s %10s  %s\n", "allowed", "", also->allowed_says);
  fprintf (to, "%-8s %10s  of %s%s%s; host %s of %s\n", "device", units_bytes (a, cost->peak_bytes),
           units_bytes (b, p->ask.asked_bytes), p->ask.reserve_bytes ? ", less a reserve of " : "",
           p->ask.reserve_bytes ? units_bytes (d, p->ask.reserve_bytes) : "",
           units_bytes ((char[UNITS_TEXT]){ 0 }, cost->host_peak_bytes),
           units_bytes ((char[UNITS_TEXT]){ 0 }, p->ask.options.host_bytes));
  fprintf (to, "%-8s %10s  of it lost beside the bytes that live, in %s\n", "places",
           units_bytes (a, also->lost_bytes),
           s->plan->placement.kind == PLACEMENT_ARENA ? "one arena" : "granules");
  fprintf (to, "%-8s %10s  out and %s in, a step, in %d moves, %d of them clean\n", "copies",
           units_bytes (a, cost->d2h_bytes), units_bytes (b, cost->h2d_bytes), s->plan->n_moves,
           s->plan->n_moves - s->plan->n_outs);
  fprintf (to, "%-8s %10s  after %lld candidates%s%s\n", "found by", proof->found_by,
           (long long)s->candidates, proof->limit_met ? "; the search ended by its limit: " : "",
           proof->limit_met ? proof->limit_met : "");
  if (also->free)
    fprintf (to, "%-8s %+9.1f %%  since every stay keeps its granules: %s where none has to\n",
             "places", 100.0 * (double)cost->step_ns / (double)also->free->predicted.step_ns - 100,
             units_time (a, also->free->predicted.step_ns));
  if (s->robust.plans)
    tell_noise (to, &s->robust);
  closing_print (to, &also->end);
}

/* The same once more without --same-places. */
static bool solve_freely (call *c, const planner *p, const trace *t, beside *also) {
  planner freely = *p;
  solution s;
  freely.ask.options.same_places = freely.ask.options.keep_proof = false;
  if (!planner_solve (c, &freely, t, c->arena, &s))
    return false;
  also->free = s.plan;
  return true;
}

typedef struct question {
  const trace *given, *trace; /* as it is, and as its executor can carry it out */
  planner p;
} question;

/* A question is checked completely before work on it begins, here or on a server. */
static bool read_question (call *c, question *q) {
  if (call_text (c, "policy-opt"))
    return call_usage (c, "--policy-opt needs --policy");
  q->given = call_trace (c, c->operands[0]);
  q->trace = q->given ? executor_trace (c, q->given) : NULL;
  if (!q->trace || !planner_read (c, q->trace, &q->p))
    return false;
  solve_options *o = &q->p.ask.options;
  return executor_places (c, q->given, &o->same_places, &o->placement) &&
         starts_read (c, q->given, q->trace, &q->p.ask);
}

/* Without a plan the answer is no, proved or not: a limit has its own status only if there is a
   plan. */
static int refused (call *c, const planner *p, const trace *t) {
  error why = c->err;
  if (why.code != ERR_infeasible && why.code != ERR_limit)
    return call_failed (c);
  if (c->json && !put_refusal (c, p, t, &why))
    return call_failed (c);
  c->err = why;
  c->err.code = ERR_infeasible;
  return call_failed (c);
}

static int solve_by_plan (call *c) {
  question q;
  solution s;
  beside also = { .end = { 0 } };
  const char *output = call_text (c, "output"), *dump = call_text (c, "dump");
  if (!read_question (c, &q))
    return call_failed (c);
  planner p = q.p;
  const trace *given = q.given, *t = q.trace;
  if (!planner_solve (c, &p, t, c->arena, &s))
    return refused (c, &p, t);
  allowed most = executor_most (c, t);
  also.end.plan = s.plan;
  also.allowed = allowed_of (&p.ask.options);
  also.allowed_says = allowed_text (&also.allowed, c->arena, &c->err);
  if (!also.allowed_says || !lost_bytes (t, s.plan, c->arena, &also.lost_bytes, &c->err) ||
      !executor_plan (c, given, t, s.plan) ||
      (output && !plan_store (s.plan, output, false, &c->err)) || !solve_draw (c, given, s.plan) ||
      (dump && !dump_program (c, &p, t, s.plan, dump, &also.program)) ||
      (p.ask.options.same_places && !p.interrupted && !solve_freely (c, &p, t, &also)) ||
      (!p.interrupted && !closing_of (t, &p.ask, &most, s.plan, &also.end, &c->err)) ||
      (c->json && !put_plan (c, &p, t, &s, &also)))
    return call_failed (c);
  FILE *to = call_is_stdout (output) || call_is_stdout (dump) ? stderr : stdout;
  if (!c->json)
    tell_plan (to, &p, &s, &also);
  if (c->verbose)
    tunings_tell (&p.stats);
  if (!c->json)
    call_tell_doubt (to, c, t);
  bool short_of_it = call_text (c, "gap") && s.plan->certificate.limit_met;
  return short_of_it ? error_exit_status (ERR_limit) : EXIT_YES;
}

/* ---- by a server ---- */

static int solve_there (call *c, const char *name) {
  question own;
  policy_question by;
  remote_question q = { 0 };
  bool ok =
      remote_can (c) && (name ? policy_question_read (c, name, &by) : read_question (c, &own));
  if (ok && name)
    q = (remote_question){ by.given, &by.device, by.request.budget_bytes, true };
  else if (ok)
    q = (remote_question){ own.given, &own.p.ask.device, own.p.ask.asked_bytes, false };
  return ok ? remote_solve (c, &q) : call_failed (c);
}

static int refuse_several (call *c, const char *policy) {
  if (policy)
    call_usage (c, "--policy decides for one TRACE");
  else if (c->n_operands == 2)
    call_usage (c,
                "two traces are ranks of one host: give --host NAME (`ferry hosts`); two profiles "
                "of one run become a trace by `ferry import %s %s -o TRACE`",
                c->operands[0], c->operands[1]);
  else
    call_usage (c,
                "several traces are ranks of one host: give --host NAME; `ferry hosts` lists the "
                "names");
  return call_failed (c);
}

static int run (call *c) {
  const char *name = call_text (c, "policy"), *tune = call_text (c, "tune");
  if (tune && strcmp (tune, "list") == 0) {
    tunings_list ();
    return EXIT_YES;
  }
  if (name && strcmp (name, "list") == 0) {
    if (c->json)
      return policies_list_json (c) ? EXIT_YES : call_failed (c);
    policies_list ();
    return EXIT_YES;
  }
  if (c->n_operands == 0) {
    call_usage (c, "solve needs a TRACE; see `ferry solve --help`");
    return call_failed (c);
  }
  if (host_is_asked (c) && !name)
    return solve_ranks (c);
  if (c->n_operands > 1)
    return refuse_several (c, name);
  if (call_text (c, "server"))
    return solve_there (c, name);
  return name ? solve_by_policy (c, name) : solve_by_plan (c);
}

static const cli_option options[] = {
  OPTION_DEVICE,
  { 'b', "budget", "SIZE|%",
    "device memory that may be used, or a percentage of what the step needs with "
    "everything on the device; default: all that the device has to give",
    RANGE_AMOUNT },
  OPTION_HOST_OR_MEMORY,
  OPTION_RANKS,
  { 0, "reserve", "SIZE|%",
    "part of the budget to keep free; default: nothing where the trace is "
    "exact, 3 % where it is approximate, 5 % where only touches are known",
    RANGE_AMOUNT },
  OPTION_OUTPUT ("where the plan goes; compressed if it ends in .gz or .zst"),
  { 0, "html", "FILE", "the answer as one page: the step before and after, with every tensor" },
  OPTIONS_OF_REWRITING,
  { 0, "section-order", "auto|level|depth",
    "all parts of an op before the next op, or each part "
    "through a chain of ops; default: auto" },
  { 0, "gap", "%", "good enough: this close to the bound; default: 0.5%", RANGE_SHARE },
  OPTIONS_OF_EFFORT ("normal"),
  { 'j',
    "jobs",
    "N",
    "threads that search side by side, to the same plan; default: as many as there are "
    "processors",
    { UNITS_COUNT, 1, 256 } },
  { 0, "seed", "N", "seed of the search; default: 1", RANGE_SEED },
  { 0, "from", "FILE,...",
    "known plans of this trace, of whatever budget and card: the answer is no slower than one that "
    "is legal here, and their orders, cuts and drops are tried" },
  { 0,
    "noise",
    "%",
    "among equally fast plans, prefer the one that suffers least when each op takes up to this "
    "part more or less; default: the first found",
    { UNITS_SHARE, 10000, NOISE_MOST_PERCENT * 10000 } },
  { 0, "same-places", NULL,
    "keep every stay of a tensor on the same granules, for programs whose addresses must not "
    "change; the answer says what that costs" },
  OPTION_PLACEMENT,
  OPTION_FOR,
  { 0, "tune", "NAME=VALUE,...|list",
    "for developers: change a number of the search, or switch a strategy off; list: print them" },
  { 0, "proof", NULL, "keep in the plan what `ferry prove` needs" },
  { 0, "dump", "FILE",
    "write the program whose optimum bounds the stalls, in the LP format of CPLEX" },
  { 'p', "policy", "NAME|list", "decide by a published policy; list tells what there is" },
  { 0, "policy-opt", "KEY=VALUE,...", "options of the policy" },
  OPTION_SERVER,
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_solve = {
  .name = "solve",
  .says = "make a plan, and say how good it can be",
  .operands = "TRACE...",
  .least = 0,
  .most = HOST_MOST_CARDS,
  .about =
      "Finds a plan for a budget, checks it, and prints what it costs on the machine model beside "
      "a certified bound that no plan can beat. The answer is the last line; docs/solve.md reads "
      "it line by line. Where no plan fits, or none was found, the budget to ask for is named, "
      "and the exit status is 1; -v says why.\n"
      "The exit status is 0 if a plan was found, and 4 if a limit ended the search before --gap "
      "was reached. An interrupt ends the search too: the best plan so far is written, and the "
      "exit status is 130. A second one ends the program.\n"
      "With --host NAME ranks are planned together, one on each card: of one TRACE equal ones, of "
      "several each its own. Further plans go to FILE with .1, .2, ... before its ending, in the "
      "order of ranks.\n"
      "With --policy a published policy decides. If it cannot keep the budget, no plan is "
      "written, the message names what it reaches, and the exit status is 1.\n",
  .options = options,
  .json = true,
  .run = run,
};
