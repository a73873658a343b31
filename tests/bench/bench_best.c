/* SPDX-License-Identifier: GPL-3.0-or-later */
/* solve beside the best of all plans, on thousands of tiny traces, and how the misses look.
   bench_best [CASES [TICKS [plain|odd]]] prints columns and one line for each of the worst. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "solver/solve.h"
#include "tests/best_plan.h"

enum { CASES = 4000, TICKS = 20000, ODD_CASES = 1800, ODD_TICKS = 4000000, WORST = 5 };

typedef enum miss {
  MISS_none,
  MISS_refused, /* no plan, where there is one */
  MISS_cut,     /* the best plan has another number of sections of some tensor */
  MISS_moves,   /* or moves more or less, in another idle time */
  MISS_times,   /* or only other orders or times */
  MISSES
} miss;

static const char *const miss_names[MISSES] = { "none", "refused", "sections", "moves", "times" };

typedef struct tally {
  int cases, at_bound, best, half_percent, complete, misses[MISSES];
} tally;

typedef struct bad {
  int seed;
  double percent;
  miss why;
} bad;

static int32_t parts_of (const plan *p, int32_t unit) {
  for (int32_t m = 0; m < p->n_moves; m++)
    if (p->moves[m].unit == unit)
      return p->moves[m].of;
  return 1;
}

static int32_t moved (const plan *p, int32_t unit, int32_t after) {
  int32_t n = 0;
  for (int32_t m = 0; m < p->n_moves; m++)
    n += p->moves[m].unit == unit && p->moves[m].out_after == after;
  return n;
}

static miss compare (const trace *t, const plan *ours, const plan *best) {
  for (int32_t x = 0; x < t->n_tensors; x++)
    if (parts_of (ours, x) != parts_of (best, x))
      return MISS_cut;
  for (int32_t x = 0; x < t->n_tensors; x++)
    for (int32_t k = 0; k < t->n_ops; k++)
      if (moved (ours, x, k) != moved (best, x, k))
        return MISS_moves;
  return MISS_times;
}

static void remember (bad worst[WORST], bad now) {
  for (int i = 0; i < WORST; i++)
    if (now.percent > worst[i].percent) {
      bad old = worst[i];
      worst[i] = now;
      now = old;
    }
}

/* False: an error, or a bound above what is possible. */
static bool judge (int seed, const tiny_case *c, int64_t ticks, arena *a, tally *n,
                   bad worst[WORST], error *err) {
  solution s;
  best_plan best;
  error why = { 0 };
  solve_options o = { .device = &c->device,
                      .budget_bytes = c->budget_bytes,
                      .host_bytes = c->device.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = ticks,
                      .seed = 1 };
  bool ok = solve (c->trace, &o, a, &s, &why);
  if (!ok && why.code != ERR_infeasible && why.code != ERR_limit)
    return error_set (err, why.code, "seed %d: %s", seed, why.text);
  int64_t step_ns = ok ? s.plan->predicted.step_ns : INT64_MAX / 4;
  if (!best_search (c, step_ns, BEST_TRIED, a, &best, err))
    return false;
  if (ok && best.counted_ns < s.bound.lower_bound_ns)
    return error_set (err, ERR_internal, "seed %d: the bound is %lld ns, possible are %lld", seed,
                      (long long)s.bound.lower_bound_ns, (long long)best.counted_ns);
  miss found = !best.plan ? MISS_none : !ok ? MISS_refused : compare (c->trace, s.plan, best.plan);
  n->cases++;
  n->at_bound += ok && step_ns == s.bound.lower_bound_ns;
  n->best += found == MISS_none;
  n->half_percent += (double)step_ns <= 1.005 * (double)best.step_ns;
  n->complete += best.complete;
  n->misses[found]++;
  if (ok && found != MISS_none)
    remember (worst, (bad){ seed, 100 * (double)step_ns / (double)best.step_ns - 100, found });
  return true;
}

static void print_row (const char *name, const tally *n) {
  printf ("%-12s %6d %9d %6d %7.1f %% %9.1f %%", name, n->cases, n->at_bound, n->best,
          100.0 * n->best / (n->cases ? n->cases : 1),
          100.0 * n->half_percent / (n->cases ? n->cases : 1));
  for (int i = MISS_refused; i < MISSES; i++)
    printf (" %9d", n->misses[i]);
  printf (" %9d\n", n->complete);
}

typedef struct kind {
  const char *name;
  bool (*make) (uint64_t seed, arena *a, tiny_case *out, error *err);
  int cases;
  int64_t ticks;
} kind;

static const kind kinds[] = { { "plain", tiny_make, CASES, TICKS },
                              { "odd", tiny_make_odd, ODD_CASES, ODD_TICKS } };

static bool run_kind (const kind *k, int cases, int64_t ticks) {
  tally by[2] = { { 0 } };
  bad worst[WORST] = { { 0 } };
  for (int seed = 0; seed < cases; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    tiny_case c;
    bool made = a && k->make ((uint64_t)seed, a, &c, &err);
    if (made)
      judge (seed, &c, ticks, a, &by[c.device.link.copy_ns > 0], worst, &err);
    arena_free (a);
    if (err.code) {
      fprintf (stderr, "bench_best: %s\n", err.text);
      return false;
    }
  }
  printf ("%-12s %6s %9s %6s %9s %11s", k->name, "traces", "at bound", "best", "best", "in 0.5 %");
  for (int i = MISS_refused; i < MISSES; i++)
    printf (" %9s", miss_names[i]);
  printf (" %9s\n", "complete");
  print_row ("no latency", &by[0]);
  print_row ("latency", &by[1]);
  for (int i = 0; i < WORST && worst[i].percent > 0; i++)
    printf ("seed %d: %.1f %% above the best, by %s\n", worst[i].seed, worst[i].percent,
            miss_names[worst[i].why]);
  return true;
}

int main (int argc, char **argv) {
  int cases = argc > 1 ? (int)strtol (argv[1], NULL, 10) : 0;
  int64_t ticks = argc > 2 ? strtoll (argv[2], NULL, 10) : 0;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const kind *k = &kinds[i];
    if (argc > 3 && strcmp (argv[3], k->name) != 0)
      continue;
    if (!run_kind (k, cases ? cases : k->cases, ticks ? ticks : k->ticks))
      return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
