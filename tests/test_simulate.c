/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulator against tests/ref_simulate, to the nanosecond, and against what was worked out by
   hand. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "tests/golden_machine.h"
#include "tests/random_case.h"
#include "tests/ref_simulate.h"
#include "tests/suite.h"
#include "trace/simulate/simulate.h"

enum { SOON_S = 30 }; /* some answers come at once or never */

static void same_predicted (uint64_t seed, const predicted *x, const predicted *y) {
#define SAME(field)                                                                            \
  ck_assert_msg (x->field == y->field, "seed %llu: " #field " is %lld, of the reference %lld", \
                 (unsigned long long)seed, (long long)x->field, (long long)y->field)
  SAME (compute_ns);
  SAME (baseline_ns);
  SAME (peak_bytes);
  SAME (host_peak_bytes);
  SAME (d2h_bytes);
  SAME (h2d_bytes);
  SAME (settled);
  SAME (step_ns);
  SAME (stall_ns);
#undef SAME
}

/* Whether the timeline is that step of a run of the reference. */
static bool same_span (span x, int64_t start, int64_t end, int64_t zero) {
  return start == NOT_YET ? x.start_ns == -1 && x.end_ns == -1
                          : x.start_ns == start - zero && x.end_ns == end - zero;
}

static bool same_step (const timeline *t, const ref_run *r, int32_t n_ops, int32_t n_moves) {
  if (t->step + 1 >= r->n_steps)
    return false;
  const ref_step *s = r->steps[t->step];
  int64_t zero = s->op_start[0];
  bool same = t->period_ns == r->steps[t->step + 1]->op_start[0] - zero;
  for (int32_t i = 0; i < n_ops; i++)
    same = same && same_span (t->ops[i], s->op_start[i], s->op_end[i], zero);
  for (int32_t i = 0; i < n_moves; i++)
    same = same && same_span (t->outs[i], s->out_start[i], s->out_end[i], zero) &&
           same_span (t->ins[i], s->in_start[i], s->in_end[i], zero);
  return same;
}

/* Every sort of case comes up, whatever the seed says about the rest. */
static case_options options_of (uint64_t seed) {
  case_options o = { .seed = seed,
                     .features = CASE_EVERYTHING | CASE_ORDER,
                     .places = CASE_SHARED };
  if (seed % 3 == 0)
    o.places = CASE_APART;
  if (seed % 4 == 1)
    o.drop_ppm = 300000;
  if (seed % 16 == 2)
    o.disturb_ppm = 300000;
  if (seed % 5 == 3)
    o.features &= ~(unsigned)(CASE_SECTIONS | CASE_RECOMPUTE);
  if (seed % 7 == 4)
    o.features &= ~(unsigned)CASE_SHARED_RATE;
  if (seed % 32 == 5) {
    o.most_ops = 24;
    o.most_tensors = 16;
  }
  return o;
}

static void make_case (uint64_t seed, arena *a, random_case *c) {
  error err = { 0 };
  case_options o = options_of (seed);
  ck_assert_msg (random_case_make (&o, a, c, &err), "seed %llu: %s", (unsigned long long)seed,
                 err.text);
}

typedef struct tally {
  int same, hang, settled, laden, unsettled;
  int wrapping, clean, parts, groups, sections, recomputes, shared;
} tally;

static void count_features (const plan *p, const trace *t, tally *n) {
  bool wraps = false, clean = false, parts = false, group = false;
  for (int32_t i = 0; i < p->n_moves; i++) {
    wraps |= p->moves[i].in_before <= p->moves[i].out_after;
    clean |= p->moves[i].clean;
    parts |= p->moves[i].of > 1;
    group |= p->moves[i].unit >= t->n_tensors;
  }
  n->wrapping += wraps;
  n->clean += clean;
  n->parts += parts;
  n->groups += group;
  n->sections += p->n_sections > 0;
  n->recomputes += p->n_recomputes > 0;
  n->shared += p->device.link.both_bytes_per_s <
               p->device.link.d2h_bytes_per_s + p->device.link.h2d_bytes_per_s;
}

static void compare_one (uint64_t seed, random_case c, arena *a, tally *n) {
  error err = { 0 }, ref_err = { 0 };
  ref_answer want;
  predicted seen = { 0 };
  timeline line = { 0 };
  ref_job ref = { c.trace, c.plan };
  sim_job job = { c.trace, &c.rewritten, c.plan };
  sim_options o = { .timeline_arena = a };
  bool ref_ok = ref_simulate (&ref, 1, false, a, &want, &ref_err);
  bool ok = simulate (&job, 1, &o, a, &seen, &line, &err);
  ck_assert_msg (ok == ref_ok, "seed %llu: the simulator says `%s`, the reference `%s`",
                 (unsigned long long)seed, ok ? "yes" : err.text, ref_ok ? "yes" : ref_err.text);
  if (!ok) {
    n->hang++;
    return;
  }
  same_predicted (seed, &seen, &want.predicted);
  bool same = false;
  for (int32_t i = 0; i < want.n_runs; i++)
    same |= same_step (&line, &want.runs[i], c.rewritten.trace->n_ops, c.plan->n_moves);
  ck_assert_msg (same, "seed %llu: the timeline is not step %d of the reference",
                 (unsigned long long)seed, line.step);
  n->same++;
  n->settled += want.runs[0].repeats;
  n->laden += want.n_runs == 2 && want.runs[1].repeats;
  n->unsettled += !want.predicted.settled;
  count_features (c.plan, c.rewritten.trace, n);
}

CLAIM (simulator_and_reference_agree_to_the_nanosecond) {
  int wanted = suite_cases (600);
  tally n = { 0 };
  for (int i = 0; i < wanted; i++) {
    arena *a = arena_new ((int64_t)256 << 20);
    ck_assert_ptr_nonnull (a);
    random_case c;
    make_case (i, a, &c);
    compare_one (i, c, a, &n);
    arena_free (a);
  }
  printf ("%d alike: %d settled at once, %d laden, %d not; %d hang in both\n"
          "with wrapping moves %d, clean %d, parts %d, groups %d, sections %d, recompute %d, "
          "a shared rate %d\n",
          n.same, n.settled, n.laden, n.unsettled, n.hang, n.wrapping, n.clean, n.parts, n.groups,
          n.sections, n.recomputes, n.shared);
  const int each[] = { n.wrapping, n.clean, n.parts, n.groups, n.sections, n.recomputes, n.shared };
  for (size_t i = 0; i < sizeof each / sizeof *each; i++)
    ck_assert_int_gt (each[i], wanted / 50);
}

/* Weights that each spend most of the step on the host, with copies out that take about as long as
   compute: a backlog builds up, or just does not. */
static void make_backlog (uint64_t seed, arena *a, random_case *c) {
  error err = { 0 };
  random_state r = random_seed (seed);
  int32_t n = (int32_t)random_between (&r, 2, 12), granules = 0;
  trace *t = NEW (a, 1, trace, &err);
  plan *p = NEW (a, 1, plan, &err);
  int32_t *list = NEW (a, n, int32_t, &err);
  t->ops = NEW (a, n, op, &err);
  t->tensors = NEW (a, n, tensor, &err);
  p->moves = NEW (a, n, move, &err);
  p->placement.stays = NEW (a, n, stay, &err);
  p->placement.runs = NEW (a, n, granule_run, &err);
  ck_assert_ptr_nonnull (p->placement.runs);
  int64_t out_bytes = 0, all_ns = 0;
  for (int32_t i = 0; i < n; i++) {
    list[i] = i;
    int64_t size = random_between (&r, 1, 9);
    t->tensors[i] = (tensor){ "", size * 512, NO_OP, NO_OP, TENSOR_PARAMETER, true, false, false };
    t->ops[i] = (op){ .name = "",
                      .ns = random_between (&r, 1, 3000),
                      .parts = 1,
                      .gap_ns = random_between (&r, 0, 50),
                      .reads = { &list[i], 1 } };
    p->moves[i] = (move){ i, 0, 1, i, i, NO_WAIT, NO_WAIT, false, out_bytes };
    p->placement.stays[i] = (stay){ STAY_MOVE, i, 0, i, 1 };
    p->placement.runs[i] = (granule_run){ granules, (int32_t)size };
    granules += (int32_t)size;
    out_bytes += size * 512;
    all_ns += t->ops[i].ns + t->ops[i].gap_ns;
  }
  t->name = "backlog";
  t->source =
      (trace_source){ .kind = "test", .detail = "", .device = "", .made_for = "", .doubt = "" };
  t->batch = 1;
  t->n_tensors = t->n_ops = n;
  *c = (random_case){ .trace = t, .plan = p };
  int64_t rate = out_bytes * 1000000000 / all_ns * random_between (&r, 95, 105) / 100;
  p->device = (device){ .name = "", .granule_bytes = 512, .share_ppm = 1000000 };
  p->device.link =
      (device_link){ rate + 1000000, rate * random_between (&r, 10, 20) / 10 + 1000000, 0, 0 };
  p->device.link.both_bytes_per_s =
      (p->device.link.d2h_bytes_per_s + p->device.link.h2d_bytes_per_s) *
      random_between (&r, 5, 10) / 10;
  p->trace_digest = "";
  p->out_order = p->in_order = list;
  p->n_moves = p->n_outs = p->n_ins = n;
  p->placement.granule_bytes = 512;
  p->placement.granules = granules;
  p->placement.n_stays = p->placement.n_runs = n;
  ck_assert (plan_rewrite (t, p, a, &c->rewritten, &err));
}

CLAIM (they_agree_on_plans_that_do_not_settle) {
  int wanted = suite_cases (600) * 2;
  tally n = { 0 };
  for (int i = 0; i < wanted; i++) {
    arena *a = arena_new ((int64_t)256 << 20);
    ck_assert_ptr_nonnull (a);
    random_case c;
    make_backlog (i, a, &c);
    compare_one (i, c, a, &n);
    arena_free (a);
  }
  printf ("%d alike: %d settled at once, %d laden, %d not\n", n.same, n.settled, n.laden,
          n.unsettled);
  ck_assert_int_gt (n.settled, wanted / 50);
  ck_assert_int_gt (n.laden, wanted / 200);
  ck_assert_int_gt (n.unsettled, wanted / 1000);
}

/* Two or three jobs on one card. */
static void compare_jobs (uint64_t seed, bool turns, arena *a, tally *n) {
  enum { MOST = 3 };
  error err = { 0 }, ref_err = { 0 };
  random_case c[MOST];
  ref_answer want[MOST];
  ref_job ref[MOST];
  sim_job job[MOST];
  predicted seen[MOST];
  int32_t jobs = seed % 5 == 0 ? 3 : 2;
  int64_t memory = 0;
  for (int32_t j = 0; j < jobs; j++) {
    make_case (seed * MOST + j, a, &c[j]);
    memory += c[j].plan->budget_bytes + c[0].plan->device.reserved_bytes;
  }
  c[0].plan->device.memory_bytes = seed % 50 == 7 ? memory - 1 : memory;
  for (int32_t j = 0; j < jobs; j++) {
    c[j].plan->device = c[0].plan->device;
    ck_assert (plan_rewrite (c[j].trace, c[j].plan, a, &c[j].rewritten, &err));
    ref[j] = (ref_job){ c[j].trace, c[j].plan };
    job[j] = (sim_job){ c[j].trace, &c[j].rewritten, c[j].plan };
    seen[j] = (predicted){ 0 };
  }
  sim_options o = { .turns = turns };
  bool ref_ok = ref_simulate (ref, jobs, turns, a, want, &ref_err);
  bool ok = simulate (job, jobs, &o, a, seen, NULL, &err);
  ck_assert_msg (ok == ref_ok, "seed %llu: the simulator says `%s`, the reference `%s`",
                 (unsigned long long)seed, ok ? "yes" : err.text, ref_ok ? "yes" : ref_err.text);
  n->hang += !ok;
  n->same += ok;
  for (int32_t j = 0; ok && j < jobs; j++)
    same_predicted (seed, &seen[j], &want[j].predicted);
}

CLAIM_EACH (several_jobs_agree_with_the_reference, 0, 2) {
  int wanted = suite_cases (600) / 10;
  tally n = { 0 };
  for (int i = 0; i < wanted; i++) {
    arena *a = arena_new ((int64_t)256 << 20);
    ck_assert_ptr_nonnull (a);
    compare_jobs (i, _i, a, &n);
    arena_free (a);
  }
  printf ("%s: %d alike, %d refused by both\n", _i ? "taking turns" : "sharing", n.same, n.hang);
  ck_assert_int_gt (n.same, wanted / 2);
}

CLAIM (a_step_that_is_far_too_long_beside_another_is_refused) {
  alarm (SOON_S);
  error err = { 0 };
  arena *a = arena_new ((int64_t)256 << 20);
  op one = { .name = "", .parts = 1, .ns = 1 }, other = { .name = "", .parts = 1, .ns = MOST_NS };
  trace t = { .name = "", .batch = 1, .n_ops = 1, .ops = &one }, u = t;
  origin from = { 0 };
  plan p = { .trace_digest = "", .device = { .name = "" }, .placement.granule_bytes = 512 };
  p.device.granule_bytes = 512;
  p.device.share_ppm = 1000000;
  p.device.link = (device_link){ 1000000000, 1000000000, 2000000000, 0 };
  u.ops = &other;
  rewritten short_job = { &t, &from, NULL }, long_job = { &u, &from, NULL };
  sim_job jobs[] = { { &t, &short_job, &p }, { &u, &long_job, &p } };
  sim_options o = { .most_events = 10000 };
  predicted seen[2];
  ck_assert (!simulate (jobs, 2, &o, a, seen, NULL, &err));
  ck_assert_int_eq (err.code, ERR_input);
  ck_assert_msg (strstr (err.text, "job 1 has too long a step"), "%s", err.text);
  arena_free (a);
}

CLAIM (a_step_that_takes_no_time_ends_and_shares_no_card) {
  alarm (SOON_S);
  error err = { 0 }, refused = { 0 };
  golden g;
  arena *a = arena_new ((int64_t)256 << 20);
  ck_assert_ptr_nonnull (a);
  ck_assert_msg (golden_load ("wrapping", a, &g, &err), "%s", err.text);
  rewritten r;
  ck_assert (plan_rewrite (g.trace, g.plan, a, &r, &err));
  op nothing = { .name = "", .parts = 1 };
  trace t = { .name = "", .batch = 1, .n_ops = 1, .ops = &nothing };
  origin from = { 0 };
  plan p = { .trace_digest = "", .device = g.plan->device, .placement.granule_bytes = 512 };
  rewritten same = { &t, &from, NULL };
  sim_job jobs[] = { { &t, &same, &p }, { g.trace, &r, g.plan } };
  ref_job refs[] = { { &t, &p }, { g.trace, g.plan } };
  sim_options o = { 0 };
  predicted seen[2];
  ref_answer want[2];
  ck_assert_msg (ref_simulate (refs, 1, false, a, want, &err), "%s", err.text);
  ck_assert_msg (simulate (jobs, 1, &o, a, seen, NULL, &err), "%s", err.text);
  same_predicted (0, &seen[0], &want[0].predicted);
  ck_assert_int_eq (seen[0].step_ns, 0);
  ck_assert (seen[0].settled);
  ck_assert (!simulate (jobs, 2, &o, a, seen, NULL, &err));
  ck_assert (!ref_simulate (refs, 2, false, a, want, &refused));
  json_close (g.expected);
  arena_free (a);
}

CLAIM_EACH (the_simulator_gives_the_timelines_worked_out_by_hand, 0, GOLDEN_NAMES) {
  error err = { 0 };
  golden g;
  arena *a = arena_new (0);
  ck_assert_ptr_nonnull (a);
  ck_assert_msg (golden_load (golden_names[_i], a, &g, &err), "%s", err.text);
  rewritten r;
  predicted seen = { 0 }, short_way = { 0 };
  timeline line = { 0 };
  ck_assert (plan_rewrite (g.trace, g.plan, a, &r, &err));
  sim_job job = { g.trace, &r, g.plan };
  sim_options o = { .timeline_arena = a };
  ck_assert_msg (simulate (&job, 1, &o, a, &seen, &line, &err), "%s", err.text);
  ck_assert_msg (golden_same_predicted (&g, &seen, &err), "%s: %s", golden_names[_i], err.text);
  ck_assert (simulate_plan (g.trace, g.plan, a, &short_way, &err));
  ck_assert_msg (golden_same_predicted (&g, &short_way, &err), "%s", err.text);
  ck_assert_int_eq (line.period_ns, g.predicted.step_ns);
  for (int32_t i = 0; i < g.n_ops; i++)
    ck_assert (same_span (line.ops[i], g.ops[i].start_ns, g.ops[i].end_ns, 0));
  for (int32_t i = 0; i < g.plan->n_moves; i++) {
    ck_assert_int_eq (line.outs[i].start_ns, g.outs[i].start_ns);
    ck_assert_int_eq (line.outs[i].end_ns, g.outs[i].end_ns);
    ck_assert_int_eq (line.ins[i].start_ns, g.ins[i].start_ns);
    ck_assert_int_eq (line.ins[i].end_ns, g.ins[i].end_ns);
  }
  json_close (g.expected);
  arena_free (a);
}

int main (void) {
  return suite_run ("simulate", 900);
}
