/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Orders of ops: legal ones are taken and keep every value, all others are refused, by the rewriter
   and by check alike; early updates are legal and as early as they can be. */
#include <string.h>

#include "base/random.h"
#include "solver/order/updates.h"
#include "solver/solve.h"
#include "tests/random_case.h"
#include "tests/ref_order.h"
#include "tests/same_trace.h"
#include "tests/zoo_case.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"

static void shuffle (random_state *r, int32_t *order, int32_t n, int64_t swaps) {
  for (int32_t i = 0; i < n; i++)
    order[i] = i;
  for (; swaps > 0 && n > 1; swaps--) {
    int32_t i = (int32_t)random_between (r, 0, n - 2), x = order[i];
    order[i] = order[i + 1];
    order[i + 1] = x;
  }
}

/* What each tensor holds at the end of two steps, if an op's outputs depend on all that it reads:
   equal sums, equal bits. */
static void run_twice (const trace *t, const int32_t *name_of, uint64_t *value) {
  for (int32_t x = 0; x < t->n_tensors; x++)
    value[x] = t->tensors[x].persistent ? (uint64_t)x + 1 : 0;
  for (int32_t i = 0; i < 2 * t->n_ops; i++) {
    int32_t k = i % t->n_ops;
    const op *o = &t->ops[k];
    uint64_t h = (uint64_t)(name_of ? name_of[k] : k) * 0x9e3779b97f4a7c15u + 7;
    for (int32_t x = 0; x < t->n_tensors; x++)
      if (t->tensors[x].born_before == k)
        value[x] = (uint64_t)x * 31 + 5;
    for (int32_t j = 0; j < o->reads.count; j++)
      h = (h ^ value[o->reads.at[j]]) * 0x2545f4914f6cdd1du;
    for (int32_t j = 0; j < o->writes.count; j++)
      value[o->writes.at[j]] = (h ^ (uint64_t)j) * 0x2545f4914f6cdd1du;
  }
}

static void same_values (const trace *t, const trace *other, const int32_t *order, arena *a) {
  error err = { 0 };
  uint64_t *x = NEW (a, t->n_tensors, uint64_t, &err), *y = NEW (a, t->n_tensors, uint64_t, &err);
  run_twice (t, NULL, x);
  run_twice (other, order, y);
  for (int32_t i = 0; i < t->n_tensors; i++)
    ck_assert_msg (x[i] == y[i], "tensor %d", i);
}

typedef struct tally {
  int legal, refused;
} tally;

static void try_order (uint64_t seed, arena *a, tally *n) {
  error refused = { 0 }, ref_refused = { 0 };
  random_state r = random_seed (seed);
  random_case c;
  rewritten x, y;
  case_options o = { .seed = seed, .features = CASE_LIVES | CASE_WRAP | CASE_GAPS | CASE_ZERO_NS };
  ck_assert (random_case_make (&o, a, &c, &err));
  plan p = { .device = c.plan->device };
  int32_t *order = NEW (a, c.trace->n_ops, int32_t, &err);
  shuffle (&r, order, c.trace->n_ops, random_between (&r, 1, 4));
  ck_assert (order_runs (order, c.trace->n_ops, a, &p.order, &p.n_order, &err));
  bool legal = ref_order_keeps (c.trace, order);
  bool ok = plan_rewrite (c.trace, &p, a, &x, &refused);
  ck_assert_msg (ok == legal, "seed %llu: %s", (unsigned long long)seed, refused.text);
  ck_assert (ref_plan_rewrite (c.trace, &p, a, &y, &ref_refused) == legal);
  check_rule rule;
  plan whole = *c.plan;
  whole.order = p.order;
  whole.n_order = p.n_order;
  bool checked = check_plan (c.trace, &whole, a, &rule, &err);
  bool by_order = !checked && rule >= RULE_order_each && rule <= RULE_order_write;
  ck_assert_msg (by_order == !legal, "seed %llu: %s", (unsigned long long)seed, err.text);
  n->legal += legal && p.n_order;
  n->refused += !legal;
  if (!legal)
    return;
  char difference[DIFFERENCE];
  ck_assert_msg (same_rewritten (&x, &y, difference), "seed %llu: %s", (unsigned long long)seed,
                 difference);
  ck_assert_msg (trace_validate (x.trace, &err), "%s", err.text);
  same_values (c.trace, x.trace, order, a);
}

CLAIM (legal_orders_keep_every_value_and_all_others_are_refused) {
  int wanted = suite_cases (4000);
  tally n = { 0 };
  for (int i = 0; i < wanted; i++) {
    arena *a = arena_new (16 << 20);
    try_order ((uint64_t)i, a, &n);
    arena_free (a);
  }
  printf ("%d other orders were legal, %d were refused\n", n.legal, n.refused);
  ck_assert_int_gt (n.legal, wanted / 20);
  ck_assert_int_gt (n.refused, wanted / 20);
}

CLAIM (runs_that_are_not_all_ops_once_are_refused) {
  static const struct {
    op_run runs[3];
    int32_t n;
    const char *says;
  } rows[] = {
    { { { 0, 2 }, { 1, 1 } }, 2, "twice" },
    { { { 0, 2 } }, 1, "2 of 3 ops" },
    { { { 2, 2 }, { 0, 1 } }, 2, "passes the trace's end" },
    { { { 0, 0 }, { 0, 3 } }, 2, "passes the trace's end" },
    { { { -1, 2 }, { 0, 3 } }, 2, "passes the trace's end" },
    { { { 1, INT32_MAX }, { 0, 3 } }, 2, "passes the trace's end" },
  };
  op ops[3] = { { .ns = 1, .parts = 1 }, { .ns = 2, .parts = 1 }, { .ns = 3, .parts = 1 } };
  trace t = { .name = "three", .batch = 1, .n_ops = 3, .ops = ops };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    error err = { 0 };
    arena *a = arena_new (0);
    const trace *out;
    int32_t *order;
    ck_assert (!trace_reorder (&t, rows[i].runs, rows[i].n, a, &out, &order, &err));
    ck_assert_msg (strstr (err.text, rows[i].says), "row %zu: %s", i, err.text);
    arena_free (a);
  }
}

CLAIM (an_order_survives_its_file) {
  arena *a = arena_new (0);
  error err = { 0 };
  random_case c;
  int met = 0;
  for (uint64_t seed = 0; met < 20; seed++) {
    bytes text;
    case_options o = { .seed = seed, .features = CASE_ORDER };
    ck_assert (random_case_make (&o, a, &c, &err));
    ck_assert (plan_text (c.plan, seed % 2, &text, &err));
    plan *again = plan_parse (text.data, text.size, NULL, a, &err);
    ck_assert_msg (again, "%s", err.text);
    ck_assert_int_eq (again->n_order, c.plan->n_order);
    for (int32_t i = 0; i < again->n_order; i++)
      ck_assert (again->order[i].first == c.plan->order[i].first &&
                 again->order[i].count == c.plan->order[i].count);
    met += again->n_order > 0;
    bytes_free (&text);
  }
  arena_free (a);
}

/* ---- early updates ---- */

static bool conflict (const trace *t, int32_t k, int32_t l) {
  for (int32_t i = 0; i < t->ops[k].writes.count; i++)
    if (op_touches (&t->ops[l], t->ops[k].writes.at[i]))
      return true;
  for (int32_t i = 0; i < t->ops[l].writes.count; i++)
    if (list_has (&t->ops[k].reads, t->ops[l].writes.at[i]))
      return true;
  return false;
}

/* Between an update and the nearest op before it that is no update, some op must run first. */
static void is_early (const trace *t, const int32_t *order) {
  for (int32_t i = 1; i < t->n_ops; i++) {
    bool held = false;
    if (t->ops[order[i]].phase != OP_UPDATE)
      continue;
    for (int32_t j = i - 1; j >= 0 && !held; j--) {
      held = conflict (t, order[j], order[i]);
      if (t->ops[order[j]].phase != OP_UPDATE)
        break;
    }
    ck_assert_msg (held || t->ops[order[i - 1]].phase == OP_UPDATE, "op %d could be earlier",
                   order[i]);
  }
}

CLAIM_EACH (updates_move_to_where_their_gradients_are_final, 0, 4) {
  static const char *const nets[] = { "vgg16", "resnet50", "gpt2", "charrnn" };
  const trace *early, *t = made (&(zoo_request){
                          .name = nets[_i], .batch = 4, .optimizer = ZOO_ADAM, .device = &card });
  op_run *runs;
  int32_t n_runs, *order;
  ck_assert (order_updates (t, room, &runs, &n_runs, &err));
  ck_assert_int_gt (n_runs, 2);
  ck_assert_msg (trace_reorder (t, runs, n_runs, room, &early, &order, &err), "%s", told ());
  ck_assert (ref_order_keeps (t, order));
  is_early (t, order);
}

CLAIM (a_look_that_stays_the_best_has_the_bound_of_all_cuts) {
  const trace *t = made (
      &(zoo_request){ .name = "vgg16", .batch = 64, .optimizer = ZOO_MOMENTUM, .device = &card });
  char digest[TRACE_DIGEST];
  ck_assert (trace_digest (t, digest, &err));
  solve_options o = { .device = &card,
                      .budget_bytes = (int64_t)2500 << 20,
                      .host_bytes = (int64_t)64 << 30,
                      .trace_digest = digest,
                      .sections = SECTIONS_AUTO,
                      .order = ORDER_UPDATES };
  effort e = { .limit_ticks = 200000 };
  solution s;
  tuning looks_alone = tuning_shipped;
  ck_assert (tuning_read (&looks_alone, "promising=0,given=0,best_look=0", &err));
  o.tuning = &looks_alone;
  ck_assert_msg (solve_with (t, &o, &e, room, &s, &err), "%s", told ());
  ck_assert_int_eq (s.plan->certificate.cover.sections, COVER_SECTIONS_ANY);
  ck_assert_int_eq (s.bound.lower_bound_ns, s.plan->certificate.lower_bound_ns);
  ck_assert_int_le (s.bound.lower_bound_ns, s.plan->predicted.step_ns);
}

int main (void) {
  return suite_run_with ("order", zoo_set_up, zoo_tear_down, 60);
}
