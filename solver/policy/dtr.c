/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dynamic tensor rematerialization as if its run were a plan: which ops ran again before which.  It
   counts bytes as it goes; granules, the pool of small tensors and inputs that entries keep longer
   may take more, so it runs again for a budget as much smaller until what it did fits. */
#include "solver/policy/drops.h"
#include "solver/policy/dtr_run.h"

enum { MOST_RUNS = 10, LEAST_PART = 256 };

static bool rooms_of (policy_view *v, int64_t **out, error *err) {
  *out = NEW (v->arena, v->n_tensors, int64_t, err);
  for (int32_t x = 0; *out && x < v->n_tensors; x++)
    (*out)[x] = v->held[x] ? v->held[x] : unit_member_bytes (v->trace->tensors[x].bytes);
  return *out;
}

bool policy_dtr (policy_view *v, policy_choice *out, error *err) {
  int64_t *room, peak, least = v->budget_bytes / LEAST_PART + 1;
  dtr_answer answer;
  dtr_request q = { .trace = v->trace,
                    .uses = &v->uses,
                    .budget_bytes = v->budget_bytes,
                    .floor_bytes = v->option[POLICY_OPTION_dtr_floor],
                    .cost = (dtr_cost)v->option[POLICY_OPTION_dtr_cost],
                    .keeps = true,
                    .stop = v->stop,
                    .stop_context = v->stop_context };
  if (!rooms_of (v, &room, err))
    return false;
  q.room = room;
  for (int i = 0; i < MOST_RUNS && q.budget_bytes > 0; i++) {
    arena_mark mark = arena_here (v->arena);
    if (!dtr_run (&q, v->arena, &answer, err))
      return false;
    out->entries = answer.entries;
    out->n_entries = answer.n_entries;
    if (!policy_peak (v, out, &peak, err) || peak <= v->budget_bytes)
      return !err->code;
    if (answer.lacking_bytes > 0)
      break;
    int64_t over = peak - v->budget_bytes;
    q.budget_bytes -= over > least ? over : least;
    if (i + 1 < MOST_RUNS && q.budget_bytes > 0)
      arena_back (v->arena, mark);
  }
  out->note = "what its ops need at once does not fit, or far too much would run again";
  return true;
}
