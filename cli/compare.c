/* `ferry compare`: the published policies side by side, each judged by the same simulator. */
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/devices.h"
#include "cli/inputs.h"
#include "cli/policies.h"
#include "solver/solve.h"

enum { MOST_BUDGETS = 64 };

/* POLICIES stands for ferry's own planner. */
typedef struct row {
  int64_t budget_bytes, plan_ns, bound_ns; /* 0: not known */
  policy_id policy;
  policy_answer answer;
} row;

typedef struct table {
  trace *trace;
  device device;
  int64_t peak_bytes, host_bytes;
  int64_t budgets[MOST_BUDGETS];
  int n_budgets;
  int64_t limit_ticks;
  policy_id policies[POLICIES + 1];
  int n_policies;
  char digest[TRACE_DIGEST];
} table;

static const char ours[] = "ferry";
#define LIMIT_TICKS ((int64_t)2000000) /* of ferry's own search: seconds, not minutes */

static int64_t now_ns (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

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

static bool read_policies (call *c, table *t) {
  const char *rest = call_text (c, "policies"), *part;
  if (!rest)
    for (int i = 0; i <= POLICIES; i++)
      t->policies[t->n_policies++] = (policy_id)(i ? i - 1 : POLICIES);
  while ((part = next_part (c, &rest))) {
    if (t->n_policies == POLICIES + 1)
      return error_set (&c->err, ERR_usage, "a policy is named twice");
    policy_id *at = &t->policies[t->n_policies++];
    *at = POLICIES;
    if (strcmp (part, ours) != 0 && !policy_of_name (c, part, at))
      return false;
  }
  for (int i = 1; i < t->n_policies; i++) /* first, because it brings the bound */
    if (t->policies[i] == POLICIES) {
      t->policies[i] = t->policies[0];
      t->policies[0] = POLICIES;
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
  return call_bytes (c, "host", &t->host_bytes) &&
         call_count (c, "ticks", 1, INT64_MAX, &t->limit_ticks) &&
         trace_digest (t->trace, t->digest, &c->err) &&
         policy_plain_peak (c, t->trace, &t->device, &t->peak_bytes) && read_budgets (c, t) &&
         read_policies (c, t);
}

/* The planner's answer as if it were a policy's. */
static bool fill_ours (call *c, const table *t, row *r, arena *a) {
  solution found;
  error why = { 0 };
  solve_options o = { .device = &t->device,
                      .budget_bytes = r->budget_bytes,
                      .host_bytes = t->host_bytes,
                      .limit_ticks = t->limit_ticks };
  r->answer = (policy_answer){ .label = ours };
  if (!solve (t->trace, &o, a, &found, &why)) {
    if (why.code != ERR_infeasible)
      return error_set (&c->err, why.code, "%s", why.text);
    r->answer.note = arena_string (a, why.text, &c->err);
    return r->answer.note;
  }
  r->bound_ns = found.bound.lower_bound_ns;
  r->answer.plan = found.plan;
  r->answer.fits = r->answer.has_cost = true;
  r->answer.cost = found.plan->predicted;
  r->answer.reached_bytes = r->answer.cost.peak_bytes;
  r->answer.moves = found.plan->n_moves;
  r->answer.note = found.plan->certificate.found_by;
  return true;
}

static bool fill (call *c, const table *t, row *r, arena *a) {
  policy_request request = { .trace = t->trace,
                             .device = &t->device,
                             .budget_bytes = r->budget_bytes,
                             .host_bytes = t->host_bytes,
                             .trace_digest = t->digest };
  int64_t start = now_ns ();
  bool ok = r->policy == POLICIES ? fill_ours (c, t, r, a)
                                  : policy_run (r->policy, &request, a, &r->answer, &c->err);
  r->plan_ns = now_ns () - start;
  return ok;
}

/* Over the bound, in percent; the bound covers plans that recompute nothing. */
static bool gap_of (const row *r, double *percent) {
  const policy_answer *a = &r->answer;
  bool known = a->fits && r->bound_ns > 0 && a->drops == 0;
  if (known)
    *percent = 100.0 * (double)(a->cost.step_ns - r->bound_ns) / (double)r->bound_ns;
  return known;
}

/* ---- what is answered ---- */

static void print_head (const table *t, int64_t budget_bytes) {
  char budget[UNITS_TEXT], peak[UNITS_TEXT];
  printf ("budget %s, %.0f %% of %s\n", units_bytes (budget, budget_bytes),
          t->peak_bytes ? 100.0 * (double)budget_bytes / (double)t->peak_bytes : 0,
          units_bytes (peak, t->peak_bytes));
  printf ("  %-32s %9s %9s %9s %9s %9s %9s %8s %8s %9s\n", "policy", "step", "slower", "stall",
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
    printf (", with a step of %s (%s)\n", units_time (text[1], p->step_ns), planned);
    return;
  }
  double percent =
      p->baseline_ns ? 100.0 * (double)(p->step_ns - p->baseline_ns) / (double)p->baseline_ns : 0;
  double over;
  if (gap_of (r, &over))
    snprintf (gap, sizeof gap, "%.1f %%", over);
  snprintf (slower, sizeof slower, "%+.1f %%", percent);
  printf ("  %-32s %9s %9s %9s %9s %9s %9s %8s %8s %9s\n", a->label,
          units_time (text[0], p->step_ns), slower, units_time (text[1], p->stall_ns),
          units_bytes (text[2], p->peak_bytes), units_bytes (text[3], p->host_peak_bytes),
          units_bytes (text[4], p->d2h_bytes), units_bytes (text[5], p->h2d_bytes), gap, planned);
}

static void print_tsv (const row *r) {
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  printf (
      "%lld\t%s\t%s\t%d\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\n",
      (long long)r->budget_bytes, r->policy == POLICIES ? ours : policy_at (r->policy)->name,
      a->label, a->fits, (long long)a->reached_bytes, (long long)p->step_ns,
      (long long)p->baseline_ns, (long long)p->stall_ns, (long long)p->peak_bytes,
      (long long)p->host_peak_bytes, (long long)p->d2h_bytes, (long long)p->h2d_bytes,
      (long long)a->moves, (long long)a->drops, (long long)r->bound_ns, (long long)r->plan_ns);
}

static const char tsv_head[] =
    "budget_bytes\tpolicy\tlabel\tfits\treached_bytes\tstep_ns\tbaseline_ns\tstall_ns\tpeak_bytes\t"
    "host_peak_bytes\td2h_bytes\th2d_bytes\tmoves\tdrops\tbound_ns\tplan_ns\n";

static void put_row (json_writer *w, const row *r) {
  json_open_object (w);
  json_add_int (w, "bound_ns", r->bound_ns);
  json_add_int (w, "budget_bytes", r->budget_bytes);
  policy_answer_write (w, &r->answer);
  json_close_object (w);
}

static bool run_all (call *c, const table *t, json_writer *w) {
  bool tsv = call_flag (c, "tsv");
  if (tsv)
    fputs (tsv_head, stdout);
  for (int b = 0; b < t->n_budgets; b++) {
    if (!c->json && !tsv)
      print_head (t, t->budgets[b]);
    int64_t bound_ns = 0;
    for (int i = 0; i < t->n_policies; i++) {
      row r = { .bound_ns = bound_ns, .budget_bytes = t->budgets[b], .policy = t->policies[i] };
      arena *scratch = arena_new (0);
      bool ok =
          scratch ? fill (c, t, &r, scratch) : error_set (&c->err, ERR_memory, "out of memory");
      if (ok && c->json)
        put_row (w, &r);
      else if (ok && tsv)
        print_tsv (&r);
      else if (ok)
        print_row (&r);
      bound_ns = r.bound_ns;
      arena_free (scratch);
      if (!ok)
        return false;
    }
  }
  return true;
}

static int run (call *c) {
  table t = { .limit_ticks = LIMIT_TICKS };
  json_writer w;
  if (!read_table (c, &t))
    return call_failed (c);
  json_begin (&w, 2);
  json_open_object (&w);
  json_add_int (&w, "peak_bytes", t.peak_bytes);
  json_put_key (&w, "rows");
  json_open_array (&w);
  bool ok = run_all (c, &t, &w);
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
  { 0, "policies", "NAME,...", "only these (ferry is the planner); without it, all" },
  { 0, "host", "SIZE", "host memory that may be used; without it, all that the device file gives" },
  { 0, "ticks", "N", "effort of ferry's own search, in simulated events or their like" },
  { 0, "tsv", NULL, "print the result as tab-separated values" },
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_compare = {
  .name = "compare",
  .says = "run the published policies and ferry's own side by side",
  .operands = "TRACE",
  .least = 1,
  .most = 1,
  .about = "Runs ferry's own planner and the policies that `ferry solve --policy list` tells of, "
           "at each budget, and prints "
           "what their plans cost on one machine model: the time of a step and its stalls, the "
           "memory on both sides, the bytes each way, and the time that planning took. A policy "
           "that cannot keep a budget says what it reaches.\n",
  .options = options,
  .json = true,
  .run = run,
};
