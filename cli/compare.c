/* `ferry compare`: the published policies side by side, each judged by the same simulator. */
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/devices.h"
#include "cli/inputs.h"
#include "cli/policies.h"

enum { MOST_BUDGETS = 64 };

typedef struct row {
  int64_t budget_bytes, plan_ns;
  policy_id policy;
  policy_answer answer;
} row;

typedef struct table {
  trace *trace;
  device device;
  int64_t peak_bytes, host_bytes;
  int64_t budgets[MOST_BUDGETS];
  int n_budgets;
  policy_id policies[POLICIES];
  int n_policies;
} table;

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
    for (int i = 0; i < POLICIES; i++)
      t->policies[t->n_policies++] = (policy_id)i;
  while ((part = next_part (c, &rest))) {
    if (t->n_policies == POLICIES)
      return error_set (&c->err, ERR_usage, "a policy is named twice");
    if (!policy_of_name (c, part, &t->policies[t->n_policies++]))
      return false;
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
         policy_plain_peak (c, t->trace, &t->device, &t->peak_bytes) && read_budgets (c, t) &&
         read_policies (c, t);
}

static bool fill (call *c, const table *t, row *r, arena *a) {
  policy_request request = { t->trace, &t->device, r->budget_bytes, t->host_bytes, NULL };
  int64_t start = now_ns ();
  bool ok = policy_run (r->policy, &request, a, &r->answer, &c->err);
  r->plan_ns = now_ns () - start;
  return ok;
}

/* ---- what is answered ---- */

static void print_head (const table *t, int64_t budget_bytes) {
  char budget[UNITS_TEXT], peak[UNITS_TEXT];
  printf ("budget %s, %.0f %% of %s\n", units_bytes (budget, budget_bytes),
          t->peak_bytes ? 100.0 * (double)budget_bytes / (double)t->peak_bytes : 0,
          units_bytes (peak, t->peak_bytes));
  printf ("  %-32s %9s %9s %9s %9s %9s %9s %8s %6s %9s\n", "policy", "step", "slower", "stall",
          "peak", "host", "out", "in", "gap", "planned");
}

static void print_row (const row *r) {
  char text[6][UNITS_TEXT], planned[UNITS_TEXT], slower[16];
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
  printf ("  %-32s %9s %9s %9s %9s %9s %9s %8s %6s %9s\n", a->label,
          units_time (text[0], p->step_ns), slower, units_time (text[1], p->stall_ns),
          units_bytes (text[2], p->peak_bytes), units_bytes (text[3], p->host_peak_bytes),
          units_bytes (text[4], p->d2h_bytes), units_bytes (text[5], p->h2d_bytes), "-", planned);
}

static void print_tsv (const row *r) {
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  printf ("%lld\t%s\t%s\t%d\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\n",
          (long long)r->budget_bytes, policy_at (r->policy)->name, a->label, a->fits,
          (long long)a->reached_bytes, (long long)p->step_ns, (long long)p->baseline_ns,
          (long long)p->stall_ns, (long long)p->peak_bytes, (long long)p->host_peak_bytes,
          (long long)p->d2h_bytes, (long long)p->h2d_bytes, (long long)a->moves,
          (long long)r->plan_ns);
}

static const char tsv_head[] =
    "budget_bytes\tpolicy\tlabel\tfits\treached_bytes\tstep_ns\tbaseline_ns\tstall_ns\tpeak_bytes\t"
    "host_peak_bytes\td2h_bytes\th2d_bytes\tmoves\tplan_ns\n";

static void put_row (json_writer *w, const row *r) {
  json_open_object (w);
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
    for (int i = 0; i < t->n_policies; i++) {
      row r = { .budget_bytes = t->budgets[b], .policy = t->policies[i] };
      arena *scratch = arena_new (0);
      bool ok =
          scratch ? fill (c, t, &r, scratch) : error_set (&c->err, ERR_memory, "out of memory");
      if (ok && c->json)
        put_row (w, &r);
      else if (ok && tsv)
        print_tsv (&r);
      else if (ok)
        print_row (&r);
      arena_free (scratch);
      if (!ok)
        return false;
    }
  }
  return true;
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
  { 0, "policies", "NAME,...", "only these; without it, all" },
  { 0, "host", "SIZE", "host memory that may be used; without it, all that the device file gives" },
  { 0, "tsv", NULL, "print the result as tab-separated values" },
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_compare = {
  .name = "compare",
  .says = "run the published policies side by side",
  .operands = "TRACE",
  .least = 1,
  .most = 1,
  .about =
      "Runs the policies that `ferry solve --policy list` tells of, at each budget, and prints "
      "what their plans cost on one machine model: the time of a step and its stalls, the "
      "memory on both sides, the bytes each way, and the time that planning took. A policy "
      "that cannot keep a budget says what it reaches.\n",
  .options = options,
  .json = true,
  .run = run,
};
