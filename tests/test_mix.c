/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sections and recompute in solve, on networks: what a plan is worth, what it may read, and that
   the file alone rebuilds it, by the second rewriting written for tests.  The networks are short
   ones of their kind; FERRY_CASES=2: the whole ones as well. */
#include <string.h>

#include "solver/solve.h"
#include "solver/search/ways.h"
#include "solver/recompute/recompute.h"
#include "tests/ref_rewrite.h"
#include "tests/same_trace.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"
#include "trace/zoo/zoo.h"

#define GIB ((int64_t)1 << 30)

/* Loop index 0: short; 1: whole. */
static const struct extent {
  int64_t depth_divisor, ticks;
} extents[] = { { 4, 10000 }, { 1, 300000 } };

static int extents_tried (void) {
  return suite_cases (1) > 1 ? 2 : 1;
}

static trace *network (const char *name, int64_t batch, int64_t depth, const device *d, arena *a) {
  error err = { 0 };
  zoo_request r = { .name = name,
                    .batch = batch,
                    .dtype = DTYPE_FP32,
                    .optimizer = ZOO_MOMENTUM,
                    .depth_divisor = depth,
                    .device = d };
  trace *t = zoo_trace (&r, a, &err);
  ck_assert_msg (t, "%s", err.text);
  return t;
}

static int64_t peak_of (const trace *t, const device *d, arena *a) {
  error err = { 0 };
  units u;
  gaps g;
  ck_assert (units_of (t, NULL, 0, d->granule_bytes, 1 << 20, a, &u, &err) &&
             gaps_of (&u, d->granule_bytes, INT64_MAX / 8, a, &g, &err));
  return g.peak_bytes;
}

static const device titanx = { .name = "titanx",
                               .memory_bytes = 12 * GIB,
                               .granule_bytes = 2 << 20,
                               .link = { 12000000000, 12000000000, 22000000000, 10000 },
                               .host_bytes = 64 * GIB,
                               .section_ns = 10000,
                               .share_ppm = 1000000,
                               .has_roofline = true,
                               .roofline = { .fp32_flops = 10970000000000,
                                             .memory_bytes_per_s = 480000000000,
                                             .efficiency_ppm = 1000000 } };

/* What stands in the file is enough to rebuild the trace, and check agrees. */
static void check_stored (const trace *t, const plan *p, arena *a) {
  bytes text = { 0 };
  error err = { 0 };
  rewritten ours, theirs;
  char difference[DIFFERENCE];
  ck_assert_msg (plan_text (p, false, &text, &err), "%s", err.text);
  plan *again = plan_parse (text.data, text.size, NULL, a, &err);
  ck_assert_msg (again, "%s", err.text);
  ck_assert_msg (plan_rewrite (t, again, a, &ours, &err), "%s", err.text);
  ck_assert_msg (ref_rewrite (t, p->sections, p->n_sections, p->recomputes, p->n_recomputes,
                              p->device.section_ns, a, &theirs, &err),
                 "%s", err.text);
  ck_assert_msg (same_rewritten (&ours, &theirs, difference), "%s", difference);
  char digest[TRACE_DIGEST], other[TRACE_DIGEST];
  ck_assert (trace_digest (ours.trace, digest, &err) && trace_digest (theirs.trace, other, &err));
  ck_assert_str_eq (digest, other);
  ck_assert_msg (check_plan (t, again, a, NULL, &err), "%s", err.text);
  bytes_free (&text);
}

/* The proof is about any recompute entries: it holds for this plan and is worth what is claimed. */
static void check_proof (const trace *t, plan *p, const char *by, arena *a) {
  error err = { 0 };
  proved x;
  ck_assert_str_eq (p->certificate.bound_by, by);
  ck_assert_msg (prove_plan (t, p, p->predicted.step_ns, a, &x, &err), "%s", err.text);
  ck_assert_int_eq (x.lower_bound_ns, p->certificate.lower_bound_ns);
  p->certificate.lower_bound_ns++;
  ck_assert (!prove_plan (t, p, p->predicted.step_ns, a, &x, &err));
  p->certificate.lower_bound_ns--;
}

CLAIM_IN_ARENA (vgg16_in_4_gib_runs_within_2_percent_by_sections) {
  solution s;
  trace *t = network ("vgg16", 256, 0, &titanx, a);
  solve_options o = {
    .device = &titanx, .budget_bytes = 4 * GIB, .host_bytes = 64 * GIB, .limit_ticks = 30000
  };
  ck_assert (!solve (t, &o, a, &s, &err) && err.code == ERR_infeasible);
  err = (error){ 0 };
  o.recompute = RECOMPUTE_AUTO;
  ck_assert (!solve (t, &o, a, &s, &err));
  ck_assert_msg (strstr (err.text, "allow sections"), "%s", err.text);
  err = (error){ 0 };
  o.recompute = RECOMPUTE_OFF;
  o.sections = SECTIONS_AUTO;
  ck_assert_msg (solve (t, &o, a, &s, &err), "%s", err.text);
  ck_assert_int_le (s.plan->predicted.step_ns, trace_total_ns (t) / 100 * 102);
  ck_assert_int_ge (s.bound.lower_bound_ns, trace_total_ns (t));
  ck_assert_int_gt (s.plan->n_sections, 0);
  ck_assert_int_eq (s.plan->n_recomputes, 0);
  check_stored (t, s.plan, a);
}

/* What is dropped and, by the changed plan, not there again for those who use it later. */
static int32_t check_unreplaced (const trace *t, plan *p, arena *a) {
  int32_t tampered = 0;
  for (int32_t i = 0; i < p->n_recomputes; i++) {
    index_list *list = &p->recomputes[i].replaces;
    error err = { 0 };
    if (!list->count)
      continue;
    list->count--;
    ck_assert_msg (!check_plan (t, p, a, NULL, &err), "entry %d may leave its tensor away", i);
    ck_assert_int_eq (err.code, ERR_infeasible);
    list->count++;
    tampered++;
  }
  return tampered;
}

/* What crosses the link comes back only behind the op, run again, that reads it. */
static int32_t check_late (const trace *t, plan *p, arena *a) {
  int32_t tampered = 0;
  rewritten rw;
  error err = { 0 };
  ck_assert (plan_rewrite (t, p, a, &rw, &err));
  for (int32_t i = 0; i < p->n_moves; i++) {
    move *m = &p->moves[i];
    int32_t k = m->in_before;
    check_rule rule;
    if (m->unit >= rw.trace->n_tensors || !rw.ops[k].copy ||
        !list_has (&rw.trace->ops[k].reads, m->unit))
      continue;
    m->in_before = k + 1;
    ck_assert_msg (!check_plan (t, p, a, &rule, &err), "op %d may read what is away", k);
    ck_assert_str_eq (check_rule_name (rule), "move_away");
    err = (error){ 0 };
    m->in_before = k;
    tampered++;
  }
  return tampered;
}

CLAIM_EACH (an_op_that_runs_again_reads_only_what_is_there, 0, extents_tried ()) {
  arena *a = arena_new (0);
  error err = { 0 };
  solution s;
  device d = titanx;
  d.roofline.fp32_flops *= 10;
  trace *t = network ("resnet18", 64, extents[_i].depth_divisor, &d, a);
  solve_options o = { .device = &d,
                      .budget_bytes = peak_of (t, &d, a) / 10 * 6,
                      .host_bytes = 64 * GIB,
                      .limit_ticks = extents[_i].ticks,
                      .recompute = RECOMPUTE_AUTO };
  ck_assert_msg (solve (t, &o, a, &s, &err), "%s", err.text);
  ck_assert_msg (check_plan (t, s.plan, a, NULL, &err), "%s", err.text);
  ck_assert_int_gt (check_unreplaced (t, s.plan, a), 0);
  ck_assert_int_gt (check_late (t, s.plan, a), 0);
  ck_assert_msg (check_plan (t, s.plan, a, NULL, &err), "%s", err.text);
  arena_free (a);
}

CLAIM_EACH (a_fast_card_drops_and_its_plan_is_rebuilt_from_the_file, 0, extents_tried ()) {
  arena *a = arena_new (0);
  error err = { 0 };
  solution swapped, mixed;
  device d = titanx;
  d.roofline.fp32_flops *= 50;
  d.roofline.memory_bytes_per_s *= 10;
  trace *t = network ("resnet18", 64, extents[_i].depth_divisor, &d, a);
  solve_options o = { .device = &d,
                      .budget_bytes = peak_of (t, &d, a) / 10 * 6,
                      .host_bytes = 64 * GIB,
                      .keep_proof = true,
                      .limit_ticks = extents[_i].ticks };
  ck_assert_msg (solve (t, &o, a, &swapped, &err), "%s", err.text);
  o.recompute = RECOMPUTE_AUTO;
  ck_assert_msg (solve (t, &o, a, &mixed, &err), "%s", err.text);
  ck_assert_int_lt (mixed.plan->predicted.step_ns, swapped.plan->predicted.step_ns / 10 * 8);
  ck_assert_int_gt (mixed.plan->n_recomputes, 0);
  ck_assert_int_le (mixed.bound.lower_bound_ns, mixed.plan->predicted.step_ns);
  check_stored (t, mixed.plan, a);
  check_proof (t, mixed.plan, "drops-lp", a);
  o.recompute = RECOMPUTE_ONLY;
  o.budget_bytes = peak_of (t, &d, a) / 10 * 8;
  ck_assert_msg (solve (t, &o, a, &mixed, &err), "%s", err.text);
  ck_assert_int_eq (mixed.plan->n_moves, 0);
  ck_assert_int_gt (mixed.bound.lower_bound_ns, trace_total_ns (t));
  ck_assert_int_le (mixed.bound.lower_bound_ns, mixed.plan->predicted.step_ns);
  check_stored (t, mixed.plan, a);
  check_proof (t, mixed.plan, "drops-lp", a);
  arena_free (a);
}

/* Thousands of small tensors: granules and the pool take more than a set is guessed to need. */
CLAIM_EACH (what_an_unrolled_network_lacks_is_dropped_too, 0, extents_tried ()) {
  arena *a = arena_new (0);
  error err = { 0 };
  solution s;
  device d = titanx;
  zoo_request r = { .name = "seq2seq", .batch = 32, .seq = _i ? 48 : 24, .device = &d };
  r.optimizer = ZOO_MOMENTUM;
  trace *t = zoo_trace (&r, a, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  solve_options o = { .device = &d,
                      .budget_bytes = peak_of (t, &d, a) / 100 * (_i ? 70 : 90),
                      .host_bytes = 64 * GIB,
                      .recompute = RECOMPUTE_ONLY,
                      .limit_ticks = extents[_i].ticks };
  ck_assert_msg (solve (t, &o, a, &s, &err), "%s", err.text);
  ck_assert_int_eq (s.plan->n_moves, 0);
  ck_assert_int_gt (s.plan->n_recomputes, 0);
  ck_assert_msg (check_plan (t, s.plan, a, NULL, &err), "%s", err.text);
  arena_free (a);
}

/* A residual sum is cheap to make again but for its inputs, which are gone: the proof says so. */
CLAIM_EACH (sums_of_a_transformer_are_charged_with_what_went_into_them, 0, extents_tried ()) {
  arena *a = arena_new (0);
  error err = { 0 };
  solution s;
  recompute_program p;
  bound loose;
  device d = titanx;
  d.roofline.fp32_flops *= 50;
  d.roofline.memory_bytes_per_s *= 10;
  zoo_request r = { .name = "gpt2",
                    .batch = 4,
                    .dtype = DTYPE_FP32,
                    .optimizer = ZOO_SGD,
                    .width_divisor = 4,
                    .depth_divisor = _i ? 3 : 6,
                    .classes = 500,
                    .device = &d };
  trace *t = zoo_trace (&r, a, &err);
  ck_assert_msg (t, "%s", err.text);
  units u;
  gaps g;
  ck_assert (units_of (t, NULL, 0, 1, 0, a, &u, &err) &&
             gaps_of (&u, 1, INT64_MAX / 8, a, &g, &err));
  solve_options o = { .device = &d,
                      .budget_bytes = g.floor_bytes + (g.peak_bytes - g.floor_bytes) / 5,
                      .host_bytes = 64 * GIB,
                      .keep_proof = true,
                      .limit_ticks = extents[_i].ticks,
                      .recompute = RECOMPUTE_AUTO };
  bound_options how = {
    .dev = &d, .host_bytes = o.host_bytes, .any_units = true, .drops = DROPS_ALLOWED
  };
  ck_assert (recompute_solve_program (t, NULL, &o, NULL, true, a, &p, &err) && p.fits &&
             bound_of (&p.step->step.gaps, &how, a, &loose, &err));
  int64_t base_ns = trace_total_ns (t);
  ck_assert_int_gt ((p.bound.lower_bound_ns - base_ns) * 100,
                    (loose.lower_bound_ns - base_ns) * 102);
  ck_assert_msg (solve (t, &o, a, &s, &err), "%s", err.text);
  check_stored (t, s.plan, a);
  check_proof (t, s.plan, "drops-lp", a);
  arena_free (a);
}

/* What programs, prices and plans take is one sum, and a limit is one of all of it: beyond it goes
   only what was begun, and what there must be to have any plan. */
CLAIM_IN_ARENA (a_limit_is_one_of_programs_prices_and_plans_together) {
  device d = titanx;
  d.roofline.fp32_flops *= 50;
  d.roofline.memory_bytes_per_s *= 10;
  trace *t = network ("resnet18", 64, 1, &d, a);
  int64_t last_ns = INT64_MAX;
  static const int64_t limits[] = { 1, 400000 };
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    error err = { 0 };
    solution s, again;
    solve_options o = { .device = &d,
                        .budget_bytes = peak_of (t, &d, a) / 10 * 5,
                        .host_bytes = 64 * GIB,
                        .gap_ppm = 1,
                        .limit_ticks = limits[i],
                        .recompute = RECOMPUTE_AUTO };
    ck_assert_msg (solve (t, &o, a, &s, &err), "%s", err.text);
    if (i == 0) {
      ck_assert_msg (solve (t, &o, a, &again, &err), "%s", err.text);
      ck_assert_int_eq (s.ticks, again.ticks);
      ck_assert_int_eq (s.plan->predicted.step_ns, again.plan->predicted.step_ns);
    }
    int64_t program = s.bound.stats.ticks;
    ck_assert_int_gt (program, 10000);
    ck_assert_int_le (s.ticks, limits[i] * 3 / 2 + 3 * program);
    ck_assert_int_le (s.plan->predicted.step_ns, last_ns);
    last_ns = s.plan->predicted.step_ns;
  }
}

/* How much of tensor x the program drops over op k. */
static double dropped_at (const recompute_program *p, int32_t x, int32_t k) {
  for (int32_t i = p->step->step.gaps.of_unit[x]; i < p->step->step.gaps.of_unit[x + 1]; i++)
    if (p->step->step.gaps.at[i].after < k && k <= p->step->step.gaps.at[i].before)
      return p->bound.dropped[i];
  return -1;
}

CLAIM_IN_ARENA (the_guided_set_is_what_the_program_drops) {
  device d = titanx;
  d.roofline.fp32_flops *= 50;
  d.roofline.memory_bytes_per_s *= 10;
  trace *t = network ("resnet18", 64, 1, &d, a);
  variant v;
  variant_value value;
  recompute_program whole, guide;
  solve_options o = { .device = &d,
                      .budget_bytes = peak_of (t, &d, a) / 10 * 8,
                      .host_bytes = 64 * GIB,
                      .recompute = RECOMPUTE_AUTO };
  ck_assert (recompute_solve_program (t, NULL, &o, NULL, true, a, &whole, &err) && whole.fits);
  ck_assert (recompute_solve_guide (t, NULL, &o, o.budget_bytes / 100 * 99, a, &guide, &err));
  ck_assert (guide.fits && recompute_guided (t, NULL, &o, &guide, a, &v, &value, &err) &&
             value.legal);
  ck_assert_int_gt (v.n_recomputes, 0);
  for (int32_t e = 0; e < v.n_recomputes; e++)
    for (int32_t i = 0; i < v.recomputes[e].replaces.count; i++)
      ck_assert (dropped_at (&guide, v.recomputes[e].replaces.at[i], v.recomputes[e].before) >=
                 0.3);
  ck_assert (variant_bound (t, &v, &o, false, a, &value, &err));
  ck_assert_int_ge (value.bound_ns, whole.bound.lower_bound_ns);
  static const variant nothing = { .name = "nothing" };
  variant_value carried;
  ck_assert (variant_bound (t, &nothing, &o, false, a, &carried, &err));
  ck_assert_int_lt (value.bound_ns, carried.bound_ns);
}

/* Where most of the step waits for the link, what is made again by segments costs less than what
   moves instead. */
CLAIM_IN_ARENA (segments_are_ranked_by_the_bounds_of_their_programs) {
  device d = titanx;
  d.roofline.fp32_flops *= 50;
  d.roofline.memory_bytes_per_s *= 10;
  trace *t = network ("resnet50", 16, 1, &d, a);
  solve_options o = { .device = &d,
                      .budget_bytes = peak_of (t, &d, a) / 10 * 6,
                      .host_bytes = 64 * GIB,
                      .recompute = RECOMPUTE_AUTO };
  static const variant nothing = { .name = "nothing" };
  recompute_program program;
  recompute_result few, more, none;
  variant_value carried, value;
  ck_assert (recompute_solve_program (t, NULL, &o, NULL, true, a, &program, &err) && program.fits);
  ck_assert (variant_bound (t, &nothing, &o, true, a, &carried, &err));
  recompute_request q = { .trace = t, .options = &o, .guide = &program, .limit_ticks = 1 };
  ck_assert (recompute_ranked (&q, carried.bound_ns, a, &few, &err));
  ck_assert_int_eq (few.tried, 1); /* what is begun is done */
  q.limit_ticks = 40 * few.ticks;
  ck_assert_msg (recompute_ranked (&q, carried.bound_ns, a, &more, &err), "%s", err.text);
  ck_assert_int_gt (more.tried, few.tried);
  ck_assert_int_gt (more.best.n_recomputes, 0);
  ck_assert_int_le (more.value.bound_ns, few.value.bound_ns);
  ck_assert_int_lt (more.value.bound_ns, carried.bound_ns);
  ck_assert_int_ge (more.value.bound_ns, program.bound.lower_bound_ns);
  ck_assert (variant_bound (t, &more.best, &o, true, a, &value, &err));
  ck_assert_int_eq (value.bound_ns, more.value.bound_ns);
  ck_assert (recompute_ranked (&q, program.bound.lower_bound_ns, a, &none, &err));
  ck_assert_int_eq (none.best.n_recomputes, 0);
}

int main (void) {
  return suite_run ("mix", 120);
}
