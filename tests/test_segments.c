/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where little fits: what is met on the way to a tensor is given up again, and sets that keep what
   segments hand on. */
#include <string.h>

#include "solver/solve.h"
#include "solver/recompute/drops.h"
#include "solver/search/ways.h"
#include "solver/attempt/variant.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/zoo/zoo.h"

enum { SMALL = 6, DEEP = 48 };
#define MIB ((int64_t)1 << 20)

/* Layer i makes tensor i + 1 from tensor i; the way back reads them from the last to the first and
   hands on one gradient.  The input is dead behind the first, so its output stays. */
static trace *chain (arena *a, int layers) {
  error err = { 0 };
  trace_builder *b = build_new (a, "chain", 1, &err);
  build_tensor (b, "x0", MIB, TENSOR_INPUT);
  for (int i = 1; i <= layers; i++)
    build_tensor (b, "x", MIB, TENSOR_ACTIVATION);
  build_tensor (b, "gradient", MIB, TENSOR_GRADIENT);
  for (int i = 0; i < layers; i++) {
    build_op (b, "layer", OP_FORWARD, 100000);
    build_read (b, i);
    build_write (b, i + 1);
  }
  for (int i = layers; i > 0; i--) {
    build_op (b, "back", OP_BACKWARD, 100000);
    build_read (b, i);
    if (i < layers)
      build_read (b, layers + 1);
    build_write (b, layers + 1);
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t, "%s", err.text);
  return t;
}

typedef struct dropping {
  recompute *entries;
  int32_t count;
} dropping;

/* All that idles over the turn. */
static dropping drop_all (const trace *t, uint8_t how, int64_t near_ns, arena *a) {
  error err = { 0 };
  uses u;
  drop *drops;
  int32_t n;
  dropping d;
  uint8_t *over = NEW (a, t->n_ops, uint8_t, &err);
  over[t->n_ops / 2] = 1;
  ck_assert (uses_of (t, a, &u, &err) &&
             drops_find (&(drops_request){ .trace = t, .over = over }, a, &drops, &n, NULL, &err));
  uint8_t *chosen = NEW (a, n, uint8_t, &err);
  memset (chosen, how, (size_t)n);
  drop_choice choice = { .chosen = chosen, .near_ns = near_ns };
  ck_assert (drops_entries (&(drop_list){ .trace = t, .uses = &u, .at = drops, .count = n },
                            &choice, a, &d.entries, &d.count, &err));
  return d;
}

CLAIM_IN_ARENA (what_stays_is_made_once) {
  trace *t = chain (a, SMALL);
  dropping d = drop_all (t, DROP_STAYS, 0, a);
  ck_assert_int_eq (d.count, 1);
  ck_assert_int_eq (d.entries[0].ops.count, SMALL - 2);
  ck_assert_int_eq (d.entries[0].replaces.count, SMALL - 2);
}

CLAIM_IN_ARENA (what_passes_is_made_again_when_it_is_wanted) {
  trace *t = chain (a, SMALL);
  dropping d = drop_all (t, DROP_PASSES, 0, a);
  ck_assert_int_eq (d.count, SMALL - 2);
  for (int32_t i = 0; i < d.count; i++) { /* x5 by ops 1 to 4, then x4 by 1 to 3, ... */
    ck_assert_int_eq (d.entries[i].ops.count, SMALL - 2 - i);
    ck_assert_int_eq (d.entries[i].replaces.count, 1);
    ck_assert_int_eq (d.entries[i].replaces.at[0], SMALL - 1 - i);
  }
}

CLAIM_IN_ARENA (what_is_wanted_soon_stays_all_the_same) {
  trace *t = chain (a, SMALL);
  dropping d = drop_all (t, DROP_PASSES, 100000, a); /* the next op's too, no more */
  ck_assert_int_eq (d.count, (SMALL - 2) / 2);
  for (int32_t i = 0; i < d.count; i++)
    ck_assert_int_eq (d.entries[i].replaces.count, 2);
  d = drop_all (t, DROP_PASSES, trace_total_ns (t), a);
  ck_assert_int_eq (d.count, 1);
}

static const device card = { .name = "card",
                             .memory_bytes = 64 * MIB,
                             .granule_bytes = MIB,
                             .host_bytes = (int64_t)1 << 40,
                             .link = { 1000000000, 1000000000, 2000000000, 10000 },
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 10000000000000,
                                           .memory_bytes_per_s = 500000000000,
                                           .efficiency_ppm = 500000,
                                           .op_ns = 3000 } };

static const plan *solved (const trace *t, int64_t budget_bytes, arena *a, error *err) {
  solve_options o = { .device = &card,
                      .budget_bytes = budget_bytes,
                      .host_bytes = card.host_bytes,
                      .limit_ticks = 400000,
                      .recompute = RECOMPUTE_ONLY };
  solution s;
  solve_request q = { .trace = t, .options = &o, .effort = { .limit_ticks = o.limit_ticks } };
  if (!ways_solve (&q, a, &s, err))
    return NULL;
  ck_assert_msg (check_plan (t, s.plan, a, NULL, err), "%s", err->text);
  return s.plan;
}

/* Layers to run so that the states n, n - 1, ... 1 are there one after another, from state 0 on,
   with so many others kept: one is kept on the way, then those behind it, then those before it. */
static int64_t least_runs (int n, int kept) {
  static int64_t known[DEEP + 1][DEEP + 1];
  int64_t least = (int64_t)n * (n + 1) / 2;
  if (n == 0 || known[n][kept])
    return known[n][kept];
  for (int k = 1; kept && k <= n; k++) {
    int64_t here = k + least_runs (n - k, kept - 1) + least_runs (k - 1, kept);
    least = here < least ? here : least;
  }
  return known[n][kept] = least;
}

/* Beside what is kept there are the first layer's output, the gradient, what a layer makes, and
   what it reads, which may be one of those kept: between that and one more lies what can be
   reached. */
CLAIM (a_deep_network_in_little_memory_costs_what_nested_checkpoints_cost) {
  static const int64_t rooms[] = { 24, 16, 12, 9, 7 };
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    trace *t = chain (a, DEEP);
    const plan *p = solved (t, rooms[i] * MIB, a, &err);
    ck_assert_msg (p, "%lld: %s", (long long)rooms[i], err.text);
    int64_t runs = (p->predicted.step_ns - trace_total_ns (t)) / 100000 + DEEP - 1;
    int64_t least = least_runs (DEEP - 1, (int)rooms[i] - 4);
    ck_assert_int_le (runs * 100, least * 105);
    ck_assert_int_ge (runs, least_runs (DEEP - 1, (int)rooms[i] - 3));
    arena_free (a);
  }
}

/* In the least memory of which single tensors say that all fits: groups, which need more, must not
   be why there is no plan. */
CLAIM (what_fits_without_a_copy_has_a_plan_without_one) {
  static const char *const networks[] = { "alexnet", "resnet18" };
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
    static const variant nothing = { .name = "nothing" };
    arena *a = arena_new (0);
    error err = { 0 };
    device d = card;
    zoo_request r = { .name = networks[i],
                      .batch = 16,
                      .dtype = DTYPE_FP32,
                      .optimizer = ZOO_MOMENTUM,
                      .width_divisor = 8,
                      .device = &d };
    trace *t = zoo_trace (&r, a, &err);
    ck_assert_msg (t, "%s", err.text);
    d.memory_bytes = d.host_bytes;
    variant_value value = { .step_ns = INT64_MAX };
    solution s;
    solve_options o = { .device = &d,
                        .budget_bytes = d.granule_bytes,
                        .host_bytes = d.host_bytes,
                        .recompute = RECOMPUTE_ONLY };
    for (int round = 0; round < 8 && value.step_ns == INT64_MAX; round++) {
      o.budget_bytes += value.over_bytes;
      o.budget_bytes += -o.budget_bytes & (d.granule_bytes - 1);
      ck_assert_msg (variant_try (t, &nothing, &o, 0, a, &value, &err), "%s", err.text);
    }
    ck_assert_int_eq (value.step_ns, trace_total_ns (t));
    ck_assert_msg (
        attempt_solve (&(solve_request){ .trace = t, .variant = &nothing, .options = &o }, a, &s,
                       &err),
        "%s: %s", networks[i], err.text);
    ck_assert_int_eq (s.plan->predicted.step_ns, value.compute_ns);
    arena_free (a);
  }
}

int main (void) {
  return suite_run ("segments", 60);
}
