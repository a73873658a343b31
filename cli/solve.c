/* `ferry solve`: a plan for a trace, by one of the published policies. */
#include <string.h>

#include "base/units.h"
#include "cli/devices.h"
#include "cli/inputs.h"
#include "cli/policies.h"

static bool read_request (call *c, const trace *t, device *d, policy_request *r) {
  *r = (policy_request){ .trace = t, .device = d };
  if (!device_needed (c, t, d))
    return false;
  r->budget_bytes = d->memory_bytes - d->reserved_bytes;
  r->host_bytes = d->host_bytes;
  return call_bytes (c, "budget", &r->budget_bytes) && call_bytes (c, "host", &r->host_bytes);
}

static bool print_json (call *c, const policy_answer *a) {
  json_writer w;
  json_begin (&w, 1);
  json_open_object (&w);
  policy_answer_write (&w, a);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static void print_text (const policy_answer *a, int64_t budget_bytes) {
  char step[UNITS_TEXT], stall[UNITS_TEXT], peak[UNITS_TEXT], host[UNITS_TEXT], out[UNITS_TEXT];
  char in[UNITS_TEXT], budget[UNITS_TEXT];
  const predicted *p = &a->cost;
  if (!a->fits)
    printf ("%s does not fit in %s; it reaches %s\n", a->label, units_bytes (budget, budget_bytes),
            units_bytes (peak, a->reached_bytes));
  if (a->has_cost)
    printf ("%-8s %10s  with %s of stalls, %lld moves and %lld drops\n", a->fits ? "step" : "there",
            units_time (step, p->step_ns), units_time (stall, p->stall_ns), (long long)a->moves,
            (long long)a->drops);
  if (a->has_cost)
    printf ("%-8s %10s  host %s; %s out and %s in, a step\n", "device",
            units_bytes (peak, p->peak_bytes), units_bytes (host, p->host_peak_bytes),
            units_bytes (out, p->d2h_bytes), units_bytes (in, p->h2d_bytes));
  if (a->note)
    printf ("%-8s %s\n", "note", a->note);
}

static int run (call *c) {
  const char *name = call_text (c, "policy"), *output = call_text (c, "output");
  if (!name) {
    error_set (&c->err, ERR_usage, "give --policy NAME; `ferry solve --policy list` lists them");
    return call_failed (c);
  }
  if (strcmp (name, "list") == 0) {
    if (c->json)
      return policies_list_json (c) ? EXIT_YES : call_failed (c);
    policies_list ();
    return EXIT_YES;
  }
  if (c->n_operands != 1) {
    error_set (&c->err, ERR_usage, "solve needs a TRACE; see `ferry solve --help`");
    return call_failed (c);
  }
  policy_id id;
  policy_values values;
  policy_request r;
  policy_answer a;
  device d;
  if (!policy_of_name (c, name, &id) ||
      !policy_values_of (c, id, call_text (c, "policy-opt"), &values))
    return call_failed (c);
  trace *t = call_trace (c, c->operands[0]);
  if (!t || !read_request (c, t, &d, &r))
    return call_failed (c);
  if (!trace_is_plannable (t)) {
    error_set (&c->err, ERR_input, "the trace is not plannable: %s", t->source.confidence);
    return call_failed (c);
  }
  r.values = &values;
  if (!policy_run (id, &r, c->arena, &a, &c->err) ||
      (a.plan && output && !plan_store (a.plan, output, false, &c->err)))
    return call_failed (c);
  if (c->json && !print_json (c, &a))
    return call_failed (c);
  if (!c->json)
    print_text (&a, r.budget_bytes);
  return a.fits ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = {
  { 'p', "policy", "NAME|list", "decide by a published policy; list tells what there is" },
  { 0, "policy-opt", "KEY=VALUE,...", "options of the policy" },
  OPTION_DEVICE,
  OPTION_BUDGET,
  { 0, "host", "SIZE", "host memory that may be used; without it, all that the device file gives" },
  OPTION_OUTPUT ("where the plan goes; compressed if it ends in .gz or .zst"),
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_solve = {
  .name = "solve",
  .says = "make a plan",
  .operands = "TRACE",
  .least = 0,
  .most = 1,
  .about = "Makes a plan by one of the published policies, checks it, and prints what it costs on "
           "the machine model. Where the policy cannot keep the budget, no plan is written; what "
           "it reaches is said, and the exit status is 1.\n",
  .options = options,
  .json = true,
  .run = run,
};
