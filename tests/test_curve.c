/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Curves of random traces: more memory is never slower, bounds lie below plans, the smallest memory
   lies between its two ends and agrees with the curve. FERRY_CASES: how many seeds. */
#include "solver/fleet/curve.h"
#include "solver/sections/bound.h"
#include "tests/curve_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/zoo/zoo.h"

enum { CASES = 60 };

CLAIM (curves_fall_lie_above_their_bounds_and_agree_with_the_smallest_memory) {
  curve_seen seen = { 0 };
  char text[600];
  for (int seed = 1; seed <= suite_cases (CASES); seed++)
    ck_assert_msg (curve_holds ((uint64_t)seed, &seen, text, sizeof text), "seed %d: %s", seed,
                   text);
  /* with teeth: many points stall, and some were not searched */
  ck_assert_int_gt (seen.stalled, seen.points / 4);
  ck_assert_int_gt (seen.reused, 0);
  ck_assert_int_le (seen.solves, 12 * seen.asked);
}

static trace *small_net (const char *name, const device *d, arena *a) {
  error err = { 0 };
  zoo_request r = { .name = name,
                    .batch = 256,
                    .image = 64,
                    .width_divisor = 16,
                    .classes = 10,
                    .device = d,
                    .optimizer = ZOO_MOMENTUM };
  trace *t = zoo_trace (&r, a, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

static const device card = {
  .name = "card",
  .memory_bytes = 1 << 30,
  .granule_bytes = 64 << 10,
  .host_bytes = (int64_t)1 << 40,
  .section_ns = 1000,
  .share_ppm = 1000000,
  .link = { 2000000000, 2000000000, 3000000000, 2000 },
  .has_roofline = true,
  .roofline = { .fp32_flops = 1000000000000,
                .memory_bytes_per_s = 100000000000,
                .efficiency_ppm = 1000000,
                .op_ns = 1000 },
};

CLAIM_IN_ARENA (a_curve_that_may_cut_is_faster_where_cutting_helps) {
  const trace *t = small_net ("alexnet", &card, a);
  curve_options o = { .device = &card, .host_bytes = card.host_bytes, .limit_ticks = 2000 };
  curve plain, cut;
  int64_t floor_bytes, peak_bytes;
  ck_assert (curve_range (t, &card, a, &floor_bytes, &peak_bytes, &err));
  int64_t budget = floor_bytes + 4 * card.granule_bytes;
  ck_assert (curve_of (t, &o, &budget, 1, a, &plain, &err));
  o.allowed.sections = SECTIONS_AUTO;
  ck_assert_msg (curve_of (t, &o, &budget, 1, a, &cut, &err), "%s", err.text);
  const plan *p = plain.points[0].plan, *q = cut.points[0].plan;
  ck_assert (p && q && q->n_sections > 0);
  ck_assert_int_lt (q->predicted.step_ns, p->predicted.step_ns);
  /* its bound speaks of all cuts, so it lies below both, and not above the one without */
  ck_assert_int_le (cut.points[0].lower_bound_ns, q->predicted.step_ns);
  ck_assert_int_le (cut.points[0].lower_bound_ns, plain.points[0].lower_bound_ns);
}

CLAIM_IN_ARENA (where_cuts_are_allowed_the_bound_is_that_of_every_cut) {
  device slow = card;
  slow.link.h2d_bytes_per_s = slow.link.d2h_bytes_per_s = slow.link.both_bytes_per_s = 200000000;
  const trace *t = small_net ("resnet18", &slow, a);
  curve_options o = { .device = &slow,
                      .host_bytes = slow.host_bytes,
                      .limit_ticks = 2000,
                      .allowed.sections = SECTIONS_AUTO };
  curve cut;
  bound every;
  int64_t floor_bytes, peak_bytes;
  ck_assert (curve_range (t, &slow, a, &floor_bytes, &peak_bytes, &err));
  int64_t budget = floor_bytes + 4 * slow.granule_bytes;
  solve_options how = { .device = &slow,
                        .budget_bytes = budget,
                        .host_bytes = slow.host_bytes,
                        .sections = SECTIONS_AUTO };
  ck_assert_msg (curve_of (t, &o, &budget, 1, a, &cut, &err), "%s", err.text);
  ck_assert_msg (sections_bound (t, &how, a, &every, &err), "%s", err.text);
  ck_assert_int_eq (cut.points[0].lower_bound_ns, every.lower_bound_ns);
  ck_assert_int_gt (every.lower_bound_ns, trace_total_ns (t));
}

CLAIM_IN_ARENA (a_plan_that_is_fast_enough_ends_the_search) {
  const trace *t = small_net ("alexnet", &card, a);
  curve_options o = {
    .device = &card, .host_bytes = card.host_bytes, .limit_ticks = 200000, .allowed = ALL_ALLOWED
  };
  const plan *any, *enough, *none;
  int64_t floor_bytes, peak_bytes, bound_ns, total_ns = trace_total_ns (t);
  ck_assert (curve_range (t, &card, a, &floor_bytes, &peak_bytes, &err));
  int64_t budget = (floor_bytes + peak_bytes) / 2;
  ck_assert_msg (curve_solve (t, &o, budget, 0, a, &any, &bound_ns, &err), "%s", err.text);
  ck_assert (any && any->predicted.step_ns > total_ns);
  ck_assert (curve_solve (t, &o, budget, 2 * total_ns, a, &enough, &bound_ns, &err));
  ck_assert (enough && check_plan (t, enough, a, NULL, &err));
  ck_assert_int_le (enough->predicted.step_ns, 2 * total_ns);
  ck_assert_int_le (enough->certificate.lower_bound_ns, any->predicted.step_ns);
  ck_assert_ptr_null (enough->certificate.limit_met);
  /* faster than compute there is none: of no use, and no search is needed to know */
  ck_assert (curve_solve (t, &o, budget, total_ns - 1, a, &none, &bound_ns, &err));
  ck_assert (!none || none->predicted.step_ns >= total_ns);
  ck_assert_int_eq (bound_ns, total_ns);
}

CLAIM (the_knee_and_the_price_are_read_off_the_points) {
  plan plans[3] = { 0 };
  curve_point points[3];
  int64_t steps[] = { 300, 120, 100 };
  for (int i = 0; i < 3; i++) {
    plans[i].predicted.step_ns = steps[i];
    points[i] = (curve_point){ .budget_bytes = (int64_t)(i + 1) << 29, .plan = &plans[i] };
  }
  curve v = { .points = points, .count = 3 };
  ck_assert_int_eq (curve_price_ns (&v, 0), 360); /* 180 for half a GiB */
  ck_assert_int_eq (curve_price_ns (&v, 1), 40);
  ck_assert_int_eq (curve_price_ns (&v, 2), 0);
}

int main (void) {
  return suite_run ("curve", 120);
}
