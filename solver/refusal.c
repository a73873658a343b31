/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/refusal.h"

#include "base/units.h"
#include "solver/attempt/attempt.h"
#include "solver/sections/sections.h"

static bool rewrites (const solve_options *o) {
  return o->sections != SECTIONS_OFF || o->recompute != RECOMPUTE_OFF;
}

int64_t refusal_living_bytes (const trace *t) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].persistent && __builtin_add_overflow (bytes, t->tensors[i].bytes, &bytes))
      return INT64_MAX;
  return bytes;
}

/* The program of all plans that only swap, in this order, has no solution. */
static bool program_rules_out (const trace *t, const solve_options *o, arena *a) {
  bound b;
  error why = { 0 };
  return !rewrites (o) && o->order == ORDER_AS_IS && !attempt_bound (t, o, a, &b, &why) &&
         why.code == ERR_infeasible;
}

bool refusal_outlives (const trace *t, int64_t budget_bytes, int64_t host_bytes) {
  return refusal_living_bytes (t) > budget_bytes + host_bytes;
}

static bool is_proved (const trace *t, const solve_options *o, arena *a, error *err) {
  int64_t least_bytes, granule = o->device->granule_bytes;
  if (refusal_outlives (t, o->budget_bytes, o->host_bytes))
    return true;
  if (!sections_floor (t, o, a, &least_bytes, err))
    return false;
  if (o->budget_bytes / granule * granule < least_bytes)
    return true;
  /* a search of cuts and drops has asked its own program */
  return o->same_places || !rewrites (o) ? program_rules_out (t, o, a) : true;
}

void refusal_settle (const trace *t, const solve_options *o, arena *a, error *err) {
  error why = { 0 };
  char budget[UNITS_TEXT], host[UNITS_TEXT];
  if (err->code != ERR_infeasible || is_proved (t, o, a, &why))
    return;
  *err = why;
  if (!why.code)
    (void)error_set (err, ERR_limit,
                     "no plan was found in %s with %s of the host's memory, and none is ruled out; "
                     "give more of either, or a higher limit",
                     units_bytes (budget, o->budget_bytes), units_bytes (host, o->host_bytes));
}
