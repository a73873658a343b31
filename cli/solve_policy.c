/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/solve_policy.h"

#include <stdio.h>
#include <string.h>

#include "cli/explain/policy.h"
#include "cli/figures/plan_step.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/policies.h"
#include "solver/search/search.h"

bool solve_draw (call *c, const trace *t, const plan *p) {
  plan_step s;
  bool any;
  return !call_text (c, "html") ||
         (plan_step_of (c, t, p, c->operands[0], &s) && plan_step_draw (c, &s, &any));
}

static bool read_request (call *c, const trace *t, device *d, policy_request *r) {
  *r = (policy_request){ .trace = t, .device = d };
  if (!device_needed (c, t, d))
    return false;
  r->host_bytes = d->host_bytes;
  return policy_asked_budget (c, t, d, &r->budget_bytes) && device_host (c, d, &r->host_bytes);
}

/* Options of our own planner would be passed over in silence. */
static bool has_no_option_of_ours (call *c) {
  static const char *const ours[] = { "same-places",   "swap-only", "reserve",   "sections",
                                      "section-order", "order",     "recompute", "gap",
                                      "limit",         "seconds",   "seed",      "dump",
                                      "noise",         "tune",      "effort",    "placement",
                                      "from" };
  const char *found = call_first (c, ours, sizeof ours / sizeof *ours);
  if (!found)
    return true;
  if (strcmp (found, "dump") == 0)
    return call_usage (c, "--dump is of our own planner: a policy solves no program");
  return call_usage (c,
                     "--%s is of our own planner; a policy has --policy-opt, see `ferry solve "
                     "--policy list`",
                     found);
}

static bool write_answer (call *c, const policy_answer *a) {
  const char *output = call_text (c, "output");
  return !a->plan || !output || plan_store (a->plan, output, false, &c->err);
}

static bool print_json (call *c, const trace *t, const policy_answer *a) {
  json_writer w;
  json_begin_object (&w, 1);
  confidence_write (&w, t->source.confidence, t->source.doubt);
  policy_answer_write (&w, a, a->plan ? a->plan->certificate.lower_bound_ns : -1);
  json_close_object (&w);
  return call_print_json (c, &w);
}

bool policy_question_read (call *c, const char *name, policy_question *q) {
  if (!has_no_option_of_ours (c) || !policy_of_name (c, name, &q->id) ||
      !policy_values_of (c, q->id, call_text (c, "policy-opt"), &q->values))
    return false;
  q->given = call_trace (c, c->operands[0]);
  q->trace = q->given ? executor_trace (c, q->given) : NULL;
  if (!q->trace || !trace_must_plan (q->trace, &c->err) ||
      !read_request (c, q->trace, &q->device, &q->request))
    return false;
  q->request.values = &q->values;
  return true;
}

int solve_by_policy (call *c, const char *name) {
  const char *output = call_text (c, "output");
  policy_question q;
  policy_answer a;
  if (!policy_question_read (c, name, &q))
    return call_failed (c);
  solve_options o = { .device = &q.device,
                      .budget_bytes = q.request.budget_bytes,
                      .host_bytes = q.request.host_bytes,
                      .keep_proof = call_flag (c, "proof") };
  if (!policy_run (q.id, &q.request, c->arena, &a, &c->err) ||
      (a.plan &&
       !solve_certify (a.order ? a.order : q.trace, &o, a.label, a.plan, c->arena, &c->err)) ||
      (a.plan && !a.order && !executor_plan (c, q.given, q.trace, a.plan)) ||
      !write_answer (c, &a) || (a.plan && !solve_draw (c, q.given, a.plan)))
    return call_failed (c);
  if (c->json && !print_json (c, q.trace, &a))
    return call_failed (c);
  if (!c->json) {
    FILE *to = call_is_stdout (output) ? stderr : stdout;
    policy_answer_print (to, &a, q.request.budget_bytes);
    call_tell_doubt (to, c, q.trace);
  }
  return a.fits ? EXIT_YES : EXIT_NO;
}
