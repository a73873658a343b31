/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans: solved, from files and memory, judged. */
#include "config.h"

#include "library/inner.h"

#include <stdlib.h>
#include <string.h>

#include "solver/policy/policy.h"
#include "solver/solve.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"
#include "trace/simulate/simulate.h"

static ferry_plan *plan_made (error *err) {
  ferry_plan *p = calloc (1, sizeof *p);
  if (!p)
    error_memory (err);
  else if (!(p->arena = library_arena (err))) {
    free (p);
    p = NULL;
  }
  return p;
}

static ferry_plan *plan_end (ferry_plan *p, ferry_error *out, error *err) {
  if (p && !p->plan && !err->code)
    error_set (err, ERR_internal, "no plan and no reason");
  if (library_told (out, err))
    return p;
  ferry_plan_free (p);
  return NULL;
}

ferry_plan *ferry_plan_load (const char *path, ferry_error *out) {
  error err = { 0 };
  ferry_plan *p = library_given (path, "the path", &err) ? plan_made (&err) : NULL;
  if (p)
    p->plan = plan_load (path, NULL, p->arena, &err);
  return plan_end (p, out, &err);
}

ferry_plan *ferry_plan_parse (const void *text, size_t size, ferry_error *out) {
  error err = { 0 };
  ferry_plan *p = library_given (text, "the text", &err) ? plan_made (&err) : NULL;
  if (p)
    p->plan = plan_parse (text, (int64_t)size, NULL, p->arena, &err);
  return plan_end (p, out, &err);
}

bool ferry_plan_store (const ferry_plan *p, const char *path, ferry_error *out) {
  error err = { 0 };
  bool ok = library_given (p, "the plan", &err) && library_given (path, "the path", &err) &&
            plan_store (p->plan, path, false, &err);
  return library_told (out, &err) && ok;
}

char *ferry_plan_text (const ferry_plan *p, size_t *size, ferry_error *out) {
  error err = { 0 };
  bytes text = { 0 };
  char *made = NULL;
  if (library_given (p, "the plan", &err) && plan_text (p->plan, false, &text, &err))
    made = library_text (&text, size, &err);
  return library_told (out, &err) ? made : NULL;
}

void ferry_plan_free (ferry_plan *p) {
  if (p)
    arena_free (p->arena);
  free (p);
}

/* ---- solving ---- */

static bool read_values (const char *text, policy_id id, arena *a, policy_values *out, error *err) {
  *out = policy_standard ();
  while (text && *text) {
    size_t length = strcspn (text, ",");
    const char *part = arena_string_n (a, text, length, err);
    if (!part || !policy_set (id, part, out, err))
      return false;
    text += length + (text[length] == ',');
  }
  return true;
}

/* A plan is of one order of the ops, so a policy that finds another has none to give here. */
static bool by_policy (const ferry_trace *t, const ferry_options *o, ask *q, ferry_plan *p,
                       error *err) {
  policy_values values;
  policy_answer found;
  policy_id id = policy_named (o->policy);
  policy_request r = { .trace = t->trace,
                       .device = &q->device,
                       .budget_bytes = q->asked_bytes,
                       .host_bytes = q->options.host_bytes,
                       .values = &values };
  if (id == POLICIES)
    return error_set (err, ERR_usage, "there is no policy `%s`", o->policy);
  if (!read_values (o->policy_options, id, p->arena, &values, err) ||
      !policy_run (id, &r, p->arena, &found, err))
    return false;
  if (!found.fits || !found.plan || found.order)
    return error_set (err, ERR_infeasible, "%s has no plan in %lld bytes for this order of the ops",
                      found.label, (long long)q->asked_bytes);
  q->options.device = &q->device;
  q->options.budget_bytes = q->asked_bytes;
  p->plan = found.plan;
  return solve_certify (t->trace, &q->options, found.label, found.plan, p->arena, err);
}

ferry_plan *ferry_solve (const ferry_trace *t, const ferry_options *o, ferry_error *out) {
  error err = { 0 };
  ask q;
  solution found;
  library_speaker speaker;
  ferry_plan *p = library_ask (t, o, &speaker, &q, &err) ? plan_made (&err) : NULL;
  if (p && speaker.options.policy) {
    if (!by_policy (t, &speaker.options, &q, p, &err))
      p->plan = NULL;
  } else if (p && ask_solve (t->trace, &q, p->arena, &found, &err)) {
    p->plan = q.options.n_starts ? plan_copy (found.plan, p->arena, &err) : found.plan;
  }
  return plan_end (p, out, &err);
}

/* ---- judging ---- */

bool ferry_plan_certificate (const ferry_plan *p, ferry_certificate *out, ferry_error *told) {
  error err = { 0 };
  if (library_given (p, "the plan", &err) &&
      library_sized (out, sizeof *out, "the certificate", &err)) {
    const certificate *c = &p->plan->certificate;
    char covers[COVER_TEXT];
    ferry_certificate made = {
      .lower_bound_ns = c->lower_bound_ns,
      .gap = c->gap,
      .bound_by = c->bound_by,
      .covers = c->has_cover ? arena_string (p->arena, cover_text (&c->cover, covers), &err) : "",
      .found_by = c->found_by,
      .limit_met = c->limit_met
    };
    if (p->plan->has_certificate)
      library_out (out, &made, sizeof made);
    else
      error_set (&err, ERR_infeasible, "the plan carries no certificate");
  }
  return library_told (told, &err);
}

static bool both_given (const ferry_trace *t, const ferry_plan *p, error *err) {
  return library_given (t, "the trace", err) && library_given (p, "the plan", err);
}

bool ferry_prove (const ferry_trace *t, const ferry_plan *p, ferry_error *out) {
  error err = { 0 };
  proved got;
  arena *scratch = both_given (t, p, &err) ? library_arena (&err) : NULL;
  predicted seen;
  bool ok = scratch && check_plan (t->trace, p->plan, scratch, NULL, &err) &&
            simulate_plan (t->trace, p->plan, scratch, &seen, &err) &&
            prove_plan (t->trace, p->plan, seen.step_ns, scratch, &got, &err);
  arena_free (scratch);
  return library_told (out, &err) && ok;
}

bool ferry_check (const ferry_trace *t, const ferry_plan *p, ferry_error *out) {
  error err = { 0 };
  arena *scratch = both_given (t, p, &err) ? library_arena (&err) : NULL;
  bool ok = scratch && check_plan (t->trace, p->plan, scratch, NULL, &err);
  arena_free (scratch);
  return library_told (out, &err) && ok;
}

static bool cost_of (const ferry_trace *t, const ferry_plan *p, predicted *out, error *err) {
  arena *scratch = both_given (t, p, err) ? library_arena (err) : NULL;
  bool ok = scratch && check_plan (t->trace, p->plan, scratch, NULL, err) &&
            simulate_plan (t->trace, p->plan, scratch, out, err);
  arena_free (scratch);
  return ok;
}

bool ferry_simulate (const ferry_trace *t, const ferry_plan *p, ferry_result *out,
                     ferry_error *told) {
  error err = { 0 };
  predicted costs = { 0 };
  if (library_sized (out, sizeof *out, "the result", &err) && cost_of (t, p, &costs, &err)) {
    ferry_result made = { .step_ns = costs.step_ns,
                          .compute_ns = costs.compute_ns,
                          .baseline_ns = costs.baseline_ns,
                          .stall_ns = costs.stall_ns,
                          .peak_bytes = costs.peak_bytes,
                          .host_peak_bytes = costs.host_peak_bytes,
                          .d2h_bytes = costs.d2h_bytes,
                          .h2d_bytes = costs.h2d_bytes,
                          .settled = costs.settled };
    library_out (out, &made, sizeof made);
  }
  return library_told (told, &err);
}

char *ferry_simulate_json (const ferry_trace *t, const ferry_plan *p, ferry_error *told) {
  error err = { 0 };
  predicted costs = { 0 };
  char *made = NULL;
  if (cost_of (t, p, &costs, &err)) {
    json_writer w;
    bytes text = { 0 };
    json_begin_object (&w, 1);
    if (p->plan->has_certificate)
      certificate_write (&w, &p->plan->certificate, false);
    predicted_write (&w, "predicted", &costs);
    json_close_object (&w);
    if (json_finish (&w, &text, &err))
      made = library_text (&text, NULL, &err);
  }
  return library_told (told, &err) ? made : NULL;
}
