/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small zoo jobs on one card and on two: what is chosen keeps every limit, the plans are legal,
   what was predicted is near what the machine model says, and the rivals are judged alike. */
#include <string.h>

#include "solver/fleet/cards.h"
#include "solver/fleet/alternatives.h"
#include "solver/fleet/share.h"
#include "solver/fleet/transition.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/zoo/zoo.h"

/* Of the machine model's step, in percent: how far a prediction may be off. docs/what-if.md. */
enum { TOLERANCE = 5 };

static const device card = {
  .name = "card",
  .memory_bytes = 20 << 20,
  .reserved_bytes = 1 << 20,
  .granule_bytes = 64 << 10,
  .host_bytes = (int64_t)1 << 34,
  .section_ns = 1000,
  .share_ppm = 1000000,
  .link = { 4000000000, 4000000000, 6000000000, 1000 },
  .has_roofline = true,
  .roofline = { .fp32_flops = 1000000000000,
                .memory_bytes_per_s = 100000000000,
                .efficiency_ppm = 1000000,
                .op_ns = 1000 },
};

/* AlexNets of two widths, because they have few ops. */
static cards_job job_of (const char *name, int64_t divisor, int64_t batch, arena *a) {
  error err = { 0 };
  zoo_request r = { .name = "alexnet",
                    .batch = batch,
                    .image = 64,
                    .width_divisor = divisor,
                    .classes = 100,
                    .device = &card,
                    .optimizer = ZOO_MOMENTUM };
  cards_job j = { name, zoo_trace (&r, a, &err) };
  ck_assert_msg (j.trace != NULL, "%s", err.text);
  return j;
}

static cards_options options_for (const device *cards, int32_t n) {
  return (cards_options){ .cards = cards,
                          .n_cards = n,
                          .points = 4,
                          .sampling = { .limit_ticks = 1000, .seed = 1 },
                          .limit_ticks = 20000 };
}

static void place (const cards_job *jobs, int32_t n, const cards_options *o, arena *a,
                   cards_answer *out) {
  error err = { 0 };
  ck_assert_msg (cards_place_jobs (jobs, n, o, a, out, &err), "%s", err.text);
}

static void keeps_limits (const cards_job *jobs, int32_t n, const cards_options *o,
                          const cards_answer *v) {
  for (int32_t c = 0; c < o->n_cards; c++) {
    int64_t bytes = 0, host = 0, share = 0;
    int32_t here = 0;
    for (int32_t i = 0; i < n; i++) {
      const cards_place *at = &v->places[i];
      if (at->card != c)
        continue;
      error err = { 0 };
      arena *a = arena_new (0);
      predicted again;
      ck_assert_msg (check_plan (jobs[i].trace, at->plan, a, NULL, &err), "%s", err.text);
      ck_assert (simulate_plan (jobs[i].trace, at->plan, a, &again, &err));
      ck_assert_int_eq (again.step_ns, at->plan->predicted.step_ns);
      ck_assert_int_ge (again.step_ns, at->plan->certificate.lower_bound_ns);
      arena_free (a);
      bytes += at->budget_bytes + card.reserved_bytes;
      host += at->plan->predicted.host_peak_bytes;
      share += at->share_ppm;
      here++;
    }
    ck_assert (!here || bytes <= card.memory_bytes);
    ck_assert_int_le (host, card.host_bytes);
    ck_assert_int_le (share, 1000000);
  }
}

static void near_predictions (const cards_job *jobs, int32_t n, const cards_options *o,
                              const cards_answer *v) {
  int64_t peaks = 0, worst[2] = { 0 }, total[2] = { 0 };
  ck_assert_int_eq (v->n_placed, n);
  for (int32_t i = 0; i < n; i++) {
    const cards_place *at = &v->places[i];
    peaks += at->peak_bytes;
    int64_t off = 100 * (at->predicted_ns - at->together_ns) / at->together_ns;
    ck_assert_msg (off >= -TOLERANCE && off <= TOLERANCE, "%s: %lld %% off", jobs[i].name,
                   (long long)off);
    ck_assert_int_ge (at->together_ns, at->baseline_ns);
    int64_t slow[] = { at->together_ns * 1000 / at->baseline_ns,
                       at->predicted_ns * 1000 / at->baseline_ns };
    for (int k = 0; k < 2; k++) {
      total[k] += slow[k];
      worst[k] = slow[k] > worst[k] ? slow[k] : worst[k];
    }
  }
  /* what was asked for is never worse than predicted */
  ck_assert (o->objective == PACK_WORST ? worst[0] <= worst[1] : total[0] <= total[1] + n);
  ck_assert_msg (peaks > cards_room (o, 0, n), "%d jobs need no plan", n);
}

static void judge_rivals (const cards_job *jobs, int32_t n, const cards_options *o,
                          const cards_answer *v, arena *a) {
  error err = { 0 };
  alternative r[ALTERNATIVES];
  int64_t plain = 0, ours = 0;
  ck_assert_msg (alternatives_of (jobs, n, o, v, a, r, &err), "%s", err.text);
  ck_assert (r[ALTERNATIVE_OURS].fits && r[ALTERNATIVE_PLAIN].fits && r[ALTERNATIVE_TURNS].fits);
  ck_assert_int_eq (r[ALTERNATIVE_PLAIN].msr_ppm, 0);
  ck_assert_int_eq (r[ALTERNATIVE_PLAIN].eor_ppm, 0);
  for (int i = 0; i < n; i++) {
    ck_assert_int_eq (r[ALTERNATIVE_OURS].step_ns[i], v->places[i].together_ns);
    ck_assert_int_eq (r[ALTERNATIVE_PLAIN].peak_bytes[i], v->places[i].peak_bytes);
    plain += v->places[i].peak_bytes;
    ours += v->places[i].plan->predicted.peak_bytes;
  }
  ck_assert_int_eq (r[ALTERNATIVE_OURS].msr_ppm,
                    1000000 - (int64_t)((__int128)ours * 1000000 / plain));
  /* the others keep the same limits, so none of them is much better */
  for (int i = ALTERNATIVE_EVEN; i < ALTERNATIVES; i++)
    ck_assert_msg (!r[i].fits || r[i].worst_ppm * 11 / 10 >= r[ALTERNATIVE_OURS].worst_ppm,
                   "%s: %lld against %lld", r[i].name, (long long)r[i].worst_ppm,
                   (long long)r[ALTERNATIVE_OURS].worst_ppm);
}

/* One test, because the jobs' curves are sampled once for all of it. */
CLAIM_IN_ARENA (jobs_share_a_card_nearly_as_predicted_and_what_has_no_place_is_told_why) {
  device cards[] = { card, card };
  cards_job jobs[] = { job_of ("wide", 8, 64, a), job_of ("narrow", 16, 96, a),
                       job_of ("short", 16, 48, a), job_of ("huge", 8, 512, a) };
  cards_answer v;
  cards_options o = options_for (cards, 1);
  o.known = cards_known_new (a, &err);
  place (jobs, 2, &o, a, &v);
  keeps_limits (jobs, 2, &o, &v);
  near_predictions (jobs, 2, &o, &v);
  judge_rivals (jobs, 2, &o, &v, a);
  o.objective = PACK_TOTAL;
  place (jobs, 3, &o, a, &v);
  keeps_limits (jobs, 3, &o, &v);
  near_predictions (jobs, 3, &o, &v);

  cards_job wishes[] = { jobs[0], jobs[3] };
  place (wishes, 2, &o, a, &v);
  ck_assert_int_eq (v.n_placed, 1);
  ck_assert_int_eq (v.places[0].card, 0);
  ck_assert_int_eq (v.places[1].card, -1);
  ck_assert (!v.places[1].plan);
  ck_assert_msg (strstr (v.places[1].reason, "huge needs at least") != NULL, "%s",
                 v.places[1].reason);
  keeps_limits (wishes, 2, &o, &v);

  o.n_cards = 2; /* with two cards each has one to itself */
  place (jobs, 2, &o, a, &v);
  ck_assert_int_eq (v.n_placed, 2);
  ck_assert_int_ne (v.places[0].card, v.places[1].card);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq (v.places[i].together_ns, v.places[i].plan->predicted.step_ns);
  keeps_limits (jobs, 2, &o, &v);
}

CLAIM_IN_ARENA (ticks_are_of_all_searches_together_and_few_are_made_without) {
  cards_job jobs[] = { job_of ("wide", 8, 64, a), job_of ("narrow", 16, 96, a) };
  cards_options o = options_for (&card, 1);
  cards_answer free_ones, few;
  place (jobs, 2, &o, a, &free_ones);
  o.total_ticks = 1;
  place (jobs, 2, &o, a, &few);
  keeps_limits (jobs, 2, &o, &few);
  ck_assert_int_eq (few.n_placed, 2);
  ck_assert_int_gt (few.ticks, 0);
  ck_assert_int_lt (few.ticks, free_ones.ticks);
  ck_assert_int_lt (few.sampled, free_ones.sampled);
}

CLAIM_IN_ARENA (a_change_of_plans_moves_what_only_one_of_them_keeps) {
  cards_job j = job_of ("wide", 8, 64, a);
  curve_options o = { .device = &card, .host_bytes = card.host_bytes, .limit_ticks = 1000 };
  int64_t budgets[2], kept = 0;
  curve v;
  transition up, down, in, none;
  ck_assert (curve_range (j.trace, &card, a, &budgets[0], &budgets[1], &err));
  for (int32_t i = 0; i < j.trace->n_tensors; i++)
    kept += j.trace->tensors[i].persistent ? j.trace->tensors[i].bytes : 0;
  budgets[1] += 16 * card.granule_bytes; /* so that nothing moves */
  ck_assert (curve_of (j.trace, &o, budgets, 2, a, &v, &err));
  const plan *small = v.points[0].plan, *large = v.points[1].plan;
  ck_assert (small && large && small != large);
  ck_assert (transition_between (j.trace, small, large, a, &up, &err));
  ck_assert (transition_between (j.trace, large, small, a, &down, &err));
  ck_assert (transition_between (j.trace, NULL, large, a, &in, &err));
  ck_assert (transition_between (j.trace, large, large, a, &none, &err));
  ck_assert_int_gt (up.in_bytes, 0);
  ck_assert_int_eq (up.in_bytes, down.out_bytes);
  ck_assert_int_eq (up.out_bytes, down.in_bytes);
  ck_assert_int_eq (none.in_bytes + none.out_bytes, 0);
  /* all that it keeps, and what rounding the small ones to 512 adds */
  ck_assert_int_ge (in.in_bytes, kept);
  ck_assert_int_le (in.in_bytes, kept + 512 * (int64_t)j.trace->n_tensors);
  ck_assert_int_ge (in.in_ns, in.in_bytes / 4);
}

int main (void) {
  return suite_run ("cards", 120);
}
