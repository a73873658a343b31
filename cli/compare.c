/* `ferry compare`: our planner and the published policies side by side, each judged by the same
   simulator, and by the bound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/inputs.h"
#include "cli/whatif/jobs.h"
#include "cli/whatif/offline_figures.h"
#include "cli/figures/picture_files.h"
#include "cli/inputs/planner.h"
#include "cli/inputs/policies.h"
#include "solver/fleet/floor.h"

/* Ours twice: swapping only, and with recomputing; each brings the bound of such plans. */
enum { MOST_BUDGETS = 64, OURS = POLICIES, OURS_DROPS, PLANNERS };
static const char *const our_names[] = { "ferry", "ferry-recompute" };

/* About two seconds of search on an ordinary machine. */
#define LIMIT_TICKS ((int64_t)1000000)

typedef struct row {
  int64_t budget_bytes, plan_ns;
  int policy;             /* a policy_id, OURS or OURS_DROPS */
  int64_t lower_bound_ns; /* -1: none that holds for such a plan */
  policy_answer answer;
} row;

typedef struct table {
  trace *trace;
  device device;
  int64_t peak_bytes, host_bytes;
  int64_t budgets[MOST_BUDGETS];
  int n_budgets;
  int policies[PLANNERS]; /* ours first */
  int n_policies;
  int64_t limit_ticks;
  char digest[TRACE_DIGEST];
  /* At the budget that is being compared, without and with recomputing; -1: none, or not known. */
  int64_t lower_bound_ns, drops_bound_ns;
} table;

/* ---- what is asked ---- */

static bool read_budgets (call *c, table *t) {
  const char *list = call_text (c, "budgets"), *one = call_text (c, "budget"), *part;
  if (list && one)
    return error_set (&c->err, ERR_usage, "give --budget or --budgets, not both");
  const char *rest = list ? list : one;
  int64_t free_bytes = t->device.memory_bytes - t->device.reserved_bytes;
  if (!rest)
    t->budgets[t->n_budgets++] = free_bytes;
  while ((part = next_part (c, &rest))) {
    if (t->n_budgets == MOST_BUDGETS)
      return error_set (&c->err, ERR_usage, "more than %d budgets", MOST_BUDGETS);
    int64_t *at = &t->budgets[t->n_budgets++];
    if (!policy_budget_of (c, part, t->peak_bytes, at))
      return false;
    char want[UNITS_TEXT], have[UNITS_TEXT];
    if (*at > free_bytes)
      return error_set (&c->err, ERR_usage, "the budget is %s, but %s leaves %s free",
                        units_bytes (want, *at), t->device.name, units_bytes (have, free_bytes));
  }
  return !c->err.code;
}

static bool add_policy (call *c, table *t, const char *name) {
  policy_id id = POLICIES;
  int which = strcmp (name, our_names[0]) == 0   ? OURS
              : strcmp (name, our_names[1]) == 0 ? OURS_DROPS
                                                 : POLICIES - 1;
  if (t->n_policies == PLANNERS)
    return error_set (&c->err, ERR_usage, "a policy is named twice");
  if (which < OURS && !policy_of_name (c, name, &id))
    return false;
  t->policies[t->n_policies++] = which < OURS ? (int)id : which;
  return true;
}

static bool read_policies (call *c, table *t) {
  const char *rest = call_text (c, "policies"), *part;
  if (!rest) {
    t->policies[t->n_policies++] = OURS;
    t->policies[t->n_policies++] = OURS_DROPS;
    for (int i = 0; i < POLICIES; i++)
      t->policies[t->n_policies++] = i;
  }
  while ((part = next_part (c, &rest)))
    if (!add_policy (c, t, part))
      return false;
  int first = 0; /* ours first, because they bring the bounds */
  for (int ours = OURS; ours < PLANNERS; ours++)
    for (int i = first; i < t->n_policies; i++)
      if (t->policies[i] == ours) {
        t->policies[i] = t->policies[first];
        t->policies[first++] = ours;
      }
  return !c->err.code;
}

static bool read_table (call *c, table *t) {
  t->trace = call_trace (c, c->operands[0]);
  if (!t->trace || !device_needed (c, t->trace, &t->device))
    return false;
  if (!trace_is_plannable (t->trace))
    return error_set (&c->err, ERR_input, "the trace is not plannable: %s",
                      t->trace->source.confidence);
  t->host_bytes = t->device.host_bytes;
  t->limit_ticks = LIMIT_TICKS;
  return call_count (c, "limit", 1, INT64_MAX / 4, &t->limit_ticks) &&
         trace_digest (t->trace, t->digest, &c->err) && call_bytes (c, "host", &t->host_bytes) &&
         policy_plain_peak (c, t->trace, &t->device, &t->peak_bytes) && read_budgets (c, t) &&
         read_policies (c, t);
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
  planner_plain (&p, c, &t->device, r->budget_bytes, t->limit_ticks);
  p.options.host_bytes = t->host_bytes;
  p.options.recompute = r->policy == OURS_DROPS ? RECOMPUTE_AUTO : RECOMPUTE_OFF;
  if (r->policy == OURS_DROPS) /* a tick of drops is some simulated events */
    p.options.limit_ticks = (t->limit_ticks + 3) / 4;
  r->answer.label = our_names[r->policy - OURS];
  if (!planner_solve (c, &p, t->trace, a, &s)) {
    if (c->err.code != ERR_infeasible && c->err.code != ERR_limit)
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
  else
    t->drops_bound_ns = s.bound.lower_bound_ns;
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
                             .budget_bytes = r->budget_bytes,
                             .host_bytes = t->host_bytes,
                             .trace_digest = t->digest };
  int64_t start = planner_now_ns ();
  bool ok = r->policy >= OURS ? fill_ours (c, t, r, a)
                              : policy_run ((policy_id)r->policy, &request, a, &r->answer, &c->err);
  r->plan_ns = planner_now_ns () - start;
  r->lower_bound_ns =
      r->answer.drops || r->policy == OURS_DROPS ? t->drops_bound_ns : t->lower_bound_ns;
  return ok;
}

/* Where our planner does not run, the bound is found alone. */
static bool find_bound (call *c, table *t, int64_t budget_bytes) {
  bound b;
  solve_options o = { .device = &t->device,
                      .budget_bytes = budget_bytes,
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

/* ---- what is answered ---- */

static void print_head (const table *t, int64_t budget_bytes) {
  char budget[UNITS_TEXT], peak[UNITS_TEXT];
  printf ("budget %s, %.0f %% of %s\n", units_bytes (budget, budget_bytes),
          t->peak_bytes ? 100.0 * (double)budget_bytes / (double)t->peak_bytes : 0,
          units_bytes (peak, t->peak_bytes));
  printf ("  %-32s %9s %9s %9s %9s %9s %9s %8s %9s %9s\n", "policy", "step", "slower", "stall",
          "peak", "host", "out", "in", "gap", "planned");
}

static void print_row (const row *r) {
  char text[6][UNITS_TEXT], planned[UNITS_TEXT], slower[16], gap[16] = "-";
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  units_time (planned, r->plan_ns / 100000 * 100000);
  if (!a->fits) {
    printf ("  %-32s %9s it reaches %s", a->label,
            "no plan:", units_bytes (text[0], a->reached_bytes));
    if (a->has_cost)
      printf (", with a step of %s", units_time (text[1], p->step_ns));
    printf (" (%s)\n", planned);
    return;
  }
  double percent =
      p->baseline_ns ? 100.0 * (double)(p->step_ns - p->baseline_ns) / (double)p->baseline_ns : 0;
  snprintf (slower, sizeof slower, "%+.1f %%", percent);
  if (r->lower_bound_ns > 0)
    snprintf (gap, sizeof gap, "%.2f %%", planner_gap (p->step_ns, r->lower_bound_ns));
  printf ("  %-32s %9s %9s %9s %9s %9s %9s %8s %9s %9s\n", a->label,
          units_time (text[0], p->step_ns), slower, units_time (text[1], p->stall_ns),
          units_bytes (text[2], p->peak_bytes), units_bytes (text[3], p->host_peak_bytes),
          units_bytes (text[4], p->d2h_bytes), units_bytes (text[5], p->h2d_bytes), gap, planned);
}

static void print_tsv (const row *r) {
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  printf (
      "%lld\t%s\t%s\t%d\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\n",
      (long long)r->budget_bytes,
      r->policy >= OURS ? our_names[r->policy - OURS] : policy_at ((policy_id)r->policy)->name,
      a->label, a->fits, (long long)a->reached_bytes, (long long)p->step_ns,
      (long long)p->baseline_ns, (long long)p->stall_ns, (long long)p->peak_bytes,
      (long long)p->host_peak_bytes, (long long)p->d2h_bytes, (long long)p->h2d_bytes,
      (long long)a->moves, (long long)a->drops, (long long)r->lower_bound_ns,
      (long long)r->plan_ns);
}

static const char tsv_head[] =
    "budget_bytes\tpolicy\tlabel\tfits\treached_bytes\tstep_ns\tbaseline_ns\tstall_ns\tpeak_bytes\t"
    "host_peak_bytes\td2h_bytes\th2d_bytes\tmoves\tdrops\tlower_bound_ns\tplan_ns\n";

static bool print_json_row (call *c, const row *r, json_writer *into) {
  json_writer w;
  bytes text = { 0 };
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_int (&w, "budget_bytes", r->budget_bytes);
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
} run_context;

/* What a picture needs of it, out of the scratch that it lives in. */
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
  bool tsv = call_flag (c, "tsv"), ok = find_bound (c, &t, t.budgets[b]);
  if (ok && !c->json && !tsv)
    print_head (&t, t.budgets[b]);
  for (int i = 0; ok && i < t.n_policies; i++) {
    row r = { .budget_bytes = t.budgets[b], .policy = t.policies[i] };
    arena *scratch = arena_new (0);
    ok = scratch ? fill (c, &t, &r, scratch) : error_memory (&c->err);
    if (ok && c->json)
      ok = print_json_row (c, &r, x->kept ? x->json : NULL);
    else if (ok && tsv)
      print_tsv (&r);
    else if (ok)
      print_row (&r);
    if (ok && x->kept)
      ok = keep_row (c, &r, &x->kept[b * t.n_policies + i]);
    arena_free (scratch);
  }
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

static bool run_all (call *c, table *t, json_writer *w, compared *kept) {
  int64_t jobs = sysconf (_SC_NPROCESSORS_ONLN) < 1 ? 1 : sysconf (_SC_NPROCESSORS_ONLN);
  jobs = jobs < t->n_budgets ? jobs : t->n_budgets;
  run_context x = { c, t, w, kept };
  if (!call_count (c, "jobs", 1, MOST_BUDGETS, &jobs))
    return false;
  if (call_flag (c, "tsv"))
    fputs (tsv_head, stdout);
  for (int b = 0; kept && b < t->n_budgets; b++) /* a picture wants them all in one process */
    if (!run_budget (&x, b, &c->err))
      return false;
  return kept || jobs_run (t->n_budgets, (int)jobs, run_budget, c->json ? take_rows : jobs_print,
                           &x, &c->err);
}

static int run (call *c) {
  table t = { 0 };
  json_writer w;
  if (!read_table (c, &t))
    return call_failed (c);
  json_begin (&w, 2);
  json_open_object (&w);
  json_add_int (&w, "peak_bytes", t.peak_bytes);
  json_put_key (&w, "rows");
  json_open_array (&w);
  figure_page page;
  bool any;
  int32_t n = t.n_budgets * t.n_policies;
  bool draws = call_text (c, "svg") || call_text (c, "html");
  compared *kept = draws ? NEW (c->arena, n, compared, &c->err) : NULL;
  bool ok = (kept || !draws) && run_all (c, &t, &w, kept) &&
            (!draws || (compare_figure (t.trace, &t.device, kept, n, c->arena, &page, &c->err) &&
                        picture_files (c, &page, &any)));
  json_close_array (&w);
  json_add_text (&w, "trace", t.trace->name);
  json_close_object (&w);
  if (ok && c->json)
    ok = call_print_json (c, &w);
  else
    bytes_free (&w.out);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  OPTION_DEVICE,
  { 'b', "budget", "SIZE|%",
    "device memory that may be used, or a percentage of the peak with "
    "everything on the device; without it, all that the device has to give" },
  { 0, "budgets", "SIZE|%,...", "several of them" },
  { 0, "policies", "NAME,...",
    "only these, `ferry` for our planner, `ferry-recompute` for it with recomputing; without it, "
    "all" },
  { 0, "limit", "TICKS", "of our planner's search at each budget; without it, about two seconds" },
  { 'j', "jobs", "N",
    "budgets that are planned at the same time; without it, as many as there are processors" },
  { 0, "host", "SIZE", "host memory that may be used; without it, all that the device file gives" },
  { 0, "tsv", NULL, "print the result as tab-separated values" },
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
      "time that planning took. A policy that cannot keep a budget says what it reaches.\n"
      "Ours comes twice: `ferry` only swaps, `ferry-recompute` may drop tensors and compute them "
      "again. So does its bound: the gap of a plan that recomputes is to the bound of all such "
      "plans without sections, that of any other to the bound of plans that only swap. Neither of "
      "ours is slower than a policy that does no more than it.\n",
  .options = options,
  .json = true,
  .run = run,
};
