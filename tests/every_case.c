/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/every_case.h"

#include <time.h>

#include "solver/solve.h"
#include "tests/every_way.h"

const every_kind every_kinds[EVERY_KINDS] = { { "parts", true, false, 4 },
                                              { "drops, 4 or 5 ops", false, true, 5 },
                                              { "drops, 6 or 7 ops", false, true, 7 },
                                              { "parts and drops", true, true, 3 } };

static double now_s (void) {
  return (double)clock () / CLOCKS_PER_SEC;
}

static bool judge (int seed, const solution *s, const every_way *all, every_tally *n, error *err) {
  int64_t step_ns = s ? s->plan->predicted.step_ns : INT64_MAX / 4;
  int64_t bound_ns = s ? s->bound.lower_bound_ns : 0;
  if (step_ns < bound_ns || all->least_ns < bound_ns)
    return error_set (err, ERR_internal, "seed %d: the bound is %lld ns, possible are %lld", seed,
                      (long long)bound_ns,
                      (long long)(step_ns < all->least_ns ? step_ns : all->least_ns));
  n->tried++;
  n->ways += all->made;
  n->runs += all->runs;
  n->refused += !s;
  if (!s || !all->complete)
    return true;
  if (all->least_ns > step_ns)
    return error_set (err, ERR_internal,
                      "seed %d: solve finds %lld ns, all plans give no less than %lld", seed,
                      (long long)step_ns, (long long)all->least_ns);
  double percent = 100 * (double)step_ns / (double)all->step_ns - 100;
  n->whole++;
  n->best += step_ns <= all->step_ns;
  n->near += percent <= 1;
  n->at_bound += bound_ns == all->least_ns;
  if (percent > n->worst_percent) {
    n->worst_percent = percent;
    n->worst_seed = seed;
    n->worst[0][0] = s->plan->n_sections;
    n->worst[0][1] = s->plan->n_recomputes;
    n->worst[1][0] = all->n_sections;
    n->worst[1][1] = all->n_entries;
  }
  return true;
}

bool every_case_try (const every_kind *kind, int seed, int64_t ticks, int64_t most_runs,
                     every_tally *n, error *err) {
  tiny_case c;
  solution s;
  every_way all;
  error why = { 0 };
  arena *a = arena_new (0);
  bool ok = a || error_set (err, ERR_memory, "out of memory");
  if (!ok || !tiny_make_cut ((uint64_t)seed, kind->parts, kind->most_ops, a, &c, err)) {
    arena_free (a);
    return err->code == ERR_none;
  }
  every_allowed allowed = {
    .parts = kind->parts, .level_only = seed % 3 == 0, .drops = kind->drops, .most_runs = most_runs
  };
  solve_options o = { .device = &c.device,
                      .budget_bytes = c.budget_bytes,
                      .host_bytes = c.device.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = ticks,
                      .sections = kind->parts ? SECTIONS_AUTO : SECTIONS_OFF,
                      .section_orders = allowed.level_only ? ORDERS_LEVEL : ORDERS_AUTO,
                      .recompute = kind->drops ? RECOMPUTE_AUTO : RECOMPUTE_OFF };
  double from_s = now_s ();
  bool has = solve (c.trace, &o, a, &s, &why);
  n->solve_s += now_s () - from_s;
  if (!has && why.code != ERR_infeasible && why.code != ERR_limit)
    ok = error_set (err, why.code, "seed %d: %s", seed, why.text);
  allowed.below_ns = has ? s.plan->predicted.step_ns + 1 : trace_total_ns (c.trace) * 3 / 2;
  allowed.any = !has;
  from_s = now_s ();
  ok = ok && every_way_search (&c, &allowed, &all, err);
  n->all_s += now_s () - from_s;
  if (ok && (has || all.step_ns < allowed.below_ns))
    ok = judge (seed, has ? &s : NULL, &all, n, err);
  if (ok && has) {
    n->cut += s.plan->n_sections > 0;
    n->again += s.plan->n_recomputes > 0;
    n->moved += s.plan->n_moves > 0;
  }
  arena_free (a);
  return ok;
}
