/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drops that are made from what is kept beyond its last use, where that takes less than to make it
   again as well. */
#include <string.h>

#include "solver/recompute/drops.h"
#include "solver/search/ways.h"
#include "solver/solve.h"
#include "solver/tuning/tuning.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"

enum { LAYERS = 48, LONG_NS = 100000, SHORT_NS = 1000 };
#define MIB ((int64_t)1 << 20)

static int32_t narrow_of (int layer) {
  return 2 * layer + 1;
}

static int32_t wide_of (int layer) {
  return 2 * layer + 2;
}

/* Each layer makes a narrow tensor at length and a wide one of it at once, as a cast or an enlarged
   picture. The way back reads the wide ones, and the narrow ones are dead by then. */
static trace *widening (arena *a) {
  error err = { 0 };
  trace_builder *b = build_new (a, "widening", 1, &err);
  build_tensor (b, "input", MIB, TENSOR_INPUT);
  for (int i = 0; i < LAYERS; i++) {
    build_tensor (b, "narrow", MIB, TENSOR_ACTIVATION);
    build_tensor (b, "wide", 8 * MIB, TENSOR_ACTIVATION);
  }
  build_tensor (b, "gradient", MIB, TENSOR_GRADIENT);
  for (int i = 0; i < LAYERS; i++) {
    build_op (b, "layer", OP_FORWARD, LONG_NS);
    build_read (b, i ? wide_of (i - 1) : 0);
    build_write (b, narrow_of (i));
    build_op (b, "widen", OP_FORWARD, SHORT_NS);
    build_read (b, narrow_of (i));
    build_write (b, wide_of (i));
  }
  for (int i = LAYERS - 1; i >= 0; i--) {
    build_op (b, "back", OP_BACKWARD, LONG_NS);
    build_read (b, wide_of (i));
    if (i < LAYERS - 1)
      build_read (b, wide_of (LAYERS - 1) + 1);
    build_write (b, wide_of (LAYERS - 1) + 1);
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t, "%s", err.text);
  return t;
}

/* Ops that run again where every wide tensor but the last is dropped. */
static int32_t runs_again (const trace *t, bool keeps_first, uint8_t how, drops_missed *missed,
                           arena *a) {
  error err = { 0 };
  uses u;
  drop *drops;
  recompute *entries;
  int32_t n, count, runs = 0;
  uint8_t *over = NEW (a, t->n_ops, uint8_t, &err);
  over[2 * LAYERS] = 1;
  drops_request q = { .trace = t, .over = over, .keeps = true, .keeps_first = keeps_first };
  ck_assert (uses_of (t, a, &u, &err) && drops_find (&q, a, &drops, &n, missed, &err));
  uint8_t *chosen = NEW (a, n, uint8_t, &err);
  memset (chosen, how, (size_t)n);
  drop_choice choice = { .chosen = chosen, .keeps = true };
  ck_assert (drops_entries (&(drop_list){ .trace = t, .uses = &u, .at = drops, .count = n },
                            &choice, a, &entries, &count, &err));
  for (int32_t i = 0; i < count; i++)
    runs += entries[i].ops.count;
  return runs;
}

CLAIM_IN_ARENA (what_is_dead_is_made_again_or_kept_as_the_drop_says) {
  trace *t = widening (a);
  drops_missed missed;
  ck_assert_int_ge (runs_again (t, false, DROP_STAYS, &missed, a), 2 * (LAYERS - 2));
  ck_assert (missed.revived);
  ck_assert_int_eq (runs_again (t, true, DROP_KEEPS, &missed, a), LAYERS - 1);
  ck_assert (!missed.revived);
}

static int64_t step_of (const trace *t, bool kept, recompute_mode mode, arena *a) {
  static const device card = { .name = "card",
                               .memory_bytes = 1024 * MIB,
                               .granule_bytes = MIB,
                               .host_bytes = (int64_t)1 << 40,
                               .link = { 1000000000, 1000000000, 2000000000, 10000 },
                               .share_ppm = 1000000 };
  error err = { 0 };
  tuning by = tuning_shipped;
  by.off[STRATEGY_SEARCH_kept] = !kept;
  solve_options o = { .device = &card,
                      .budget_bytes = 100 * MIB,
                      .host_bytes = card.host_bytes,
                      .limit_ticks = 400000,
                      .tuning = &by,
                      .keep_proof = true,
                      .recompute = mode };
  solution s;
  proved why;
  solve_request q = { .trace = t, .options = &o, .effort = { .limit_ticks = o.limit_ticks } };
  ck_assert_msg (ways_solve (&q, a, &s, &err), "%s", err.text);
  ck_assert_msg (check_plan (t, s.plan, a, NULL, &err), "%s", err.text);
  ck_assert_msg (prove_plan (t, s.plan, s.plan->predicted.step_ns, a, &why, &err), "%s", err.text);
  return s.plan->predicted.step_ns;
}

CLAIM (a_plan_keeps_small_tensors_to_make_large_ones_of_them) {
  static const recompute_mode modes[] = { RECOMPUTE_ONLY, RECOMPUTE_AUTO };
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    arena *a = arena_new (0);
    trace *t = widening (a);
    int64_t least_ns = trace_total_ns (t);
    ck_assert_int_le (step_of (t, true, modes[i], a), least_ns + LAYERS * SHORT_NS);
    ck_assert_int_gt (step_of (t, false, modes[i], a), least_ns + 10 * LONG_NS);
    arena_free (a);
  }
}

int main (void) {
  return suite_run ("kept", 60);
}
