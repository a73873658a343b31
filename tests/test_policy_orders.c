/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The search over orders: whatever order it tries, each op finds in its tensors what it found
   before, by a run that knows values and nothing of dependencies; on small steps every order is
   tried by force, and the search finds the best. */
#include <string.h>

#include "base/random.h"
#include "solver/policy/orders.h"
#include "tests/policy_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/rewrite/order.h"

enum { CASES = 200, SMALL = 40, FORCED = 80, MOST_ORDERS = 60, PERCENT = 50 };

/* ---- values ---- */

static uint64_t mix (uint64_t a, uint64_t b) {
  random_state r = random_seed (a * 0x9e3779b97f4a7c15u + b);
  return random_next (&r);
}

/* What each op of the original finds, and what is in each tensor in the end. `order` NULL: its own.
 */
static void run_values (const trace *t, const int32_t *order, uint64_t *found, uint64_t *value) {
  for (int32_t x = 0; x < t->n_tensors; x++)
    value[x] = mix (1, (uint64_t)x);
  for (int32_t n = 0; n < t->n_ops; n++) {
    int32_t k = order ? order[n] : n;
    const op *o = &t->ops[k];
    uint64_t seen = mix (2, (uint64_t)k);
    for (int32_t j = 0; j < o->reads.count; j++)
      seen = mix (seen, value[o->reads.at[j]]);
    for (int32_t j = 0; j < o->writes.count; j++)
      seen = mix (seen, value[o->writes.at[j]]); /* it may keep a part of what was there */
    found[k] = seen;
    for (int32_t j = 0; j < o->writes.count; j++)
      value[o->writes.at[j]] = mix (seen, (uint64_t)j);
  }
}

CLAIM (in_every_order_each_op_finds_the_same) {
  int moved = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    policy_case x;
    orders_graph g;
    error err = { 0 };
    random_state r = random_seed (seed);
    ck_assert_msg (policy_case_make (seed, &x, &err), "%s", err.text);
    const trace *t = x.trace;
    int32_t n = t->n_ops, m = t->n_tensors;
    int32_t *priority = NEW (x.arena, n, int32_t, &err), *order = NEW (x.arena, n, int32_t, &err);
    uint64_t *found[2], *value[2];
    for (int i = 0; i < 2; i++) {
      found[i] = NEW (x.arena, n, uint64_t, &err);
      value[i] = NEW (x.arena, m, uint64_t, &err);
    }
    ck_assert (orders_graph_of (t, x.arena, &g, &err));
    run_values (t, NULL, found[0], value[0]);
    for (int i = 0; i < 5; i++) {
      for (int32_t k = 0; k < n; k++)
        priority[k] = i ? (int32_t)random_between (&r, 0, n) : k;
      ck_assert (orders_decode (&g, priority, order, x.arena, &err));
      for (int32_t k = 0; k < n; k++) {
        ck_assert (i > 0 || order[k] == k);
        moved += order[k] != k;
      }
      run_values (t, order, found[1], value[1]);
      ck_assert (memcmp (found[0], found[1], (size_t)n * sizeof **found) == 0);
      ck_assert (memcmp (value[0], value[1], (size_t)m * sizeof **value) == 0);
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (moved, 10 * CASES);
}

/* ---- all orders of small steps ---- */

typedef struct force {
  policy_request request;
  orders_graph graph;
  int32_t *order, *left;
  bool *done;
  int64_t tried, best_ns; /* INT64_MAX: none fits */
} force;

static int64_t plan_ns (const policy_request *r, const trace *t) {
  error err = { 0 };
  policy_answer a;
  policy_request request = *r;
  arena *scratch = arena_new (0);
  request.trace = t;
  ck_assert_msg (policy_run (POLICY_swapadvisor, &request, scratch, &a, &err), "%s", err.text);
  int64_t ns = a.fits ? a.cost.step_ns : INT64_MAX;
  arena_free (scratch);
  return ns;
}

static void try_all (force *f, int32_t n) {
  const orders_graph *g = &f->graph;
  if (f->tried > MOST_ORDERS)
    return;
  if (n == g->n) {
    error err = { 0 };
    arena *a = arena_new (0);
    const trace *ordered;
    op_run *runs;
    int32_t n_runs, *order;
    ck_assert (order_runs (f->order, g->n, a, &runs, &n_runs, &err));
    ck_assert_msg (trace_reorder (f->request.trace, runs, n_runs, a, &ordered, &order, &err), "%s",
                   err.text);
    int64_t ns = plan_ns (&f->request, ordered);
    f->best_ns = ns < f->best_ns ? ns : f->best_ns;
    f->tried++;
    arena_free (a);
    return;
  }
  for (int32_t k = 0; k < g->n; k++) {
    if (f->done[k] || f->left[k] > 0)
      continue;
    f->done[k] = true;
    f->order[n] = k;
    for (int32_t i = g->offset[k]; i < g->offset[k + 1]; i++)
      f->left[g->after[i]]--;
    try_all (f, n + 1);
    for (int32_t i = g->offset[k]; i < g->offset[k + 1]; i++)
      f->left[g->after[i]]++;
    f->done[k] = false;
  }
}

static void set_up (force *f, policy_case *x, uint64_t seed) {
  error err = { 0 };
  ck_assert_msg (policy_case_make (seed, x, &err), "%s", err.text);
  *f = (force){ .request = { .trace = x->trace,
                             .device = &x->device,
                             .budget_bytes = policy_case_budget (x, PERCENT),
                             .host_bytes = x->device.host_bytes,
                             .only_fits = true },
                .best_ns = INT64_MAX };
  ck_assert (orders_graph_of (x->trace, x->arena, &f->graph, &err));
  int32_t n = x->trace->n_ops;
  f->order = NEW (x->arena, n, int32_t, &err);
  f->done = NEW (x->arena, n, bool, &err);
  f->left = NEW (x->arena, n, int32_t, &err);
  memcpy (f->left, f->graph.waits_for, (size_t)n * sizeof *f->left);
}

static void search (const force *f, policy_case *x, int64_t evaluations, policy_answer *out) {
  error err = { 0 };
  policy_values values = policy_standard ();
  policy_request r = f->request;
  values.at[POLICY_OPTION_swapadvisor_evaluations] = evaluations;
  values.at[POLICY_OPTION_swapadvisor_population] = 16;
  r.values = &values;
  ck_assert_msg (policy_run (POLICY_swapadvisor, &r, x->arena, out, &err), "%s", err.text);
}

CLAIM (the_best_order_of_a_small_step_is_found) {
  int cases = 0, found = 0, gained = 0;
  for (uint64_t seed = 1; seed < FORCED; seed += 2) {
    policy_case x;
    policy_answer a;
    force f;
    set_up (&f, &x, seed);
    try_all (&f, 0);
    if (f.tried > 1 && f.tried <= MOST_ORDERS && f.best_ns < INT64_MAX) {
      int64_t own = plan_ns (&f.request, x.trace);
      search (&f, &x, 160, &a);
      ck_assert (a.fits);
      ck_assert_int_ge (a.cost.step_ns, f.best_ns);
      cases++;
      found += a.cost.step_ns == f.best_ns;
      gained += a.cost.step_ns < own;
    }
    arena_free (x.arena);
  }
  ck_assert_int_gt (cases, 5);
  ck_assert_int_ge (found, cases * 9 / 10);
  ck_assert_int_gt (gained, 0);
}

CLAIM (an_order_is_never_worse_than_the_given_one_and_its_plan_is_legal) {
  int other = 0;
  for (uint64_t seed = 0; seed < SMALL; seed++) {
    policy_case x;
    policy_answer a, b;
    force f;
    error err = { 0 };
    set_up (&f, &x, seed);
    int64_t own = plan_ns (&f.request, x.trace);
    search (&f, &x, 20, &a);
    search (&f, &x, 20, &b);
    ck_assert_int_eq (a.fits, b.fits);
    ck_assert (own == INT64_MAX || a.fits);
    if (a.fits) {
      ck_assert_int_le (a.cost.step_ns, own);
      ck_assert_int_eq (a.cost.step_ns, b.cost.step_ns);
      ck_assert_msg (check_plan (x.trace, a.plan, x.arena, NULL, &err), "%s", err.text);
      ck_assert (!a.order || trace_validate (a.order, &err));
    }
    other += a.order != NULL;
    arena_free (x.arena);
  }
  ck_assert_int_gt (other, 3);
}

CLAIM (every_failed_allocation_is_told) {
  bool made = false;
  for (int64_t n = 1; !made; n += 1 + n / 8) {
    policy_case x;
    policy_answer a;
    force f;
    error err = { 0 };
    orders_options o = { 8, 4, 2, 50000, 1 };
    ck_assert_int_lt (n, 100000);
    set_up (&f, &x, 13);
    arena_fuse (x.arena, n);
    made = orders_search (&f.request, &o, x.arena, &a, &err);
    ck_assert (made || err.code == ERR_memory);
    arena_free (x.arena);
  }
}

int main (void) {
  return suite_run ("policy orders", 60);
}
