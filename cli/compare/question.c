/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "cli/compare/comparison.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/effort.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/policies.h"
#include "trace/streams.h"

const our_way our_ways[PLANNERS - OURS] = {
  { "ferry", SWAPS_ALONE },
  { "ferry-recompute", { .recompute = RECOMPUTE_AUTO } },
  { "ferry-sections", { .sections = SECTIONS_AUTO } },
  { "ferry-all", ALL_ALLOWED },
};

static bool add_policy (call *c, comparison *t, const char *name) {
  policy_id id = POLICIES;
  int which = PLANNERS - 1;
  while (which >= OURS && strcmp (name, our_ways[which - OURS].name) != 0)
    which--;
  if (t->n_policies == PLANNERS)
    return call_usage (c, "a policy is named twice");
  if (which < OURS &&
      !(policy_of_name (c, name, &id) && streams_must_be_one (t->trace, "a policy", &c->err)))
    return false;
  t->policies[t->n_policies++] = which < OURS ? (int)id : which;
  return true;
}

/* Ours are cut down to what is allowed; one that is nothing then, or as an earlier one, is left
 * out. */
static bool cut_ours (call *c, comparison *t) {
  int n = 0;
  if (!rewriting_read (c, t->trace, &t->allowed))
    return false;
  for (int i = 0; i < t->n_policies; i++) {
    int way = t->policies[i] - OURS;
    bool any = way < 0 || allowed_cut (&our_ways[way].allowed, &t->allowed, &t->ours[way]);
    for (int k = 0; way >= 0 && any && k < n; k++)
      any = !allowed_is_same (&t->ours[t->policies[k] - OURS], &t->ours[way]);
    if (any)
      t->policies[n++] = t->policies[i];
  }
  t->n_policies = n;
  return n || call_usage (c, "--policies names nothing that is allowed");
}

static bool read_policies (call *c, comparison *t) {
  const char *rest = call_text (c, "policies"), *part;
  if (!rest) {
    for (int i = OURS; i < PLANNERS; i++)
      t->policies[t->n_policies++] = i;
    bool one = !trace_has_streams (t->trace);
    for (int i = 0; one && i < POLICIES; i++)
      t->policies[t->n_policies++] = i;
    if (!one)
      call_note (c,
                 "the published policies are left out: they take traces of one stream, and this "
                 "one has %d",
                 t->trace->n_streams);
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

bool comparison_read (call *c, comparison *t) {
  const trace *given = call_trace (c, c->operands[0]);
  t->trace = given ? executor_trace (c, given) : NULL;
  if (!t->trace || !trace_must_plan (t->trace, &c->err) || !device_needed (c, t->trace, &t->device))
    return false;
  return effort_read (c, LEVEL_QUICK, &t->limit_ticks, &t->level) &&
         placement_read (c, &t->placement) &&
         executor_places (c, given, &t->same_places, &t->placement) &&
         trace_digest (t->trace, t->digest, &c->err) &&
         device_host (c, &t->device, &t->host_bytes) &&
         policy_plain_peak (c, t->trace, &t->device, &t->peak_bytes) &&
         policy_asked_budgets (c, &t->device, t->peak_bytes, MOST_BUDGETS, t->budgets,
                               &t->n_budgets) &&
         read_policies (c, t) && cut_ours (c, t);
}
