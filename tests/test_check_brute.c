/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Safe and live against brute force: what check passes never uses memory twice nor hangs, whatever
   the durations; what it refuses does so for some. FERRY_CASES: how many seeds. */
#include <stdio.h>

#include "base/random.h"
#include "tests/brute_run.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"

enum { CASES = 2000, DRAWS = 12, SHORT_NS = 1000 };

typedef struct draw {
  random_state r;
  int64_t idle_ppm, long_ppm;
  /* One event takes very long, all others are short. */
  bool one_slow;
  brute_queue queue;
  int32_t step, place;
} draw;

static int64_t draw_ns (void *context, brute_queue queue, int32_t step, int32_t place) {
  draw *d = context;
  if (d->one_slow)
    return d->queue == queue && d->step == step && d->place == place ? 1000000 : 1;
  if (random_chance (&d->r, d->idle_ppm))
    return 0;
  int64_t ns = random_between (&d->r, 1, SHORT_NS);
  return random_chance (&d->r, d->long_ppm) ? ns * SHORT_NS : ns;
}

/* Each event of the middle steps is the slow one, once. */
static brute_verdict with_one_slow (const random_case *c, brute *b) {
  const int32_t count[3] = { c->rewritten.trace->n_ops, c->plan->n_outs, c->plan->n_ins };
  draw d = { .one_slow = true };
  for (int q = 0; q < 3; q++)
    for (int32_t i = 0; i < count[q]; i++)
      for (d.step = 0; d.step < 3; d.step++) {
        d.queue = (brute_queue)q;
        d.place = i;
        brute_verdict v = brute_run (b, draw_ns, &d);
        if (v != BRUTE_FINE)
          return v;
      }
  return BRUTE_FINE;
}

static brute_verdict with_random (brute *b, uint64_t seed) {
  draw d = { .r = random_seed (seed) };
  for (int i = 0; i < DRAWS; i++) {
    d.idle_ppm = random_between (&d.r, 0, 3) * 200000;
    d.long_ppm = random_between (&d.r, 0, 3) * 100000;
    brute_verdict v = brute_run (b, draw_ns, &d);
    if (v != BRUTE_FINE)
      return v;
  }
  return BRUTE_FINE;
}

static void make (const case_options *o, arena *a, random_case *c) {
  error err = { 0 };
  char line[1024];
  if (!random_case_make (o, a, c, &err))
    ck_abort_msg ("seed %llu: %s", (unsigned long long)o->seed,
                  error_line (&err, line, sizeof line));
}

CLAIM (a_plan_without_shared_places_passes_and_is_fine_for_all_durations) {
  for (int64_t seed = 0; seed < suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    case_options o = { .seed = (uint64_t)seed, .features = CASE_EVERYTHING | CASE_ORDER };
    make (&o, a, &c);
    ck_assert_msg (check_plan (c.trace, c.plan, a, NULL, &err), "seed %lld: %s %s", (long long)seed,
                   err.where, err.text);
    brute *b = brute_new (&c, a, &err);
    ck_assert_ptr_nonnull (b);
    ck_assert_msg (with_random (b, (uint64_t)seed) == BRUTE_FINE, "seed %lld", (long long)seed);
    arena_free (a);
  }
}

CLAIM (a_plan_with_all_waits_of_its_execution_passes) {
  for (int64_t seed = 0; seed < suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    case_options o = { .seed = (uint64_t)seed,
                       .features = CASE_EVERYTHING | CASE_ORDER,
                       .places = CASE_SHARED };
    make (&o, a, &c);
    ck_assert_msg (check_plan (c.trace, c.plan, a, NULL, &err), "seed %lld: %s %s", (long long)seed,
                   err.where, err.text);
    arena_free (a);
  }
}

static void judge (uint64_t seed, case_places places, int64_t seen[CHECK_RULES + 1]) {
  arena *a = arena_new (0);
  error err = { 0 };
  random_case c;
  case_options o = { .seed = seed,
                     .features = CASE_EVERYTHING | CASE_ORDER,
                     .places = places,
                     .drop_ppm = seed % 2 ? 600000 : 200000,
                     .disturb_ppm = places == CASE_RECKLESS ? 300000 : 0 };
  make (&o, a, &c);
  check_rule rule;
  bool passes = check_plan (c.trace, c.plan, a, &rule, &err);
  ck_assert (passes || err.code == ERR_infeasible);
  seen[rule]++;
  error none = { 0 };
  brute *b = brute_new (&c, a, &none);
  ck_assert_ptr_nonnull (b);
  brute_verdict found = with_one_slow (&c, b);
  if (found == BRUTE_FINE && passes)
    found = with_random (b, seed);
  /* Owners in conflict at one op are refused before anybody asks whether the plan hangs. */
  bool agree = rule == RULE_live                             ? found == BRUTE_HANGS
               : rule == RULE_safe || rule == RULE_host_safe ? found == BRUTE_OVERLAPS
               : passes                                      ? found == BRUTE_FINE
                                                             : found != BRUTE_FINE;
  ck_assert_msg (agree, "seed %llu, places %d: check says %s (%s), brute force says %d",
                 (unsigned long long)seed, places, passes ? "good" : check_rule_name (rule),
                 err.text, found);
  arena_free (a);
}

static void report (const char *what, const int64_t seen[CHECK_RULES + 1]) {
  printf ("%s:", what);
  for (int i = 0; i <= CHECK_RULES; i++)
    if (seen[i])
      printf (" %s %lld", i == CHECK_RULES ? "good" : check_rule_name ((check_rule)i),
              (long long)seen[i]);
  printf ("\n");
}

CLAIM (lost_waits_are_refused_exactly_when_some_durations_use_memory_twice) {
  int64_t seen[CHECK_RULES + 1] = { 0 };
  for (int64_t seed = 0; seed < suite_cases (CASES); seed++)
    judge ((uint64_t)seed, CASE_SHARED, seen);
  report ("lost waits", seen);
  ck_assert_int_gt (seen[RULE_safe], suite_cases (CASES) / 50);
  ck_assert_int_gt (seen[CHECK_RULES], suite_cases (CASES) / 3);
}

CLAIM (a_reckless_plan_is_refused_exactly_when_some_durations_overlap_or_hang) {
  int64_t seen[CHECK_RULES + 1] = { 0 };
  for (int64_t seed = 0; seed < suite_cases (CASES); seed++)
    judge ((uint64_t)seed + 1000000, CASE_RECKLESS, seen);
  report ("reckless", seen);
  ck_assert_int_gt (seen[RULE_live], suite_cases (CASES) / 100);
  ck_assert_int_gt (seen[RULE_safe], suite_cases (CASES) / 50);
  ck_assert_int_gt (seen[RULE_host_safe], suite_cases (CASES) / 200);
  ck_assert_int_gt (seen[CHECK_RULES], suite_cases (CASES) / 3);
}

int main (void) {
  return suite_run ("check against brute force", 0);
}
