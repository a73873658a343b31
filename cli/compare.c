/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry compare`: our planner and the published policies side by side, each judged by the same
   simulator, and by the bound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/effort.h"
#include "cli/inputs/inputs.h"
#include "cli/whatif/jobs.h"
#include "cli/whatif/offline_figures.h"
#include "cli/figures/columns.h"
#include "cli/figures/picture_files.h"
#include "cli/explain/closing.h"
#include "cli/inputs/planner.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/rewriting.h"
#include "cli/inputs/stopping.h"
#include "solver/fleet/floor.h"
#include "solver/fleet/needs.h"

/* Ours up to four times, by what is allowed; each brings the bound of such plans. */
enum { MOST_BUDGETS = 64, OURS = POLICIES, OURS_DROPS, OURS_CUTS, OURS_ALL, PLANNERS };

typedef struct our_way {
  const char *name;
  allowed allowed; /* as far as the user allows it */
} our_way;

static const our_way ours[] = {
  { "ferry", SWAPS_ALONE },
  { "ferry-recompute", { .recompute = RECOMPUTE_AUTO } },
  { "ferry-sections", { .sections = SECTIONS_AUTO } },
  { "ferry-all", ALL_ALLOWED },
};

typedef struct row {
  int64_t budget_bytes, plan_ns;
  int policy;             /* a policy_id, or from OURS on */
  bool interrupted;       /* the search was: a better plan may be found */
  int64_t lower_bound_ns; /* -1: none that holds for such a plan */
  policy_answer answer;
} row;

typedef struct table {
  trace *trace;
  device device;
  int64_t peak_bytes, host_bytes;
  int64_t budgets[MOST_BUDGETS];
  int32_t n_budgets;
  int policies[PLANNERS]; /* ours first */
  int n_policies;
  int64_t limit_ticks;
  search_level level;
  places_mode placement; /* of our plans */
  allowed allowed, ours[PLANNERS - OURS];
  int32_t threads;
  char digest[TRACE_DIGEST];
  /* At the budget that is being compared, without and with recomputing; -1: none, or not known. */
  int64_t lower_bound_ns, drops_bound_ns;
  bool *any; /* a plan was found, in whichever process */
} table;

/* ---- the question ---- */

static bool add_policy (call *c, table *t, const char *name) {
  policy_id id = POLICIES;
  int which = PLANNERS - 1;
  while (which >= OURS && strcmp (name, ours[which - OURS].name) != 0)
    which--;
  if (t->n_policies == PLANNERS)
    return error_set (&c->err, ERR_usage, "a policy is named twice");
  if (which < OURS && !policy_of_name (c, name, &id))
    return false;
  t->policies[t->n_policies++] = which < OURS ? (int)id : which;
  return true;
}

/* Ours are cut down to what is allowed; one that is nothing then, or as an earlier one, is left
 * out. */
static bool cut_ours (call *c, table *t) {
  int n = 0;
  if (!rewriting_read (c, t->trace, &t->allowed))
    return false;
  for (int i = 0; i < t->n_policies; i++) {
    int way = t->policies[i] - OURS;
    bool any = way < 0 || allowed_cut (&ours[way].allowed, &t->allowed, &t->ours[way]);
    for (int k = 0; way >= 0 && any && k < n; k++)
      any = !allowed_is_same (&t->ours[t->policies[k] - OURS], &t->ours[way]);
    if (any)
      t->policies[n++] = t->policies[i];
  }
  t->n_policies = n;
  return n || error_set (&c->err, ERR_usage, "--policies names nothing that is allowed");
}

static bool read_policies (call *c, table *t) {
  const char *rest = call_text (c, "policies"), *part;
  if (!rest) {
    for (int i = OURS; i < PLANNERS; i++)
      t->policies[t->n_policies++] = i;
    for (int i = 0; i < POLICIES; i++)
      t->policies[t->n_policies++] = i;
  }
  while ((part = next_part (c, &rest)))
    if (!add_policy (c, t, part))
      return false;
  int first = 0; /* ours first, because they bring the bounds */
  for (int way = OURS; way < PLANNERS; way++)
    for (int i = first; i < t->n_policies; i++)
      if (t->policies[i] == way) {
        t->policies[i] = t->policies[first];
        t->policies[first++] = way;
      }
  return !c->err.code;
}

static bool read_table (call *c, table *t) {
  t->trace = call_trace (c, c->operands[0]);
  if (!t->trace || !trace_must_plan (t->trace, &c->err) || !device_needed (c, t->trace, &t->device))
    return false;
  t->host_bytes = t->device.host_bytes;
  return effort_read (c, LEVEL_QUICK, &t->limit_ticks, &t->level) &&
         placement_read (c, &t->placement) && trace_digest (t->trace, t->digest, &c->err) &&
         call_quantity (c, "host", &t->host_bytes) &&
         policy_plain_peak (c, t->trace, &t->device, &t->peak_bytes) &&
         policy_asked_budgets (c, &t->device, t->peak_bytes, MOST_BUDGETS, t->budgets,
                               &t->n_budgets) &&
         read_policies (c, t) && cut_ours (c, t);
}

/* The reserve is kept by all alike. */
static int64_t net_of (const table *t, int64_t budget_bytes) {
  return budget_bytes - reserve_of (budget_bytes, reserve_ppm (t->trace));
}

static int64_t count_drops (const plan *p) {
  int64_t n = 0;
  for (int32_t i = 0; i < p->n_recomputes; i++)
    n += p->recomputes[i].replaces.count;
  return n;
}

/* Our plan as an answer like the others'. */
static bool fill_ours (call *c, table *t, row *r, arena *a) {
  planner p;
  solution s;
  if (!planner_plain (&p, c, t->trace, &t->device, r->budget_bytes, t->limit_ticks, &c->err))
    return false;
  p.ask.options.host_bytes = t->host_bytes;
  allowed_into (&t->ours[r->policy - OURS], &p.ask.options);
  p.ask.options.threads = t->threads;
  p.ask.options.level = t->level;
  p.ask.options.placement = t->placement;
  r->answer.label = ours[r->policy - OURS].name;
  if (!planner_solve (c, &p, t->trace, a, &s)) {
    r->interrupted = c->err.code == ERR_interrupted;
    if (c->err.code != ERR_infeasible && c->err.code != ERR_limit && !r->interrupted)
      return false;
    r->answer.note = arena_string (a, c->err.text, NULL);
    c->err = (error){ 0 };
    memory_floor f;
    if (!floor_of (t->trace, &t->device, a, &f, &c->err))
      return false;
    r->answer.reached_bytes = f.bytes;
    return true;
  }
  if (r->policy == OURS)
    t->lower_bound_ns = s.bound.lower_bound_ns;
  else if (r->policy == OURS_DROPS && t->ours[OURS_DROPS - OURS].recompute == RECOMPUTE_AUTO)
    t->drops_bound_ns = s.bound.lower_bound_ns;
  r->interrupted = p.interrupted;
  r->answer.fits = r->answer.has_cost = true;
  r->answer.plan = s.plan;
  r->answer.cost = s.plan->predicted;
  r->answer.reached_bytes = s.plan->predicted.peak_bytes;
  r->answer.moves = s.plan->n_moves;
  r->answer.drops = count_drops (s.plan);
  return true;
}

static bool fill (call *c, table *t, row *r, arena *a) {
  policy_request request = { .trace = t->trace,
                             .device = &t->device,
                             .budget_bytes = net_of (t, r->budget_bytes),
                             .host_bytes = t->host_bytes,
                             .trace_digest = t->digest };
  int64_t start = planner_now_ns ();
  bool ok = r->policy >= OURS ? fill_ours (c, t, r, a)
                              : policy_run ((policy_id)r->policy, &request, a, &r->answer, &c->err);
  r->plan_ns = planner_now_ns () - start;
  r->lower_bound_ns =
      r->answer.drops || r->policy == OURS_DROPS ? t->drops_bound_ns : t->lower_bound_ns;
  if (ok && r->policy >= OURS && r->answer.plan)
    r->lower_bound_ns = r->answer.plan->certificate.lower_bound_ns;
  return ok;
}

/* The bound is found alone when our planner does not run. */
static bool find_bound (call *c, table *t, int64_t budget_bytes) {
  bound b;
  solve_options o = { .device = &t->device,
                      .budget_bytes = net_of (t, budget_bytes),
                      .host_bytes = t->host_bytes };
  t->lower_bound_ns = t->drops_bound_ns = -1;
  for (int i = 0; i < t->n_policies; i++)
    if (t->policies[i] == OURS)
      return true;
  arena *scratch = arena_new (0);
  if (!scratch)
    return error_memory (&c->err);
  if (solve_bound (t->trace, &o, scratch, &b, &c->err))
    t->lower_bound_ns = b.lower_bound_ns;
  else if (c->err.code == ERR_infeasible)
    c->err = (error){ 0 };
  arena_free (scratch);
  return !c->err.code;
}

/* ---- the answer ---- */

static const column heads[] = {
  { "policy", 0, true, 24 },  { "step", 0, false, 9 }, { "slower", 1, false, 9 },
  { "stall", 4, false, 9 },   { "peak", 5, false, 9 }, { "host", 2, false, 9 },
  { "out", 3, false, 9 },     { "in", 3, false, 9 },   { "gap", 1, false, 8 },
  { "planned", 1, false, 9 },
};
enum { HEADS = sizeof heads / sizeof *heads };

static columns *print_head (call *c, const table *t, int64_t budget_bytes) {
  char budget[UNITS_TEXT], peak[UNITS_TEXT];
  columns *to = columns_new (c, heads, HEADS);
  printf ("budget %s, %.0f %% of %s\n", units_bytes (budget, budget_bytes),
          t->peak_bytes ? 100.0 * (double)budget_bytes / (double)t->peak_bytes : 0,
          units_bytes (peak, t->peak_bytes));
  if (to)
    columns_start (to);
  return to;
}

static bool print_missing (columns *to, const row *r) {
  char reached[UNITS_TEXT], step[UNITS_TEXT], planned[UNITS_TEXT], rest[160];
  const policy_answer *a = &r->answer;
  const char *cells[] = { a->label, NULL };
  snprintf (rest, sizeof rest, "no plan: it reaches %s%s%s (%s)%s",
            units_bytes (reached, a->reached_bytes), a->has_cost ? ", in " : "",
            a->has_cost ? units_time (step, a->cost.step_ns) : "",
            units_time (planned, r->plan_ns / 100000 * 100000),
            r->interrupted ? ", interrupted" : "");
  return columns_row (to, cells, rest);
}

static bool print_row (columns *to, const row *r) {
  char text[HEADS][UNITS_TEXT], gap[16] = "-";
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  if (!a->fits)
    return print_missing (to, r);
  double percent =
      p->baseline_ns ? 100.0 * (double)(p->step_ns - p->baseline_ns) / (double)p->baseline_ns : 0;
  snprintf (text[2], UNITS_TEXT, "%+.1f %%", percent);
  if (r->lower_bound_ns > 0)
    snprintf (gap, sizeof gap, "%.2f %%", closing_gap (p->step_ns, r->lower_bound_ns));
  const char *cells[HEADS] = { a->label,
                               units_time (text[1], p->step_ns),
                               text[2],
                               units_time (text[3], p->stall_ns),
                               units_bytes (text[4], p->peak_bytes),
                               units_bytes (text[5], p->host_peak_bytes),
                               units_bytes (text[6], p->d2h_bytes),
                               units_bytes (text[7], p->h2d_bytes),
                               gap,
                               units_time (text[9], r->plan_ns / 100000 * 100000) };
  bool ok = columns_row (to, cells, NULL);
  if (r->interrupted)
    puts ("interrupted: a better plan may be found");
  return ok;
}

static void print_tsv (FILE *to, const row *r) {
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  fprintf (to,
           "%lld\t%s\t%s\t%d\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%"
           "lld\t%d\n",
           (long long)r->budget_bytes,
           r->policy >= OURS ? ours[r->policy - OURS].name : policy_at ((policy_id)r->policy)->name,
           a->label, a->fits, (long long)a->reached_bytes, (long long)p->step_ns,
           (long long)p->baseline_ns, (long long)p->stall_ns, (long long)p->peak_bytes,
           (long long)p->host_peak_bytes, (long long)p->d2h_bytes, (long long)p->h2d_bytes,
           (long long)a->moves, (long long)a->drops, (long long)r->lower_bound_ns,
           (long long)r->plan_ns, r->interrupted);
}

static const char tsv_head[] =
    "budget_bytes\tpolicy\tlabel\tfits\treached_bytes\tstep_ns\tbaseline_ns\tstall_ns\tpeak_bytes\t"
    "host_peak_bytes\td2h_bytes\th2d_bytes\tmoves\tdrops\tlower_bound_ns\tplan_ns\tinterrupted\n";

static bool print_json_row (call *c, const row *r, json_writer *into) {
  json_writer w;
  bytes text = { 0 };
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_int (&w, "budget_bytes", r->budget_bytes);
  if (r->interrupted)
    json_add_bool (&w, "cut_short", true);
  policy_answer_write (&w, &r->answer, r->lower_bound_ns);
  json_close_object (&w);
  bool ok = json_finish (&w, &text, &c->err);
  if (ok && into)
    json_put_raw (into, (const char *)text.data);
  else if (ok)
    printf ("%s\n", (const char *)text.data);
  bytes_free (&text);
  return ok;
}

typedef struct run_context {
  call *call;
  const table *table;
  json_writer *json;
  compared *kept; /* or NULL: then a process of its own runs each budget */
  FILE *tsv;      /* or NULL */
} run_context;

/* The part that a picture needs, out of the scratch that it lives in. */
static bool keep_row (call *c, const row *r, compared *out) {
  const policy_answer *a = &r->answer;
  char reached[UNITS_TEXT];
  *out = (compared){ .name = arena_string (c->arena, a->label, &c->err),
                     .budget_bytes = r->budget_bytes,
                     .step_ns = a->fits ? a->cost.step_ns : -1,
                     .lower_bound_ns = r->lower_bound_ns,
                     .baseline_ns = a->cost.baseline_ns,
                     .moved_bytes = a->cost.d2h_bytes + a->cost.h2d_bytes };
  if (!a->fits)
    out->note = arena_format (c->arena, &c->err, "no plan: it reaches %s",
                              units_bytes (reached, a->reached_bytes));
  return !c->err.code;
}

/* All planners at one budget; with --json each row is a line, where nothing is kept. */
static bool run_budget (void *context, int b, error *err) {
  run_context *x = context;
  call *c = x->call;
  table t = *x->table;
  bool tsv = call_text (c, "tsv"), ok = find_bound (c, &t, t.budgets[b]);
  columns *to = ok && !c->json && !tsv ? print_head (c, &t, t.budgets[b]) : NULL;
  for (int i = 0; ok && i < t.n_policies && !stopping_asked (c); i++) {
    row r = { .budget_bytes = t.budgets[b], .policy = t.policies[i] };
    arena *scratch = arena_new (0);
    ok = scratch ? fill (c, &t, &r, scratch) : error_memory (&c->err);
    *t.any |= ok && r.answer.fits;
    if (ok && c->json)
      ok = print_json_row (c, &r, x->kept ? x->json : NULL);
    else if (ok && tsv)
      print_tsv (x->kept ? x->tsv : stdout, &r);
    else if (ok)
      ok = to && print_row (to, &r);
    if (ok && x->kept)
      ok = keep_row (c, &r, &x->kept[b * t.n_policies + i]);
    arena_free (scratch);
  }
  if (to)
    columns_print (to);
  if (!ok)
    *err = c->err;
  return ok;
}

/* Lines of JSON become elements. */
static bool take_rows (void *context, int b, FILE *printed, error *err) {
  run_context *x = context;
  char *line = NULL;
  size_t room = 0;
  (void)b, (void)err;
  for (ssize_t n; (n = getline (&line, &room, printed)) > 0;) {
    line[n - (line[n - 1] == '\n')] = 0;
    json_put_raw (x->json, line);
  }
  free (line);
  return true;
}

static bool take_tsv (void *context, int b, FILE *printed, error *err) {
  run_context *x = context;
  (void)b, (void)err;
  for (int ch; (ch = getc (printed)) != EOF;)
    putc (ch, x->tsv);
  return true;
}

static bool run_all (call *c, table *t, json_writer *w, compared *kept) {
  int64_t all, jobs;
  tsv_text tsv = { 0 };
  run_context x = { c, t, w, kept, NULL };
  if (!call_jobs (c, &all))
    return false;
  jobs = kept ? 1 : all < t->n_budgets ? all : t->n_budgets;
  t->threads = (int32_t)(all / jobs);
  if (call_text (c, "tsv")) {
    if (!tsv_open (c, &tsv))
      return false;
    fputs (tsv_head, x.tsv = tsv.to);
  }
  bool ok = c->json || x.tsv || rewriting_print (stdout, c, &t->allowed);
  jobs_take *take = c->json ? take_rows : x.tsv ? take_tsv : jobs_print;
  if (kept) /* a picture wants them all in one process */
    for (int b = 0; ok && b < t->n_budgets && !stopping_asked (c); b++)
      ok = run_budget (&x, b, &c->err);
  else if (ok)
    ok = jobs_run (c, t->n_budgets, (int)jobs, run_budget, take, &x, &c->err);
  return tsv.to ? tsv_close (c, &tsv) && ok : ok;
}

static bool *shared_flag (error *err) {
  void *at = mmap (NULL, sizeof (bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at != MAP_FAILED)
    return at;
  (void)error_memory (err);
  return NULL;
}

static int run (call *c) {
  table t = { 0 };
  json_writer w;
  if (!read_table (c, &t) || !(t.any = shared_flag (&c->err)))
    return call_failed (c);
  stopping_begin (c);
  json_begin (&w, 2);
  json_open_object (&w);
  json_put_key (&w, "allowed");
  allowed_write (&w, &t.allowed);
  json_add_int (&w, "needs_bytes", t.peak_bytes);
  json_put_key (&w, "rows");
  json_open_array (&w);
  figure_page page;
  int32_t n = t.n_budgets * t.n_policies;
  bool draws = call_text (c, "svg") || call_text (c, "html");
  compared *kept = draws ? NEW (c->arena, n, compared, &c->err) : NULL;
  bool ok = (kept || !draws) && run_all (c, &t, &w, kept) &&
            (!draws || (compare_figure (t.trace, &t.device, kept, n, c->arena, &page, &c->err) &&
                        picture_drawings (c, &page)));
  json_close_array (&w);
  json_add_text (&w, "trace", t.trace->name);
  json_close_object (&w);
  if (ok && c->json)
    ok = call_print_json (c, &w);
  else
    bytes_free (&w.out);
  bool any = *t.any;
  munmap (t.any, sizeof *t.any);
  return !ok ? call_failed (c) : any || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = {
  OPTION_DEVICE,
  { 'b', "budget", "SIZE|%,...",
    "device memory that may be used, or a percentage of what the step needs with everything on the "
    "device; without it, all that the device has to give",
    RANGE_AMOUNT },
  { 0, "policies", "NAME,...",
    "only these; ours are `ferry`, `ferry-recompute`, `ferry-sections` and `ferry-all`; without "
    "it, "
    "all" },
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_PLACEMENT,
  { 'j',
    "jobs",
    "N",
    "budgets that are planned at the same time, or threads where they are fewer; without it, as "
    "many "
    "as there are processors",
    { UNITS_COUNT, 1, MOST_BUDGETS } },
  { 0, "host", "SIZE", "host memory that may be used; without it, all that the device file gives",
    RANGE_SIZE },
  OPTION_TSV,
  OPTION_WIDE,
  OPTIONS_OF_DRAWINGS,
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_compare = {
  .name = "compare",
  .says = "run our planner and the published policies side by side",
  .operands = "TRACE",
  .least = 1,
  .most = 1,
  .about =
      "Runs our planner and the policies that `ferry solve --policy list` tells of, at each "
      "budget, and prints what their plans cost on one machine model: the time of a step and "
      "its stalls, the memory on both sides, the bytes each way, the gap to the bound, and the "
      "time that planning took. A policy that cannot keep a budget says what it reaches; where "
      "none "
      "keeps any, the exit status is 1.\n"
      "Ours comes four times: `ferry` only swaps, `ferry-recompute` may drop tensors and compute "
      "them again, `ferry-sections` may run ops in parts, `ferry-all` may do both in any order of "
      "the "
      "ops; each finds what `solve` with these options finds. Where less is allowed, what is left "
      "of "
      "them comes. So does the bound: the gap of each plan is to the bound "
      "of "
      "plans that do no more than it. An interrupt ends with what is known: the row that was being "
      "planned is marked, and the exit status is 130.\n",
  .options = options,
  .json = true,
  .run = run,
};
