/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cuts and drops that are wider than they need be, and what narrowing leaves of them. */
#include <string.h>

#include "solver/attempt/narrow.h"
#include "tests/suite.h"
#include "trace/build.h"

enum { LAYERS = 12, LARGE = 5, ITEMS = 8 };
#define MIB ((int64_t)1 << 20)
#define ENOUGH ((int64_t)1 << 40)

static const device card = { .name = "card",
                             .memory_bytes = (int64_t)8 << 30,
                             .granule_bytes = MIB,
                             .link = { 1000000000, 1000000000, 2000000000, 10000 },
                             .host_bytes = (int64_t)8 << 30,
                             .share_ppm = 1000000,
                             .section_ns = 20000 };

/* Layers whose ops may all be cut; that behind LARGE needs 24 MiB of workspace as well. */
static trace *line (arena *a) {
  error err = { 0 };
  trace_builder *b = build_new (a, "line", ITEMS, &err);
  for (int i = 0; i <= LAYERS; i++) {
    int32_t x = build_tensor (b, "x", 4 * MIB, i ? TENSOR_ACTIVATION : TENSOR_INPUT);
    build_tensor_at (b, x)->split = true;
  }
  for (int i = 0; i < LAYERS; i++) {
    int32_t k = build_op (b, "layer", OP_FORWARD, 100000);
    build_op_at (b, k)->parts = ITEMS;
    build_op_at (b, k)->workspace_bytes = i == LARGE ? 24 * MIB : 0;
    build_read (b, i);
    build_write (b, i + 1);
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t, "%s", err.text);
  return t;
}

/* Half of the layers' outputs are wanted on the way back. */
static trace *there_and_back (arena *a) {
  error err = { 0 };
  trace_builder *b = build_new (a, "there and back", 1, &err);
  for (int i = 0; i <= LAYERS; i++)
    build_tensor (b, "x", 4 * MIB, i ? TENSOR_ACTIVATION : TENSOR_INPUT);
  build_tensor (b, "gradient", 4 * MIB, TENSOR_GRADIENT);
  for (int i = 0; i < LAYERS; i++) {
    build_op (b, "layer", OP_FORWARD, 100000);
    build_read (b, i);
    build_write (b, i + 1);
  }
  for (int i = LAYERS; i > 0; i--) {
    build_op (b, "back", OP_BACKWARD, 100000);
    build_read (b, i);
    if (i < LAYERS)
      build_read (b, LAYERS + 1);
    build_write (b, LAYERS + 1);
  }
  trace *t = build_finish (b, &err);
  ck_assert_msg (t, "%s", err.text);
  return t;
}

static narrowed begin (const trace *t, const solve_options *o, const variant *v, arena *a) {
  error err = { 0 };
  narrowed n = { .v = *v };
  ck_assert_msg (variant_try (t, v, o, 0, a, &n.value, &err), "%s", err.text);
  ck_assert (n.value.legal && n.value.step_ns < INT64_MAX);
  return n;
}

/* The value that was kept is that of the variant that was kept. */
static void check_value (const trace *t, const solve_options *o, const narrowed *n, arena *a) {
  error err = { 0 };
  variant_value again;
  ck_assert (variant_try (t, &n->v, o, 0, a, &again, &err));
  ck_assert_int_eq (again.step_ns, n->value.step_ns);
  ck_assert_int_eq (again.compute_ns, n->value.compute_ns);
}

CLAIM (only_the_op_that_is_too_large_stays_cut) {
  static const section_order orders[] = { SECTION_LEVEL, SECTION_DEPTH };
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    trace *t = line (a);
    section all = { 0, LAYERS, 4, orders[i] };
    variant v = { .name = "all", .sections = &all, .n_sections = 1 };
    solve_options o = { .device = &card, .budget_bytes = 24 * MIB, .host_bytes = card.host_bytes };
    narrowed n = begin (t, &o, &v, a);
    ck_assert (narrow_cut (t, &o, variant_try, ENOUGH, a, a, &n, &err));
    ck_assert_int_eq (n.v.n_sections, 1);
    ck_assert_int_eq (n.v.sections[0].first, LARGE);
    ck_assert_int_eq (n.v.sections[0].end, LARGE + 1);
    ck_assert_int_eq (n.v.sections[0].parts, 4);
    ck_assert_int_eq (n.v.sections[0].order, SECTION_LEVEL);
    ck_assert_int_eq (n.value.compute_ns, trace_total_ns (t) + 3 * card.section_ns);
    check_value (t, &o, &n, a);
    ck_assert_int_eq (all.end, LAYERS); /* the list that was given is as it was */
    arena_free (a);
  }
}

CLAIM_IN_ARENA (a_stretch_is_taken_out_of_the_middle_of_a_section) {
  trace *t = line (a);
  t->ops[0].workspace_bytes = t->ops[LAYERS - 1].workspace_bytes = 24 * MIB;
  t->ops[LARGE].workspace_bytes = 0;
  section all = { 0, LAYERS, 4, SECTION_DEPTH };
  variant v = { .name = "all", .sections = &all, .n_sections = 1 };
  solve_options o = { .device = &card, .budget_bytes = 24 * MIB, .host_bytes = card.host_bytes };
  narrowed n = begin (t, &o, &v, a);
  ck_assert (narrow_cut (t, &o, variant_try, ENOUGH, a, a, &n, &err));
  ck_assert_int_eq (n.v.n_sections, 2);
  ck_assert_int_eq (n.v.sections[0].first, 0);
  ck_assert_int_eq (n.v.sections[0].end, 1);
  ck_assert_int_eq (n.v.sections[1].first, LAYERS - 1);
  ck_assert_int_eq (n.v.sections[1].end, LAYERS);
  check_value (t, &o, &n, a);
}

CLAIM_IN_ARENA (entries_that_memory_does_not_ask_for_go) {
  trace *t = there_and_back (a);
  recompute each[LAYERS / 2];
  int32_t ops[LAYERS / 2], made[LAYERS / 2];
  /* every second output is made again from the one before it, directly before it is wanted */
  int32_t count = 0;
  for (int32_t x = LAYERS - 2; x >= 2; x -= 2) {
    ops[count] = x - 1;
    made[count] = x;
    each[count] = (recompute){ .before = 2 * LAYERS - x,
                               .ops = { &ops[count], 1 },
                               .replaces = { &made[count], 1 } };
    count++;
  }
  variant v = { .name = "all", .recomputes = each, .n_recomputes = count };
  /* with 52 MiB all is there, so 44 lack two */
  solve_options o = { .device = &card,
                      .budget_bytes = 44 * MIB,
                      .host_bytes = card.host_bytes,
                      .recompute = RECOMPUTE_ONLY };
  narrowed n = begin (t, &o, &v, a);
  int64_t step_ns = n.value.step_ns;
  ck_assert (narrow_drops (t, &o, ENOUGH, a, a, &n, &err));
  ck_assert_int_eq (n.v.n_recomputes, 2);
  ck_assert_int_eq (n.value.step_ns, step_ns - (count - 2) * 100000);
  for (int32_t i = 1; i < n.v.n_recomputes; i++)
    ck_assert_int_gt (n.v.recomputes[i].before, n.v.recomputes[i - 1].before);
  check_value (t, &o, &n, a);
}

CLAIM_IN_ARENA (ticks_end_it_with_what_is_found_by_then) {
  trace *t = line (a);
  section all = { 0, LAYERS, 4, SECTION_DEPTH };
  variant v = { .name = "all", .sections = &all, .n_sections = 1 };
  solve_options o = { .device = &card, .budget_bytes = 24 * MIB, .host_bytes = card.host_bytes };
  narrowed n = begin (t, &o, &v, a);
  ck_assert (narrow_cut (t, &o, variant_try, 0, a, a, &n, &err));
  ck_assert_int_eq (n.tried, 0);
  ck_assert (narrow_cut (t, &o, variant_try, 1, a, a, &n, &err));
  ck_assert_int_eq (n.tried, 1);
  check_value (t, &o, &n, a);
}

int main (void) {
  return suite_run ("narrow", 60);
}
