/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/units.h"
#include "cli/compare/comparison.h"
#include "cli/explain/closing.h"
#include "cli/inputs/policies.h"

static const column heads[] = {
  { "policy", 0, true, 24 },  { "step", 0, false, 9 }, { "slower", 1, false, 9 },
  { "stall", 4, false, 9 },   { "peak", 5, false, 9 }, { "host", 2, false, 9 },
  { "out", 3, false, 9 },     { "in", 3, false, 9 },   { "gap", 1, false, 8 },
  { "planned", 1, false, 9 },
};

columns *comparison_head (call *c, const comparison *t, int64_t budget_bytes) {
  char budget[UNITS_TEXT], peak[UNITS_TEXT];
  columns *to = COLUMNS (c, heads);
  printf ("budget %s, %.0f %% of %s\n", units_bytes (budget, budget_bytes),
          t->peak_bytes ? 100.0 * (double)budget_bytes / (double)t->peak_bytes : 0,
          units_bytes (peak, t->peak_bytes));
  if (to)
    columns_start (to);
  return to;
}

static bool print_missing (columns *to, const row *r) {
  char reached[UNITS_TEXT], step[UNITS_TEXT], planned[UNITS_TEXT];
  const policy_answer *a = &r->answer;
  columns_put (to, "%s", a->label);
  return columns_end_with (
      to, "no plan: it reaches %s%s%s (%s)%s", units_bytes (reached, a->reached_bytes),
      a->has_cost ? ", in " : "", a->has_cost ? units_time (step, a->cost.step_ns) : "",
      units_time (planned, r->plan_ns / 100000 * 100000), r->interrupted ? ", interrupted" : "");
}

bool comparison_row (columns *to, const row *r) {
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  if (!a->fits)
    return print_missing (to, r);
  double percent =
      p->baseline_ns ? 100.0 * (double)(p->step_ns - p->baseline_ns) / (double)p->baseline_ns : 0;
  columns_put (to, "%s", a->label);
  columns_time (to, p->step_ns);
  columns_put (to, "%+.1f %%", percent);
  columns_time (to, p->stall_ns);
  columns_bytes (to, p->peak_bytes);
  columns_bytes (to, p->host_peak_bytes);
  columns_bytes (to, p->d2h_bytes);
  columns_bytes (to, p->h2d_bytes);
  if (r->lower_bound_ns > 0)
    columns_put (to, "%.2f %%", closing_gap (p->step_ns, r->lower_bound_ns));
  else
    columns_put (to, "-");
  columns_time (to, r->plan_ns / 100000 * 100000);
  bool ok = columns_end (to);
  if (r->interrupted)
    puts ("interrupted: a better plan may be found");
  return ok;
}

void comparison_tsv (FILE *to, const row *r) {
  const policy_answer *a = &r->answer;
  const predicted *p = &a->cost;
  fprintf (to,
           "%lld\t%s\t%s\t%d\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%"
           "lld\t%d\n",
           (long long)r->budget_bytes,
           r->policy >= OURS ? our_ways[r->policy - OURS].name
                             : policy_at ((policy_id)r->policy)->name,
           a->label, a->fits, (long long)a->reached_bytes, (long long)p->step_ns,
           (long long)p->baseline_ns, (long long)p->stall_ns, (long long)p->peak_bytes,
           (long long)p->host_peak_bytes, (long long)p->d2h_bytes, (long long)p->h2d_bytes,
           (long long)a->moves, (long long)a->drops, (long long)r->lower_bound_ns,
           (long long)r->plan_ns, r->interrupted);
}

const char comparison_tsv_head[] =
    "budget_bytes\tpolicy\tlabel\tfits\treached_bytes\tstep_ns\tbaseline_ns\tstall_ns\tpeak_bytes\t"
    "host_peak_bytes\td2h_bytes\th2d_bytes\tmoves\tdrops\tlower_bound_ns\tplan_ns\tinterrupted\n";

bool comparison_json (call *c, const row *r, json_writer *into) {
  json_writer w;
  bytes text = { 0 };
  json_begin_object (&w, 0);
  json_add_int (&w, "budget_bytes", r->budget_bytes);
  if (r->interrupted)
    json_add_bool (&w, "cut_short", true);
  policy_answer_write (&w, &r->answer, r->lower_bound_ns);
  json_close_object (&w);
  bool ok = json_finish (&w, &text, &c->err);
  if (ok && into)
    json_put_raw (into, (const char *)text.data);
  else if (ok)
    printf ("%s\n", (const char *)text.data);
  bytes_free (&text);
  return ok;
}

bool comparison_keep (call *c, const row *r, compared *out) {
  const policy_answer *a = &r->answer;
  char reached[UNITS_TEXT];
  *out = (compared){ .name = arena_string (c->arena, a->label, &c->err),
                     .budget_bytes = r->budget_bytes,
                     .step_ns = a->fits ? a->cost.step_ns : -1,
                     .lower_bound_ns = r->lower_bound_ns,
                     .baseline_ns = a->cost.baseline_ns,
                     .moved_bytes = a->cost.d2h_bytes + a->cost.h2d_bytes };
  if (!a->fits)
    out->note = arena_format (c->arena, &c->err, "no plan: it reaches %s",
                              units_bytes (reached, a->reached_bytes));
  return !c->err.code;
}
