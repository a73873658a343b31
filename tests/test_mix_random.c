/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sections and recompute on small random traces.  The bounds are held against random plans that
   know nothing of the planner, the choices against all cuts and all sets of drops of tiny traces.
   FERRY_CASES: how many where each takes longest. */
#include <string.h>

#include "base/random.h"
#include "solver/solve.h"
#include "solver/recompute/drops.h"
#include "solver/search/ways.h"
#include "solver/recompute/recompute.h"
#include "solver/sections/sections.h"
#include "tests/fixed_drops.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "tests/synthetic.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

enum { CASES = 12 };

CLAIM (no_random_plan_beats_the_bound_of_its_cut) {
  int over = 0, dropped = 0;
  for (int seed = 1; seed <= 125 * suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    random_case c;
    error err = { 0 };
    predicted cost;

    if (!random_case_of ((uint64_t)seed, CASE_EVERYTHING, 9, a, &c) ||
        !check_plan (c.trace, c.plan, a, NULL, &err)) {
      arena_free (a);
      continue;
    }
    sim_job job = { c.trace, &c.rewritten, c.plan };
    sim_options how = { 0 };
    ck_assert_msg (simulate (&job, 1, &how, a, &cost, NULL, &err), "%s", err.text);
    variant cut = { "case", c.plan->sections, NULL, c.plan->n_sections, 0 };
    solve_options o = { .device = &c.plan->device,
                        .budget_bytes = cost.peak_bytes,
                        .host_bytes = c.plan->host_bytes,
                        .recompute = RECOMPUTE_AUTO };
    int64_t ns;
    ck_assert_msg (recompute_bound (c.trace, &cut, &o, a, &ns, &err), "%s", err.text);
    ck_assert_msg (ns <= cost.step_ns, "seed %d: bound %lld, plan %lld", seed, (long long)ns,
                   (long long)cost.step_ns);
    variant plain = { "plain", c.plan->sections, NULL, c.plan->n_sections, 0 };
    variant_value value;
    ck_assert_msg (variant_look (c.trace, &plain, &o, a, &value, &err), "%s", err.text);
    over++;
    ck_assert_int_ge (ns, value.compute_ns);
    dropped += c.plan->n_recomputes > 0;
    arena_free (a);
  }
  ck_assert_int_gt (over, 25 * suite_cases (CASES));
  ck_assert_int_gt (dropped, 2 * suite_cases (CASES));
}

/* The program charges dead inputs as well, which is right for entries that keep nothing beyond its
   last use: all that the planner makes are such. */
CLAIM (no_set_of_drops_beats_the_program_and_none_keeps_the_dead) {
  int compared = 0, tighter = 0, near = 0;
  for (int seed = 1; seed <= 75 * suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    random_case c;
    error err = { 0 };
    random_state r = random_seed ((uint64_t)seed);
    units u;
    gaps g;
    uses used;
    drop *drops;
    int32_t n;
    recompute_program p;
    variant v = { .name = "random" };
    variant_value value;
    bool keeps;
    if (!random_case_of ((uint64_t)seed, CASE_RECOMPUTE | CASE_WORKSPACE | CASE_LIVES, 12, a, &c)) {
      arena_free (a);
      continue;
    }
    const trace *t = c.trace;
    device d = c.plan->device;
    d.host_bytes = (int64_t)1 << 40;
    uint8_t *all = NEW (a, t->n_ops, uint8_t, &err);
    memset (all, 1, (size_t)t->n_ops);
    ck_assert (units_of (t, NULL, 0, d.granule_bytes, 0, a, &u, &err) &&
               gaps_of (&u, d.granule_bytes, INT64_MAX / 8, a, &g, &err) &&
               uses_of (t, a, &used, &err) &&
               drops_find (&(drops_request){ .trace = t, .over = all }, a, &drops, &n, NULL, &err));
    solve_options o = { .device = &d,
                        .budget_bytes =
                            random_between (&r, g.floor_bytes, (g.floor_bytes + g.peak_bytes) / 2),
                        .host_bytes = d.host_bytes,
                        .recompute = RECOMPUTE_AUTO };
    d.memory_bytes = d.reserved_bytes + o.budget_bytes;
    ck_assert_msg (recompute_solve_program (t, NULL, &o, NULL, true, a, &p, &err), "%s", err.text);
    uint8_t *chosen = NEW (a, n, uint8_t, &err);
    for (int set = 0; set < 6; set++) {
      for (int32_t i = 0; i < n; i++)
        chosen[i] = (uint8_t)random_between (&r, DROP_NONE, DROP_PASSES);
      drop_choice choice = { .chosen = chosen,
                             .near_ns = random_between (&r, 0, trace_total_ns (t)) };
      ck_assert (drops_entries (&(drop_list){ .trace = t, .uses = &used, .at = drops, .count = n },
                                &choice, a, &v.recomputes, &v.n_recomputes, &err) &&
                 fixed_drops_keeps (t, v.recomputes, v.n_recomputes, a, &keeps, &err));
      ck_assert_msg (!keeps, "seed %d: an entry reads what is dead", seed);
      ck_assert_msg (variant_try (t, &v, &o, 0, a, &value, &err), "%s", err.text);
      if (value.step_ns == INT64_MAX || !p.fits)
        continue;
      ck_assert_msg (p.bound.lower_bound_ns <= value.step_ns, "seed %d: bound %lld, plan %lld",
                     seed, (long long)p.bound.lower_bound_ns, (long long)value.step_ns);
      compared++;
      near += v.n_recomputes > 0 && value.step_ns - p.bound.lower_bound_ns <= value.step_ns / 50;
    }
    bound_options how = {
      .dev = &d, .host_bytes = o.host_bytes, .any_units = true, .drops = DROPS_ALLOWED
    };
    bound loose;
    if (p.fits && bound_of (&p.step->step.gaps, &how, a, &loose, &err)) {
      ck_assert_int_le (loose.lower_bound_ns, p.bound.lower_bound_ns + 1);
      tighter += loose.lower_bound_ns + 1 < p.bound.lower_bound_ns;
    }
    arena_free (a);
  }
  ck_assert_msg (compared > 37 * suite_cases (CASES) && tighter > 0 && near > 5,
                 "%d compared, %d tighter, %d near", compared, tighter, near);
}

/* Every set of drops and every single section of a tiny trace, each with its greedy plans. */
static int64_t least_of_all (const trace *t, const solve_options *o, arena *a) {
  int64_t least = INT64_MAX;
  error err = { 0 };
  for (int32_t first = -1; first < t->n_ops; first++)
    for (int32_t end = first + 1; end <= t->n_ops; end++)
      for (int64_t parts = 2; parts <= t->batch && parts < 3; parts++)
        for (int order = 0; order < SECTION_ORDERS; order++) {
          section one = { first, end, parts, (section_order)order };
          variant v = { "all", &one, NULL, first >= 0 && end > first, 0 };
          variant_value value;
          rewritten rw;
          error why = { 0 };
          if (!trace_rewrite (t,
                              &(rewriting){ .sections = v.sections,
                                            .n_sections = v.n_sections,
                                            .section_ns = o->device->section_ns },
                              a, &rw, &why))
            continue;
          uses u;
          drop *drops;
          int32_t n;
          uint8_t *all = NEW (a, rw.trace->n_ops, uint8_t, &err);
          memset (all, 1, (size_t)rw.trace->n_ops);
          ck_assert (uses_of (rw.trace, a, &u, &err) &&
                     drops_find (&(drops_request){ .trace = rw.trace, .over = all }, a, &drops, &n,
                                 NULL, &err));
          n = n > 3 ? 3 : n;
          for (int32_t set = 0; set < 1 << n; set++) {
            uint8_t chosen[3];
            for (int32_t i = 0; i < n; i++)
              chosen[i] = set >> i & 1;
            drop_choice choice = { .chosen = chosen };
            ck_assert (drops_entries (
                &(drop_list){ .trace = rw.trace, .uses = &u, .at = drops, .count = n }, &choice, a,
                &v.recomputes, &v.n_recomputes, &err));
            ck_assert_msg (variant_try (t, &v, o, 0, a, &value, &err), "%s", err.text);
            ck_assert_msg (value.legal, "the rewriting refuses a set of drops");
            if (value.step_ns < least)
              least = value.step_ns;
          }
        }
  return least;
}

CLAIM (bound_least_of_all_cuts_and_drops_and_plan_are_in_order) {
  int solved = 0;
  for (int seed = 1; seed <= 2 * suite_cases (CASES) / 3; seed++) {
    arena *a = arena_new (0);
    random_case c;
    error err = { 0 };
    units u;
    gaps g;
    if (!random_case_of ((uint64_t)seed,
                         CASE_SECTIONS | CASE_RECOMPUTE | CASE_WRAP | CASE_WORKSPACE, 5, a, &c)) {
      arena_free (a);
      continue;
    }
    device d = c.plan->device;
    d.host_bytes = (int64_t)1 << 40;
    ck_assert (units_of (c.trace, NULL, 0, d.granule_bytes, 0, a, &u, &err) &&
               gaps_of (&u, d.granule_bytes, INT64_MAX / 8, a, &g, &err));
    solve_options o = { .device = &d,
                        .budget_bytes = (g.floor_bytes + g.peak_bytes) / 2,
                        .host_bytes = d.host_bytes,
                        .limit_ticks = 20000 };
    d.memory_bytes = d.reserved_bytes + o.budget_bytes;
    solution plain, mixed;
    error why = { 0 };
    bool has_plain = solve (c.trace, &o, a, &plain, &why);
    o.sections = SECTIONS_AUTO;
    o.recompute = RECOMPUTE_AUTO;
    if (solve (c.trace, &o, a, &mixed, &err)) {
      int64_t least = least_of_all (c.trace, &o, a);
      ck_assert_msg (mixed.bound.lower_bound_ns <= least, "seed %d: bound %lld, some plan %lld",
                     seed, (long long)mixed.bound.lower_bound_ns, (long long)least);
      ck_assert_int_le (mixed.bound.lower_bound_ns, mixed.plan->predicted.step_ns);
      ck_assert_int_ge (mixed.bound.lower_bound_ns, trace_total_ns (c.trace));
      ck_assert (!has_plain || mixed.plan->predicted.step_ns <= plain.plan->predicted.step_ns);
      solved++;
    } else {
      ck_assert_int_eq (err.code, ERR_infeasible);
      ck_assert (!has_plain);
    }
    arena_free (a);
  }
  ck_assert_int_gt (solved, 2);
}

/* Whatever is allowed beside swapping, the plan without it stays a candidate. */
CLAIM (allowing_more_never_worsens_a_plan) {
  static const struct {
    sections_mode sections;
    recompute_mode recompute;
  } allowed[] = { { SECTIONS_AUTO, RECOMPUTE_OFF },
                  { SECTIONS_OFF, RECOMPUTE_CHEAP },
                  { SECTIONS_OFF, RECOMPUTE_AUTO },
                  { SECTIONS_AUTO, RECOMPUTE_AUTO } };
  int compared = 0, gained = 0;
  for (int seed = 20; seed < 20 + suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    random_case c;
    error err = { 0 };
    units u;
    gaps g;
    solution plain, more;
    if (random_case_of ((uint64_t)seed, CASE_SECTIONS | CASE_RECOMPUTE | CASE_WRAP | CASE_CLEAN, 7,
                        a, &c)) {
      device d = c.plan->device;
      d.host_bytes = (int64_t)1 << 40;
      ck_assert (units_of (c.trace, NULL, 0, d.granule_bytes, 0, a, &u, &err) &&
                 gaps_of (&u, d.granule_bytes, INT64_MAX / 8, a, &g, &err));
      solve_options o = { .device = &d,
                          .budget_bytes = g.floor_bytes + (g.peak_bytes - g.floor_bytes) / 3,
                          .host_bytes = d.host_bytes,
                          .limit_ticks = 20000 };
      d.memory_bytes = d.reserved_bytes + o.budget_bytes;
      bool has_plain = solve (c.trace, &o, a, &plain, &err);
      for (size_t i = 0; has_plain && i < sizeof allowed / sizeof *allowed; i++) {
        o.sections = allowed[i].sections;
        o.recompute = allowed[i].recompute;
        ck_assert_msg (solve (c.trace, &o, a, &more, &err), "seed %d: %s", seed, err.text);
        ck_assert_int_le (more.plan->predicted.step_ns, plain.plan->predicted.step_ns);
        ck_assert_int_le (more.bound.lower_bound_ns, plain.bound.lower_bound_ns);
        ck_assert_int_le (more.bound.lower_bound_ns, more.plan->predicted.step_ns);
        gained += more.plan->predicted.step_ns < plain.plan->predicted.step_ns;
        compared++;
      }
    }
    arena_free (a);
  }
  ck_assert_int_gt (compared, 15);
  ck_assert_int_gt (gained, 0);
}

CLAIM (chains_end_where_the_rewriting_begins_to_refuse) {
  int ends = 0;
  for (int seed = 1; seed <= 50 * suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    random_case c;
    rewritten rw;
    if (random_case_of ((uint64_t)seed, CASE_SECTIONS, 9, a, &c)) {
      const trace *t = c.trace;
      for (int32_t first = 0; first < t->n_ops; first++) {
        error err = { 0 };
        int32_t *reads = NEW (a, t->n_tensors, int32_t, &err);
        int32_t *writes = NEW (a, t->n_tensors, int32_t, &err);
        int32_t end = sections_chain_end (t, first, t->n_ops, 2, reads, writes);
        section s = { first, end, 2, SECTION_DEPTH };
        if (t->batch < 2)
          continue;
        ck_assert (
            end == first ||
            trace_rewrite (t, &(rewriting){ .sections = &s, .n_sections = 1 }, a, &rw, &err));
        s.end = end + 1;
        ck_assert (
            end == t->n_ops ||
            !trace_rewrite (t, &(rewriting){ .sections = &s, .n_sections = 1 }, a, &rw, &err));
        ends += end > first + 1 && end < t->n_ops;
      }
    }
    arena_free (a);
  }
  ck_assert_int_gt (ends, 50);
}

/* A mask comes with what it masks: dropped with it, it is made by the same run, and stays. */
CLAIM_IN_ARENA (what_a_run_makes_besides_takes_its_place_too) {
  uses u;
  drop *drops;
  recompute *entries;
  int32_t n, count;
  trace_builder *b = build_new (a, "mask", 1, &err);
  build_tensor (b, "input", 4096, TENSOR_INPUT);
  build_tensor (b, "y", 4096, TENSOR_ACTIVATION);
  build_tensor (b, "mask", 4096, TENSOR_ACTIVATION);
  for (int k = 0; k < 7; k++) {
    build_op (b, "op", OP_FORWARD, 100);
    if (k < 2)
      build_write (b, k);
    if (k == 1) {
      build_write (b, 2);
      build_read (b, 0);
    }
    if (k > 3)
      build_read (b, k == 4 ? 1 : k == 5 ? 2 : 0);
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t, "%s", err.text);
  uint8_t over[7] = { 0, 0, 0, 1, 0, 0, 0 }, chosen[8] = { 0 };
  ck_assert (uses_of (t, a, &u, &err) &&
             drops_find (&(drops_request){ .trace = t, .over = over }, a, &drops, &n, NULL, &err));
  ck_assert_int_le (n, 8);
  for (int32_t i = 0; i < n; i++)
    chosen[i] = drops[i].tensor > 0;
  drop_choice choice = { .chosen = chosen };
  ck_assert (drops_entries (&(drop_list){ .trace = t, .uses = &u, .at = drops, .count = n },
                            &choice, a, &entries, &count, &err));
  ck_assert_int_eq (count, 1);
  ck_assert_int_eq (entries[0].before, 4);
  ck_assert_int_eq (entries[0].ops.count, 1);
  ck_assert_int_eq (entries[0].ops.at[0], 1);
  ck_assert_int_eq (entries[0].replaces.count, 2);
  ck_assert (entries[0].replaces.at[0] == 1 && entries[0].replaces.at[1] == 2);
}

int main (void) {
  return suite_run ("mix random", 120);
}
