/* SPDX-License-Identifier: GPL-3.0-or-later */
/* More memory, a faster link, more of the host: none of them may raise the bound.  A search is no
   proof, so a plan may take longer with more: by more than the gap that solve was asked for in one
   pair of a hundred, by more than a 32nd in one of five hundred, by more than an eighth in none.
   FERRY_CASES: how many seeds. */
#include <stdio.h>

#include "solver/solve.h"
#include "tests/best_plan.h"
#include "tests/random_case.h"
#include "tests/suite.h"

enum {
  GAP_PPM = 5000,
  ROUNDING_NS = 1,
  LONGER_IN = 100,
  FAR_PART = 32,
  FAR_IN = 500,
  MOST_PART = 8
};

typedef struct setting {
  const trace *trace;
  device device;
  int64_t budget_bytes, host_bytes;
  int64_t floor_bytes, peak_bytes;
} setting;

typedef struct answer {
  bool feasible;
  int64_t bound_ns, step_ns;
} answer;

static answer ask (const setting *s, int64_t ticks) {
  arena *a = arena_new (0);
  error err = { 0 };
  solution found;
  answer out = { 0 };
  solve_options o = { .device = &s->device,
                      .budget_bytes = s->budget_bytes,
                      .host_bytes = s->host_bytes,
                      .gap_ppm = GAP_PPM,
                      .limit_ticks = ticks,
                      .seed = 1 };
  if (solve (s->trace, &o, a, &found, &err))
    out = (answer){ true, found.bound.lower_bound_ns, found.plan->predicted.step_ns };
  else
    ck_assert_msg (err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
  arena_free (a);
  return out;
}

static void faster (device_link *l) {
  l->d2h_bytes_per_s += l->d2h_bytes_per_s / 4;
  l->h2d_bytes_per_s += l->h2d_bytes_per_s / 4;
  l->both_bytes_per_s += l->both_bytes_per_s / 4;
}

typedef struct tally {
  int pairs, stalled, longer, far;
} tally;

/* `more` has more of something than `less`. */
static void never_worse (const char *what, int64_t seed, answer less, answer more, tally *n) {
  if (!less.feasible)
    return;
  ck_assert_msg (more.feasible, "%s, seed %lld: no plan where less had one", what, (long long)seed);
  ck_assert_msg (more.bound_ns <= less.bound_ns + ROUNDING_NS,
                 "%s, seed %lld: the bound was %lld ns, with more it is %lld", what,
                 (long long)seed, (long long)less.bound_ns, (long long)more.bound_ns);
  int64_t most_ns = less.step_ns + (int64_t)((__int128)less.step_ns * GAP_PPM / 1000000);
  n->longer += more.step_ns > most_ns;
  n->far += more.step_ns > less.step_ns + less.step_ns / FAR_PART;
  most_ns = less.step_ns + less.step_ns / MOST_PART;
  ck_assert_msg (more.step_ns <= most_ns, "%s, seed %lld: the plan took %lld ns, with more %lld",
                 what, (long long)seed, (long long)less.step_ns, (long long)more.step_ns);
  n->pairs++;
  n->stalled += less.step_ns > less.bound_ns;
}

/* Half way between the floor and the peak. */
static bool half_way (setting *s, arena *a) {
  error err = { 0 };
  units u;
  gaps g;
  int64_t granule = s->device.granule_bytes;
  ck_assert_msg (units_of (s->trace, NULL, 0, granule, 0, a, &u, &err) &&
                     gaps_of (&u, granule, (int64_t)1 << 50, a, &g, &err),
                 "%s", err.text);
  s->floor_bytes = g.floor_bytes;
  s->peak_bytes = g.peak_bytes;
  s->budget_bytes = g.floor_bytes + (g.peak_bytes - g.floor_bytes) / granule / 2 * granule;
  s->host_bytes = s->device.host_bytes;
  return g.peak_bytes > g.floor_bytes;
}

static void try_more (const setting *s, int64_t seed, int64_t ticks, tally *n) {
  setting less = *s, more = *s;
  answer half = ask (s, ticks);
  more.budget_bytes += s->device.granule_bytes;
  never_worse ("memory", seed, half, ask (&more, ticks), n);
  more = *s;
  faster (&more.device.link);
  never_worse ("link", seed, half, ask (&more, ticks), n);
  less.host_bytes = s->peak_bytes - s->budget_bytes + s->device.granule_bytes;
  more = less;
  more.host_bytes += 2 * s->device.granule_bytes;
  never_worse ("host", seed, ask (&less, ticks), ask (&more, ticks), n);
}

CLAIM (more_of_anything_is_never_worse_on_tiny_traces) {
  tally n = { 0 };
  for (int seed = 0; seed < suite_cases (100); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    tiny_case c;
    if (tiny_make ((uint64_t)seed, a, &c, &err)) {
      setting s = { .trace = c.trace, .device = c.device };
      if (half_way (&s, a))
        try_more (&s, seed, 20000, &n);
    }
    ck_assert_msg (err.code == ERR_none, "%s", err.text);
    arena_free (a);
  }
  printf ("tiny: %d pairs, %d of them above their bound, %d longer with more, %d far\n", n.pairs,
          n.stalled, n.longer, n.far);
  ck_assert_int_gt (n.pairs, suite_cases (100) / 4);
  ck_assert_int_le (n.longer, n.pairs / LONGER_IN + 1);
  ck_assert_int_le (n.far, n.pairs / FAR_IN);
  ck_assert_int_gt (n.stalled, suite_cases (100) / 20);
}

CLAIM (more_of_anything_is_never_worse_on_random_traces) {
  tally n = { 0 };
  for (int seed = 0; seed < suite_cases (40); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    case_options o = { .seed = (uint64_t)seed,
                       .features = CASE_WRAP | CASE_WORKSPACE | CASE_SHARED_RATE | CASE_COPY_NS |
                                   CASE_GAPS | CASE_LIVES | CASE_PINNED };
    ck_assert_msg (random_case_make (&o, a, &c, &err), "%s", err.text);
    setting s = { .trace = c.trace, .device = c.plan->device };
    s.device.memory_bytes = s.device.host_bytes = (int64_t)1 << 40;
    s.device.reserved_bytes = 0;
    if (half_way (&s, a))
      try_more (&s, seed, 100000, &n);
    arena_free (a);
  }
  printf ("random: %d pairs, %d of them above their bound, %d longer with more, %d far\n", n.pairs,
          n.stalled, n.longer, n.far);
  ck_assert_int_gt (n.pairs, suite_cases (40) / 4);
  ck_assert_int_le (n.longer, n.pairs / LONGER_IN + 1);
  ck_assert_int_le (n.far, n.pairs / FAR_IN);
  ck_assert_int_gt (n.stalled, suite_cases (40) / 20);
}

int main (void) {
  return suite_run ("solve with more", 600);
}
