/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/explain/policy.h"

#include "base/units.h"
#include "cli/explain/closing.h"

static void print_bound (FILE *to, const plan *p) {
  char least[UNITS_TEXT], covers[COVER_TEXT];
  const certificate *proof = &p->certificate;
  fprintf (to, "%-8s %10s  certified by %s; it covers %s\n", "bound",
           units_time (least, proof->lower_bound_ns), proof->bound_by, closing_covers (p, covers));
  fprintf (to, "%-8s %8.2f %%  above it at most\n", "gap",
           closing_gap (p->predicted.step_ns, proof->lower_bound_ns));
}

void policy_answer_print (FILE *to, const policy_answer *a, int64_t budget_bytes) {
  char step[UNITS_TEXT], stall[UNITS_TEXT], peak[UNITS_TEXT], host[UNITS_TEXT], out[UNITS_TEXT];
  char in[UNITS_TEXT], budget[UNITS_TEXT];
  const predicted *p = &a->cost;
  if (!a->fits)
    fprintf (to, "%s does not fit in %s; it reaches %s\n", a->label,
             units_bytes (budget, budget_bytes), units_bytes (peak, a->reached_bytes));
  if (a->has_cost)
    fprintf (to, "%-8s %10s  with %s of stalls, %lld moves and %lld drops\n",
             a->fits ? "step" : "there", units_time (step, p->step_ns),
             units_time (stall, p->stall_ns), (long long)a->moves, (long long)a->drops);
  if (a->has_cost)
    fprintf (to, "%-8s %10s  host %s; %s out and %s in, a step\n", "device",
             units_bytes (peak, p->peak_bytes), units_bytes (host, p->host_peak_bytes),
             units_bytes (out, p->d2h_bytes), units_bytes (in, p->h2d_bytes));
  if (a->plan)
    print_bound (to, a->plan);
  if (a->note)
    fprintf (to, "%-8s %s\n", "note", a->note);
}
