/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every policy on random traces: what it returns is legal, keeps the budget or says that it does
   not, and is the same again. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/policy/policy.h"
#include "tests/policy_case.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

enum { MIB = 1 << 20, MS = 1000000, CASES = 140 };

/* ---- random traces ---- */

typedef struct attempt {
  policy_case c;
  error err;
} attempt;

static void set_up (attempt *x, uint64_t seed) {
  *x = (attempt){ 0 };
  ck_assert_msg (policy_case_make (seed, &x->c, &x->err), "%s", x->err.text);
}

/* So many percent of the way from the largest op's need to the peak. */
static int64_t budget_at (const attempt *x, int percent) {
  return policy_case_budget (&x->c, percent);
}

static void ask (attempt *x, policy_id id, int64_t budget_bytes, uint64_t seed,
                 policy_answer *out) {
  char line[sizeof (error)];
  policy_request r = { .trace = x->c.trace,
                       .device = &x->c.device,
                       .budget_bytes = budget_bytes,
                       .host_bytes = x->c.device.host_bytes };
  ck_assert_msg (policy_run (id, &r, x->c.arena, out, &x->err), "seed %d, %s: %s", (int)seed,
                 policy_at (id)->name, error_line (&x->err, line, sizeof line));
}

static void is_legal (attempt *x, policy_id id, int64_t budget_bytes, uint64_t seed,
                      const policy_answer *a) {
  char line[sizeof (error)];
  if (!a->fits) {
    ck_assert (a->plan == NULL && a->note != NULL);
    ck_assert_msg (a->reached_bytes > budget_bytes, "seed %d, %s", (int)seed, policy_at (id)->name);
    return;
  }
  predicted cost;
  ck_assert_msg (check_plan (x->c.trace, a->plan, x->c.arena, NULL, &x->err), "seed %d, %s: %s",
                 (int)seed, policy_at (id)->name, error_line (&x->err, line, sizeof line));
  ck_assert (simulate_plan (x->c.trace, a->plan, x->c.arena, &cost, &x->err));
  ck_assert_int_eq (cost.step_ns, a->cost.step_ns);
  ck_assert_int_le (cost.peak_bytes, budget_bytes);
  ck_assert_int_eq (a->plan->budget_bytes, budget_bytes);
}

CLAIM (an_answer_is_legal_or_says_that_it_does_not_fit) {
  static const int percent[] = { 100, 90, 60, 30 };
  int fits = 0, moved = 0, dropped = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    attempt x;
    set_up (&x, seed);
    for (int i = 0; i < POLICIES; i++)
      for (int n = 0; n < 4; n++) {
        policy_answer a;
        int64_t budget = budget_at (&x, percent[n]);
        ask (&x, (policy_id)i, budget, seed, &a);
        is_legal (&x, (policy_id)i, budget, seed, &a);
        fits += n > 0 && a.fits;
        moved += n > 0 && a.moves > 0;
        dropped += n > 0 && a.drops > 0;
      }
    arena_free (x.c.arena);
  }
  /* The cases have teeth. */
  ck_assert_int_gt (fits, CASES * POLICIES);
  ck_assert_int_gt (moved, CASES * POLICIES / 2);
  ck_assert_int_gt (dropped, CASES / 2);
}

CLAIM (nothing_moves_where_everything_fits) {
  for (uint64_t seed = 0; seed < CASES; seed++) {
    attempt x;
    set_up (&x, seed);
    for (int i = 0; i < POLICIES; i++) {
      policy_answer a;
      if (policy_at ((policy_id)i)->budget != POLICY_KEEPS)
        continue;
      ask (&x, (policy_id)i, x.c.peak_bytes, seed, &a);
      ck_assert_msg (a.fits && a.moves == 0 && a.drops == 0, "seed %d, %s", (int)seed,
                     policy_at ((policy_id)i)->name);
    }
    arena_free (x.c.arena);
  }
}

CLAIM (the_same_request_makes_the_same_bytes) {
  for (uint64_t seed = 0; seed < 30; seed++)
    for (int i = 0; i < POLICIES; i++) {
      bytes text[2] = { { 0 }, { 0 } };
      bool fits[2];
      for (int n = 0; n < 2; n++) {
        attempt x;
        policy_answer a;
        set_up (&x, seed);
        ask (&x, (policy_id)i, budget_at (&x, 70), seed, &a);
        fits[n] = a.fits;
        ck_assert (!a.fits || plan_text (a.plan, false, &text[n], &x.err));
        arena_free (x.c.arena);
      }
      ck_assert_int_eq (fits[0], fits[1]);
      if (fits[0])
        ck_assert_str_eq (text[0].data, text[1].data);
      bytes_free (&text[0]);
      bytes_free (&text[1]);
    }
}

CLAIM (a_policy_moves_nothing_below_its_own_floor) {
  int moves = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    attempt x;
    set_up (&x, seed);
    for (int n = 0; n < POLICY_OPTIONS; n++) {
      const policy_option_row *o = policy_option_at ((policy_option)n);
      if (strcmp (o->key, "floor") != 0)
        continue;
      policy_values values = policy_standard ();
      policy_view v;
      policy_choice c;
      policy_request r = { .trace = x.c.trace,
                           .device = &x.c.device,
                           .budget_bytes = budget_at (&x, 60),
                           .host_bytes = x.c.device.host_bytes,
                           .values = &values };
      values.at[n] = 700;
      ck_assert (policy_choose (o->policy, &r, x.c.arena, &v, &c, &x.err));
      for (int64_t i = 0; i < c.n_moves; i++)
        ck_assert_int_ge (x.c.trace->tensors[c.moves[i].tensor].bytes, 700);
      moves += (int)c.n_moves;
    }
    arena_free (x.c.arena);
  }
  ck_assert_int_gt (moves, 0);
}

CLAIM (every_failed_allocation_is_told) {
  for (int i = 0; i < POLICIES; i++) {
    bool made = false;
    for (int64_t n = 1; !made; n += 1 + n / 8) {
      attempt x;
      policy_answer a;
      ck_assert_int_lt (n, 100000);
      set_up (&x, 12);
      policy_request r = { .trace = x.c.trace,
                           .device = &x.c.device,
                           .budget_bytes = budget_at (&x, 70),
                           .host_bytes = x.c.device.host_bytes };
      arena_fuse (x.c.arena, n);
      made = policy_run ((policy_id)i, &r, x.c.arena, &a, &x.err);
      if (!made)
        ck_assert_msg (x.err.code == ERR_memory, "%s: %s", policy_at ((policy_id)i)->name,
                       x.err.text);
      arena_free (x.c.arena);
    }
  }
}

CLAIM (feedback_only_makes_capuchin_faster) {
  policy_values often = policy_standard ();
  int faster = 0;
  often.at[POLICY_OPTION_capuchin_feedback] = 20;
  for (uint64_t seed = 1; seed < CASES; seed += 2) {
    attempt x;
    policy_answer plain, fed;
    set_up (&x, seed);
    ask (&x, POLICY_capuchin, budget_at (&x, 70), seed, &plain);
    policy_request r = { .trace = x.c.trace,
                         .device = &x.c.device,
                         .budget_bytes = budget_at (&x, 70),
                         .host_bytes = x.c.device.host_bytes,
                         .values = &often };
    ck_assert_msg (policy_run (POLICY_capuchin, &r, x.c.arena, &fed, &x.err), "%s", x.err.text);
    ck_assert_int_eq (fed.fits, plain.fits);
    if (fed.fits) {
      is_legal (&x, POLICY_capuchin, r.budget_bytes, seed, &fed);
      ck_assert_int_le (fed.cost.step_ns, plain.cost.step_ns);
      faster += fed.cost.step_ns < plain.cost.step_ns;
    }
    arena_free (x.c.arena);
  }
  ck_assert_int_gt (faster, 0);
}

CLAIM (an_option_that_is_wrong_gets_one_line) {
  static const struct {
    const char *policy, *text, *says;
  } wrong[] = {
    { "g10", "line", "`line` is not key=value" },
    { "g10", "slope=1", "g10 has no option slope; see `ferry solve --policy list`" },
    { "autoswap", "score=best", "score of autoswap: `best` is none of: doa aoa wdoa swdoa vote" },
    { "tflms-v1", "lb=0", "lb of tflms-v1: 0 is not between 1 and 2147483647" },
    { "knapsack", "c=200%", "c of knapsack is 0 to 1000000" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    error err = { 0 };
    policy_values values = policy_standard ();
    ck_assert (!policy_set (policy_named (wrong[i].policy), wrong[i].text, &values, &err));
    ck_says (&err, wrong[i].says);
  }
}

int main (void) {
  return suite_run ("policies", 60);
}
