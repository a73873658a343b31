/* The public library: the internal functions behind opaque types. Everything that a call allocates
   lives in the arena of the object that it returns, or of the call itself. */
#include "config.h"

#include "ferry.h"

#include <stdio.h>
#include <stdlib.h>

#include "solver/fleet/floor.h"
#include "solver/solve.h"
#include "trace/check/check.h"
#include "trace/plan.h"
#include "trace/prove/prove.h"
#include "trace/simulate/simulate.h"
#include "trace/summary.h"
#include "trace/trace.h"

struct ferry_trace {
  arena *arena;
  trace *trace;
  int64_t peak_bytes;
};

struct ferry_plan {
  arena *arena;
  plan *plan;
};

const char *ferry_version (void) {
  return PACKAGE_VERSION;
}

/* Tells the caller, who may not want to know; returns whether all is well. */
static bool told (ferry_error *out, const error *err) {
  if (out) {
    *out = (ferry_error){ .exit_status = error_exit_status (err->code) };
    if (err->code)
      error_line (err, out->text, sizeof out->text);
  }
  return err->code == ERR_none;
}

static arena *arena_or_error (error *err) {
  arena *a = arena_new (0);
  if (!a)
    error_memory (err);
  return a;
}

ferry_trace *ferry_trace_load (const char *path, ferry_error *out) {
  error err = { 0 };
  ferry_trace *t = calloc (1, sizeof *t);
  summary about;
  if (!t)
    error_memory (&err);
  else if ((t->arena = arena_or_error (&err)) &&
           (t->trace = trace_load (path, NULL, t->arena, &err)) &&
           summary_of (t->trace, t->arena, &about, &err))
    t->peak_bytes = about.peak_bytes;
  if (told (out, &err))
    return t;
  ferry_trace_free (t);
  return NULL;
}

void ferry_trace_free (ferry_trace *t) {
  if (t)
    arena_free (t->arena);
  free (t);
}

int64_t ferry_trace_peak_bytes (const ferry_trace *t) {
  return t->peak_bytes;
}

ferry_plan *ferry_plan_load (const char *path, ferry_error *out) {
  error err = { 0 };
  ferry_plan *p = calloc (1, sizeof *p);
  if (!p)
    error_memory (&err);
  else if ((p->arena = arena_or_error (&err)))
    p->plan = plan_load (path, NULL, p->arena, &err);
  if (told (out, &err))
    return p;
  ferry_plan_free (p);
  return NULL;
}

bool ferry_plan_store (const ferry_plan *p, const char *path, ferry_error *out) {
  error err = { 0 };
  bool ok = plan_store (p->plan, path, false, &err);
  return told (out, &err) && ok;
}

void ferry_plan_free (ferry_plan *p) {
  if (p)
    arena_free (p->arena);
  free (p);
}

static bool solve_into (const ferry_trace *t, const ferry_options *o, ferry_plan *p, error *err) {
  device d;
  solution found;
  if (!o->device_path)
    return error_set (err, ERR_usage, "no device: give a device file");
  if (!device_load (o->device_path, NULL, p->arena, &d, err))
    return false;
  int64_t free_bytes = d.memory_bytes - d.reserved_bytes;
  solve_options s = { .device = &d,
                      .budget_bytes = o->budget_bytes ? o->budget_bytes : free_bytes,
                      .host_bytes = o->host_bytes ? o->host_bytes : d.host_bytes,
                      .gap_ppm = o->gap_ppm,
                      .limit_ticks = o->limit_ticks,
                      .seed = o->seed,
                      .keep_proof = o->keep_proof,
                      .stop = o->stop,
                      .stop_context = o->stop_context };
  if (s.budget_bytes < 0 || s.budget_bytes > free_bytes || s.host_bytes < 0 ||
      s.host_bytes > d.host_bytes || s.gap_ppm < 0 || s.limit_ticks < 0)
    return error_set (err, ERR_usage,
                      "a budget of %lld bytes and %lld of the host: %s has %lld and %lld to give",
                      (long long)s.budget_bytes, (long long)s.host_bytes, d.name,
                      (long long)free_bytes, (long long)d.host_bytes);
  if (!trace_is_plannable (t->trace))
    return error_set (err, ERR_input, "the trace is not plannable: %s",
                      t->trace->source.confidence);
  if (!solve (t->trace, &s, p->arena, &found, err))
    return err->code == ERR_infeasible
               ? floor_refuse (
                     t->trace, &d,
                     &(floor_request){ .budget_bytes = s.budget_bytes, .host_bytes = s.host_bytes },
                     err)
               : false;
  p->plan = found.plan;
  return true;
}

ferry_plan *ferry_solve (const ferry_trace *t, const ferry_options *o, ferry_error *out) {
  error err = { 0 };
  ferry_plan *p = calloc (1, sizeof *p);
  if (!p)
    error_memory (&err);
  else if ((p->arena = arena_or_error (&err)) && !solve_into (t, o, p, &err) && !err.code)
    error_set (&err, ERR_internal, "no plan and no reason");
  if (told (out, &err))
    return p;
  ferry_plan_free (p);
  return NULL;
}

bool ferry_plan_certificate (const ferry_plan *p, ferry_certificate *out) {
  const certificate *c = &p->plan->certificate;
  if (!p->plan->has_certificate)
    return false;
  *out = (ferry_certificate){ c->lower_bound_ns, c->gap, c->bound_by, c->found_by, c->limit_met };
  return true;
}

bool ferry_prove (const ferry_trace *t, const ferry_plan *p, ferry_error *out) {
  error err = { 0 };
  proved got;
  arena *scratch = arena_or_error (&err);
  bool ok = scratch && prove_plan (t->trace, p->plan, scratch, &got, &err);
  arena_free (scratch);
  return told (out, &err) && ok;
}

bool ferry_check (const ferry_trace *t, const ferry_plan *p, ferry_error *out) {
  error err = { 0 };
  arena *scratch = arena_or_error (&err);
  bool ok = scratch && check_plan (t->trace, p->plan, scratch, NULL, &err);
  arena_free (scratch);
  return told (out, &err) && ok;
}

bool ferry_simulate (const ferry_trace *t, const ferry_plan *p, ferry_result *result,
                     ferry_error *out) {
  error err = { 0 };
  predicted costs = { 0 };
  arena *scratch = arena_or_error (&err);
  bool ok = scratch && simulate_plan (t->trace, p->plan, scratch, &costs, &err);
  arena_free (scratch);
  if (!told (out, &err) || !ok)
    return false;
  *result = (ferry_result){
    .step_ns = costs.step_ns,
    .compute_ns = costs.compute_ns,
    .baseline_ns = costs.baseline_ns,
    .stall_ns = costs.stall_ns,
    .peak_bytes = costs.peak_bytes,
    .host_peak_bytes = costs.host_peak_bytes,
    .d2h_bytes = costs.d2h_bytes,
    .h2d_bytes = costs.h2d_bytes,
    .settled = costs.settled,
  };
  return true;
}
