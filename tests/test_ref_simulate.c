/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The second simulator and the second rewriter against what was worked out by hand. */
#include "tests/golden_machine.h"
#include "tests/ref_rewrite.h"
#include "tests/ref_simulate.h"
#include "tests/suite.h"
#include "trace/check/check.h"

static golden load (int i, arena **a, error *err) {
  golden g;
  ck_assert_ptr_nonnull (*a = arena_new (0));
  ck_assert_msg (golden_load (golden_names[i], *a, &g, err), "%s: %s %s", golden_names[i],
                 err->where, err->text);
  return g;
}

static void unload (golden *g, arena *a) {
  json_close (g->expected);
  arena_free (a);
}

CLAIM_EACH (a_golden_plan_names_its_trace, 0, GOLDEN_NAMES) {
  arena *a;
  error err = { 0 };
  golden g = load (_i, &a, &err);
  char digest[TRACE_DIGEST];
  ck_assert (trace_digest (g.trace, digest, &err));
  ck_assert_str_eq (digest, g.plan->trace_digest);
  unload (&g, a);
}

CLAIM_EACH (a_golden_plan_is_legal, 0, GOLDEN_NAMES) {
  arena *a;
  error err = { 0 };
  golden g = load (_i, &a, &err);
  ck_assert_msg (check_plan (g.trace, g.plan, a, NULL, &err), "%s: %s %s", golden_names[_i],
                 err.where, err.text);
  unload (&g, a);
}

CLAIM_EACH (both_rewriters_give_the_rows_worked_out_by_hand, 0, GOLDEN_NAMES) {
  arena *a;
  error err = { 0 };
  golden g = load (_i, &a, &err);
  rewritten r;
  const plan *p = g.plan;
  ck_assert (plan_rewrite (g.trace, p, a, &r, &err));
  ck_assert_msg (golden_same_rewritten (&g, &r, &err), "%s: %s %s", golden_names[_i], err.where,
                 err.text);
  ck_assert (ref_rewrite (g.trace, p->sections, p->n_sections, p->recomputes, p->n_recomputes,
                          p->device.section_ns, a, &r, &err));
  ck_assert_msg (golden_same_rewritten (&g, &r, &err), "%s: %s %s", golden_names[_i], err.where,
                 err.text);
  unload (&g, a);
}

static void same_span (const char *name, const char *what, int32_t i, span want, int64_t start,
                       int64_t end, int64_t zero) {
  if (start != NOT_YET) {
    start -= zero;
    end -= zero;
  }
  ck_assert_msg (want.start_ns == start && want.end_ns == end,
                 "%s: %s %d is at %lld to %lld, by hand it was %lld to %lld", name, what, i,
                 (long long)start, (long long)end, (long long)want.start_ns,
                 (long long)want.end_ns);
}

CLAIM_EACH (the_reference_gives_the_timelines_worked_out_by_hand, 0, GOLDEN_NAMES) {
  arena *a;
  error err = { 0 };
  golden g = load (_i, &a, &err);
  const char *name = golden_names[_i];
  ref_answer r;
  ref_job job = { g.trace, g.plan };
  ck_assert_msg (ref_simulate (&job, 1, false, a, &r, &err), "%s: %s", name, err.text);
  ck_assert_msg (golden_same_predicted (&g, &r.predicted, &err), "%s: %s", name, err.text);
  ck_assert_int_eq (r.n_runs, 1);
  ck_assert_int_eq (r.runs[0].first, 0);
  ck_assert_int_eq (r.runs[0].again, 1);
  ck_assert_int_eq (r.rewritten->n_ops, g.n_ops);
  for (int32_t step = 0; step < 32; step++) {
    const ref_step *s = r.runs[0].steps[step];
    int64_t zero = s->op_start[0];
    for (int32_t i = 0; i < g.n_ops; i++)
      same_span (name, "op", i, g.ops[i], s->op_start[i], s->op_end[i], zero);
    for (int32_t i = 0; i < g.plan->n_moves; i++) {
      same_span (name, "out", i, g.outs[i], s->out_start[i], s->out_end[i], zero);
      same_span (name, "in", i, g.ins[i], s->in_start[i], s->in_end[i], zero);
    }
  }
  unload (&g, a);
}

int main (void) {
  return suite_run ("reference", 60);
}
