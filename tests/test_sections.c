/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bound of every cut: held against random plans and against its proof.  Each part of its
   argument is made wrong once, to see that this would be noticed.  (test_every has the best of all
   plans.) */
#include <math.h>
#include <string.h>

#include "base/order.h"
#include "solver/solve.h"
#include "solver/recompute/recompute.h"
#include "solver/sections/bound.h"
#include "solver/sections/sections.h"
#include "tests/fixed_drops.h"
#include "tests/keep_kth.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "trace/prove/prove.h"
#include "trace/simulate/simulate.h"
#include "trace/zoo/zoo.h"

CLAIM (a_wall_stands_where_the_rewriting_refuses_a_chain_of_two) {
  int walls = 0, chains = 0;
  for (uint64_t seed = 1; seed <= 600; seed++) {
    arena *a = arena_new (0);
    random_case c;
    if (random_case_of (seed, CASE_SECTIONS | CASE_LIVES, 9, a, &c)) {
      loosened any, level;
      error err = { 0 };
      ck_assert (trace_loosen (c.trace, LOOSE_ANY, a, &any, &err) &&
                 trace_loosen (c.trace, LOOSE_LEVEL, a, &level, &err));
      ck_assert_int_eq (trace_total_ns (any.trace), trace_total_ns (c.trace));
      for (int32_t k = 1; k < any.trace->n_ops; k++) {
        rewritten rw;
        int32_t op = any.of[k] == NO_OP ? any.of[k + 1] : any.of[k];
        if (any.of[k] != NO_OP && any.of[k - 1] == NO_OP)
          continue;
        bool cut = op > 0 && loose_parts (c.trace, op) > 1 && loose_parts (c.trace, op - 1) > 1;
        section s = { op - 1, op + 1, 2, SECTION_DEPTH };
        error why = { 0 };
        bool may = cut && trace_rewrite (c.trace, &(rewriting){ .sections = &s, .n_sections = 1 },
                                         a, &rw, &why);
        ck_assert_int_eq (any.of[k] == NO_OP, cut && !may);
        walls += cut && !may;
        chains += may;
      }
      for (int32_t k = 1; k < level.trace->n_ops; k++)
        ck_assert (!loose_follows (level.loose, k));
    }
    arena_free (a);
  }
  ck_assert_int_gt (walls, 50);
  ck_assert_int_gt (chains, 50);
}

/* ---- under the needs of a plan ---- */

typedef struct trial {
  planned_case p;
  timeline t;
  loosened l;
  units u;
  gaps g;
} trial;

/* What the plan has away when the first part of the op starts. */
static int64_t away_bytes (const trial *w, int32_t op) {
  const plan *p = w->p.c.plan;
  const rewritten *r = &w->p.c.rewritten;
  int64_t sum = 0;
  int32_t first = 0;
  while (r->ops[first].index != op)
    first++;
  span start = { w->t.ops[first].start_ns, w->t.ops[first].start_ns };
  for (int32_t i = 0; i < p->n_moves; i++) /* what no op uses may be away at any */
    if (w->p.units.at[p->moves[i].unit].first != NO_OP &&
        fixed_is_away (&p->moves[i], &w->t, i, start))
      sum += unit_part_bytes (&w->p.units.at[p->moves[i].unit], p->placement.granule_bytes,
                              p->moves[i].part, p->moves[i].of);
  return sum;
}

/* A plan with sections and without recompute entries, and over every op that keeps its place, and
   at every wall, just what this plan has away. False: this seed makes none. */
static bool trial_make (uint64_t seed, bool level, arena *a, trial *w) {
  error err = { 0 };
  unsigned features = CASE_SECTIONS | CASE_WRAP;
  if (seed % 4 == 3) /* one move that does not dawdle: what a good program equals */
    features |= seed % 8 == 3 ? CASE_GAPS : 0;
  else
    features |= CASE_CLEAN | CASE_PARTS | CASE_LIVES | CASE_SHARED_RATE | CASE_COPY_NS;
  if (!planned_make (seed, features, a, &w->p, &err) || !w->p.c.plan->n_sections) {
    ck_assert_msg (err.code == ERR_none, "%s", err.text);
    return false;
  }
  const plan *p = w->p.c.plan;
  for (int32_t i = 0; i < p->n_sections; i++)
    if (level && p->sections[i].order == SECTION_DEPTH)
      return false;
  sim_job job = { w->p.c.trace, &w->p.c.rewritten, p };
  sim_options o = { .timeline_arena = a };
  predicted seen;
  ck_assert (simulate (&job, 1, &o, a, &seen, &w->t, &err) &&
             trace_loosen (w->p.c.trace, level ? LOOSE_LEVEL : LOOSE_ANY, a, &w->l, &err) &&
             units_of (w->l.trace, NULL, 0, 1, 0, a, &w->u, &err) &&
             gaps_of_loosened (&w->u, &w->l, 1, 0, a, &w->g, &err));
  for (int32_t k = 0; k < w->g.n_ops; k++) {
    int32_t op = w->l.of[k] == NO_OP ? w->l.of[k + 1] : w->l.of[k];
    if (!w->l.loose[k])
      w->g.base_bytes[k] = w->g.unused_bytes + w->g.room_bytes + away_bytes (w, op);
  }
  return true;
}

/* INT64_MAX where no plan is said to fit. */
static int64_t trial_bound (trial *w, arena *a) {
  bound b;
  error err = { 0 };
  for (int32_t i = 0; i < w->g.count; i++)
    w->g.at[i].tight = w->g.at[i].useful = true;
  bound_options how = { .dev = &w->p.c.plan->device, .host_bytes = MOST_BYTES, .any_units = true };
  bool ok = bound_of (&w->g, &how, a, &b, &err);
  ck_assert_msg (ok || err.code == ERR_infeasible, "%s", err.text);
  return ok ? b.lower_bound_ns : INT64_MAX;
}

CLAIM (no_plan_beats_the_bound_of_every_cut_under_its_own_needs) {
  int tried = 0, above = 0, level = 0;
  for (int seed = 1; seed <= suite_cases (2500); seed++) {
    arena *a = arena_new (0);
    trial w;
    if (trial_make ((uint64_t)seed, seed % 3 == 0, a, &w)) {
      int64_t ns = trial_bound (&w, a), real_ns = w.p.seen.step_ns;
      ck_assert_msg (ns <= real_ns, "seed %d: bound %lld, plan %lld", seed, (long long)ns,
                     (long long)real_ns);
      tried++;
      level += seed % 3 == 0;
      above += ns > trace_total_ns (w.p.c.trace);
    }
    arena_free (a);
  }
  ck_assert_msg (tried > suite_cases (2500) / 8 && level > tried / 10 && above > tried / 25,
                 "%d tried, %d level by level, %d above compute", tried, level, above);
}

/* ---- and where most must be there in whole ---- */

static bool crosses (const plan *p, int32_t op) {
  for (int32_t i = 0; i < p->n_sections; i++)
    if (p->sections[i].order == SECTION_DEPTH && p->sections[i].first < op &&
        op < p->sections[i].end)
      return true;
  return false;
}

/* What lives on both sides of the place before op k, and the plan has away when a chain's first
   part crosses it; or all parts, where none does. */
static int64_t away_across (const trial *w, int32_t k) {
  const plan *p = w->p.c.plan;
  const rewritten *r = &w->p.c.rewritten;
  int32_t op = w->l.of[k - 1], end = 0;
  while (r->ops[end].index != op)
    end++;
  for (int32_t i = end; !crosses (p, op + 1) && i < r->trace->n_ops; i++)
    end = r->ops[i].index == op ? i : end;
  span now = { w->t.ops[end].end_ns, w->t.ops[end].end_ns };
  int64_t sum = 0;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const unit_info *x = &w->u.at[r->tensors[p->moves[i].unit].index];
    if (x->first != NO_OP && (x->persistent || (x->first < k && k <= x->last)) &&
        fixed_is_away (&p->moves[i], &w->t, i, now))
      sum += unit_part_bytes (&w->p.units.at[p->moves[i].unit], p->placement.granule_bytes,
                              p->moves[i].part, p->moves[i].of);
  }
  return sum;
}

/* A seam between any two ops of a run, and nothing there that a chain would not need. */
static int64_t seams_bound (trial *w, bool cuttable, arena *a) {
  bound b;
  error err = { 0 };
  bound_options how = { .dev = &w->p.c.plan->device,
                        .host_bytes = MOST_BYTES,
                        .any_units = true,
                        .classes = 1,
                        .bound_only = true };
  ck_assert (gaps_add_seams (&w->g, w->g.n_ops, a, &err));
  for (int32_t k = 0; k < w->g.n_ops; k++)
    if (w->g.seam[k])
      w->g.across_bytes[k] = w->g.unused_bytes + w->g.room_bytes + away_across (w, k);
  for (int32_t i = 0; i < w->g.count; i++)
    w->g.at[i].tight = w->g.at[i].useful = true;
  for (int32_t x = 0; x < w->l.trace->n_tensors; x++)
    w->l.trace->tensors[x].split &= cuttable;
  bool ok = bound_of (&w->g, &how, a, &b, &err);
  ck_assert_msg (ok || err.code == ERR_infeasible, "%s", err.text);
  return ok ? b.lower_bound_ns : INT64_MAX;
}

CLAIM (no_plan_beats_the_bound_with_seams_under_its_own_needs) {
  int tried = 0, chains = 0, higher = 0;
  for (int seed = 1; seed <= suite_cases (4000); seed++) {
    arena *a = arena_new (0);
    trial w;
    if (trial_make ((uint64_t)seed, false, a, &w)) {
      int64_t without = trial_bound (&w, a), real_ns = w.p.seen.step_ns;
      int64_t ns = seams_bound (&w, seed % 2, a);
      ck_assert_msg (ns <= real_ns, "seed %d: bound %lld, plan %lld", seed, (long long)ns,
                     (long long)real_ns);
      tried++;
      higher += ns > without;
      for (int32_t i = 0; i < w.p.c.plan->n_sections; i++)
        chains += w.p.c.plan->sections[i].order == SECTION_DEPTH;
    }
    arena_free (a);
  }
  ck_assert_msg (chains > tried / 10 && higher > tried / 25, "%d tried, %d chains, %d higher",
                 tried, chains, higher);
}

/* ---- made wrong ---- */

/* What a run needs is said to be away while it runs. */
static void memory_in_runs (trial *w) {
  for (int32_t k = 0; k < w->g.n_ops; k++)
    if (w->l.loose[k])
      w->g.base_bytes[k] = w->g.unused_bytes + w->g.room_bytes + away_bytes (w, w->l.of[k]);
  memset (w->l.loose, 0, (size_t)w->g.n_ops);
}
/* What a cut op uses last goes only when all of its parts have run. */
static void whole_release (trial *w) {
  for (int32_t i = 0; i < w->g.count; i++) {
    gap *at = &w->g.at[i];
    at->release = at->after + 1 == w->g.n_ops ? 0 : at->after + 1;
    at->wraps = at->before < at->release;
  }
}
/* What a cut op uses is there before its first part, and goes when its last has run. */
static void whole_ops (trial *w) {
  whole_release (w);
  memset (w->l.loose, 0, (size_t)w->g.n_ops);
}
/* At a wall stands what the plan has away one op later. */
static void walls_too_early (trial *w) {
  for (int32_t k = 1; k + 2 < w->g.n_ops; k++)
    if (w->l.of[k] == NO_OP && w->l.of[k + 2] != NO_OP)
      w->g.base_bytes[k] = w->g.unused_bytes + w->g.room_bytes + away_bytes (w, w->l.of[k + 2]);
}

CLAIM (a_bound_of_every_cut_made_wrong_is_noticed) {
  struct {
    const char *name;
    void (*make) (trial *w);
    int seen;
  } faults[] = { { "memory in loose runs", memory_in_runs, 0 },
                 { "released when all parts have run", whole_release, 0 },
                 { "ops that are not cut", whole_ops, 0 },
                 { "walls at another place", walls_too_early, 0 } };
  int n = sizeof faults / sizeof *faults;
  for (int seed = 1; seed <= suite_cases (3000); seed++)
    for (int i = 0; i < n; i++) {
      arena *a = arena_new (0);
      trial w;
      if (faults[i].seen < 2 && trial_make ((uint64_t)seed, seed % 3 == 0, a, &w)) {
        faults[i].make (&w);
        faults[i].seen += trial_bound (&w, a) > w.p.seen.step_ns;
      }
      arena_free (a);
    }
  for (int i = 0; i < n; i++)
    ck_assert_msg (faults[i].seen > 0, "%s: not noticed", faults[i].name);
}

/* ---- its proof ---- */

CLAIM (what_is_claimed_of_every_cut_is_proved_and_one_unit_more_is_refused) {
  int flows[2][3] = { { 0 } };
  for (int i = 0; i < 6 * suite_cases (220); i++) {
    static const recompute_mode modes[] = { RECOMPUTE_OFF, RECOMPUTE_AUTO, RECOMPUTE_ONLY };
    int seed = i / 6, level = i % 2, mode = i / 2 % 3;
    arena *a = arena_new (0);
    random_case c;
    bound b;
    error err = { 0 };
    loosened l;
    units u;
    gaps g;
    if (random_case_of ((uint64_t)seed, CASE_EVERYTHING & ~CASE_RECOMPUTE, 9, a, &c)) {
      plan *p = c.plan;
      ck_assert (trace_loosen (c.trace, level ? LOOSE_LEVEL : LOOSE_ANY, a, &l, &err) &&
                 units_of (l.trace, NULL, 0, 1, 0, a, &u, &err) &&
                 gaps_of_loosened (&u, &l, 1, 0, a, &g, &err));
      int64_t floor = g.floor_bytes > 0 ? g.floor_bytes : 0;
      p->n_sections = p->n_groups = p->n_moves = p->n_recomputes = 0;
      p->budget_bytes = floor + (g.peak_bytes - floor) * (seed % 7) / 8;
      p->host_bytes = seed % 2 || mode ? MOST_BYTES : (g.peak_bytes - floor) / 2;
      solve_options o = { .device = &p->device,
                          .budget_bytes = p->budget_bytes,
                          .host_bytes = p->host_bytes,
                          .keep_proof = true,
                          .sections = SECTIONS_AUTO,
                          .section_orders = level ? ORDERS_LEVEL : ORDERS_AUTO,
                          .recompute = modes[mode] };
      if (sections_bound (c.trace, &o, a, &b, &err)) {
        proved x;
        p->has_certificate = true;
        p->certificate =
            (certificate){ .lower_bound_ns = b.lower_bound_ns, .gap = INFINITY, .proof = b.proof };
        ck_assert_msg (prove_plan (c.trace, p, INT64_MAX, a, &x, &err), "case %d: %s", i, err.text);
        ck_assert_msg (x.lower_bound_ns == b.lower_bound_ns,
                       "case %d: %lld is proved, %lld claimed", i, (long long)x.lower_bound_ns,
                       (long long)b.lower_bound_ns);
        p->certificate.lower_bound_ns++;
        ck_assert (!prove_plan (c.trace, p, INT64_MAX, a, &x, &err) && err.code == ERR_infeasible);
        flows[level][mode] += strcmp (b.by, "cuts-lp") == 0;
      } else
        ck_assert_int_eq (err.code, ERR_infeasible);
    }
    arena_free (a);
  }
  for (int i = 0; i < 6; i++)
    ck_assert_msg (flows[i / 3][i % 3] > 5, "%d flows, level %d, mode %d", flows[i / 3][i % 3],
                   i / 3, i % 3);
}

/* ---- the options together ---- */

static int64_t step_of (const trace *t, solve_options o, sections_mode sections,
                        recompute_mode recompute, arena *a) {
  solution s;
  error err = { 0 };
  o.sections = sections;
  o.recompute = recompute;
  if (!solve (t, &o, a, &s, &err)) {
    ck_assert_msg (err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
    return INT64_MAX;
  }
  ck_assert_int_le (s.bound.lower_bound_ns, s.plan->predicted.step_ns);
  return s.plan->predicted.step_ns;
}

/* What both reach together. */
static int64_t never_worse (const trace *t, const solve_options *o, int *gained, arena *a) {
  int64_t both = step_of (t, *o, SECTIONS_AUTO, RECOMPUTE_AUTO, a);
  int64_t cut = step_of (t, *o, SECTIONS_AUTO, RECOMPUTE_OFF, a);
  int64_t again = step_of (t, *o, SECTIONS_OFF, RECOMPUTE_AUTO, a);
  int64_t none = step_of (t, *o, SECTIONS_OFF, RECOMPUTE_OFF, a);
  ck_assert_msg (both <= cut && both <= again && cut <= none && again <= none,
                 "%s: neither %lld, sections %lld, recompute %lld, both %lld", t->name,
                 (long long)none, (long long)cut, (long long)again, (long long)both);
  *gained += both < none;
  return both;
}

/* Nor than nothing swapped, the best prefix by a ranking, and every k-th kept. */
static void never_worse_than_advice (const trace *t, solve_options o, int64_t both, arena *a) {
  enum { MOST_K = 6, PREFIXES = 64 };
  error err = { 0 };
  kept_kth kth;
  recompute_result r;
  int64_t alone = step_of (t, o, SECTIONS_OFF, RECOMPUTE_ONLY, a);
  o.recompute = RECOMPUTE_AUTO;
  ck_assert_msg (keep_kth (t, &o, MOST_K, &kth, &err), "%s", err.text);
  ck_assert (greedy_drops (t, &o, true, PREFIXES * (int64_t)t->n_ops, a, &r, &err));
  ck_assert_int_lt (kth.step_ns, INT64_MAX);
  ck_assert_msg (both <= alone && both <= kth.step_ns && both <= r.value.step_ns,
                 "%s: both %lld, recompute alone %lld, every %d-th kept %lld, greedy %lld", t->name,
                 (long long)both, (long long)alone, kth.k, (long long)kth.step_ns,
                 (long long)r.value.step_ns);
}

CLAIM (allowing_both_is_never_worse_than_one_of_them) {
  int compared = 0, gained = 0;
  for (uint64_t seed = 40; seed < 56; seed++) {
    arena *a = arena_new (0);
    random_case c;
    error err = { 0 };
    units u;
    gaps g;
    if (random_case_of (seed, CASE_SECTIONS | CASE_RECOMPUTE | CASE_WRAP | CASE_CLEAN, 8, a, &c)) {
      device d = c.plan->device;
      d.host_bytes = (int64_t)1 << 40;
      ck_assert (units_of (c.trace, NULL, 0, d.granule_bytes, 0, a, &u, &err) &&
                 gaps_of (&u, d.granule_bytes, INT64_MAX / 8, a, &g, &err));
      solve_options o = { .device = &d,
                          .budget_bytes = g.floor_bytes + (g.peak_bytes - g.floor_bytes) / 4,
                          .host_bytes = d.host_bytes,
                          .gap_ppm = 1,
                          .limit_ticks = 10000 };
      d.memory_bytes = d.reserved_bytes + o.budget_bytes;
      never_worse (c.trace, &o, &gained, a);
      compared++;
    }
    arena_free (a);
  }
  ck_assert_int_gt (compared, 8);
  ck_assert_int_gt (gained, 0);
}

static device fast_card (int64_t granule_bytes, int64_t copy_ns) {
  return (device){ .name = "fast",
                   .memory_bytes = (int64_t)1 << 36,
                   .granule_bytes = granule_bytes,
                   .link = { 12000000000, 12000000000, 22000000000, copy_ns },
                   .host_bytes = (int64_t)1 << 40,
                   .section_ns = 10000,
                   .share_ppm = 1000000,
                   .has_roofline = true,
                   .roofline = { .fp32_flops = 60000000000000,
                                 .memory_bytes_per_s = 2000000000000,
                                 .efficiency_ppm = 1000000 } };
}

CLAIM (allowing_both_is_never_worse_on_networks) {
  static const zoo_request networks[] = {
    { .name = "vit-b", .batch = 8, .width_divisor = 4, .depth_divisor = 12, .classes = 10 },
    { .name = "alexnet", .batch = 32, .width_divisor = 4 }, /* where FERRY_CASES is given */
  };
  int gained = 0;
  for (int i = 0; i < 2 && i < suite_cases (1); i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    units u;
    gaps g;
    device d = fast_card (2 << 20, 10000);
    zoo_request r = networks[i];
    r.device = &d;
    trace *t = zoo_trace (&r, a, &err);
    ck_assert (t && units_of (t, NULL, 0, d.granule_bytes, 1 << 20, a, &u, &err) &&
               gaps_of (&u, d.granule_bytes, INT64_MAX / 8, a, &g, &err));
    solve_options o = { .device = &d,
                        .budget_bytes = g.peak_bytes / 2,
                        .host_bytes = d.host_bytes,
                        .gap_ppm = 1,
                        .limit_ticks = 10000 };
    never_worse_than_advice (t, o, never_worse (t, &o, &gained, a), a);
    arena_free (a);
  }
  ck_assert_int_gt (gained, 0);
}

static int32_t cut_ops (const variant *v) {
  int32_t n = 0;
  for (int32_t i = 0; i < v->n_sections; i++)
    n += v->sections[i].end - v->sections[i].first;
  return n;
}

/* A language model's head is most of what is there at once: a few ops in parts, where what only
   swaps would cut nearly all. */
CLAIM_IN_ARENA (where_drops_are_allowed_a_cut_of_the_fullest_ops_comes_first) {
  device d = fast_card (65536, 1000);
  zoo_request r = {
    .name = "gpt2", .batch = 4, .width_divisor = 4, .depth_divisor = 4, .seq = 128, .device = &d
  };
  counted_step step;
  sections_family f;
  trace *t = zoo_trace (&r, a, &err);
  ck_assert (t && step_count_bytes (t, INT64_MAX / 8, a, &step, &err));
  solve_options o = { .device = &d,
                      .budget_bytes = step.gaps.peak_bytes / 100 * 60,
                      .host_bytes = d.host_bytes,
                      .sections = SECTIONS_AUTO,
                      .recompute = RECOMPUTE_AUTO };
  ck_assert (sections_search (t, &o, 1000000, a, &f, &err));
  ck_assert_int_gt (f.n_by_drops, 0);
  int32_t fewest = t->n_ops;
  for (int32_t i = 0; i < f.count; i++) {
    int64_t ns;
    ck_assert (recompute_bound (t, &f.at[i], &o, a, &ns, &err));
    ck_assert_int_ge (ns, f.drops_values[0].step_ns);
    fewest = min_of (fewest, cut_ops (&f.at[i]));
  }
  int64_t whole_ns;
  ck_assert (recompute_bound (t, NULL, &o, a, &whole_ns, &err));
  ck_assert_int_lt (f.drops_values[0].step_ns, whole_ns);
  ck_assert_int_le (cut_ops (&f.for_drops[0]), fewest);
}

/* 2^53 parts are not counted one by one. */
CLAIM_IN_ARENA (the_fewest_parts_of_the_largest_batch_are_found_at_once) {
  variant v;
  int32_t at = 0;
  tensor x = {
    .name = "", .bytes = MOST_BYTES, .split = true, .born_before = NO_OP, .dies_after = NO_OP
  };
  op o = { .name = "", .parts = MOST_BYTES, .writes = { &at, 1 } };
  trace t = {
    .name = "", .batch = MOST_BYTES, .tensors = &x, .n_tensors = 1, .ops = &o, .n_ops = 1
  };
  solve_options how = { .budget_bytes = 1000, .sections = SECTIONS_AUTO };
  ck_assert (sections_fit (&t, &how, 1000000, a, &v, &err));
  ck_assert_int_eq (v.n_sections, 1);
  ck_assert_int_eq (v.sections[0].parts, (MOST_BYTES + 999) / 1000);
}

int main (void) {
  return suite_run ("sections", 300);
}
