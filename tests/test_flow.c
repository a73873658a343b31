/* The flow program is a relaxation of the machine model: with its gaps fixed to what a plan does,
   it says no more than the simulator.  Each of its rows is made wrong once, to see that this test
   would notice. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "solver/variant.h"
#include "tests/fixed.h"
#include "tests/fixed_drops.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "tests/synthetic.h"

static int cases (int usual) {
  const char *text = getenv ("FERRY_CASES");
  return text ? (int)strtol (text, NULL, 10) : usual;
}

typedef struct trial {
  planned_case p;
  gaps g;
  slots s;
  flow f;
  double real_ns;
} trial;

/* A random cut for some, every op its own slot for the others. */
static bool cut (trial *t, random_state *r, arena *a, error *err) {
  int32_t n = t->g.n_ops, count = 0, *first = NEW (a, n, int32_t, err);
  if (!first)
    return false;
  if (!random_chance (r, 400000))
    return slots_each (&t->g, a, &t->s, err);
  for (int32_t k = 0; k < n; k++)
    if (k == 0 || random_chance (r, 500000))
      first[count++] = k;
  return slots_from (first, count, n, a, &t->s, err);
}

/* False: this seed makes no trial. */
static bool trial_make (uint64_t seed, arena *a, trial *t) {
  error err = { 0 };
  random_state r = random_seed (seed * 77 + 1);
  if (!planned_make (seed, CASE_EVERYTHING, a, &t->p, &err)) {
    ck_assert_msg (err.code == ERR_none, "seed %llu: %s", (unsigned long long)seed, err.text);
    return false;
  }
  const plan *p = t->p.c.plan;
  flow_options o = { .dev = &p->device,
                     .host_bytes = seed % 3 ? p->host_bytes : t->p.seen.host_peak_bytes,
                     .classes = (int)random_between (&r, 1, 3),
                     .latency = true };
  ck_assert_msg (planned_gaps (&t->p, a, &t->g, &err) && cut (t, &r, a, &err) &&
                     flow_build (&t->g, &t->s, &o, a, &t->f, &err),
                 "seed %llu: %s", (unsigned long long)seed, err.text);
  t->real_ns = (double)(t->p.seen.step_ns - t->p.seen.compute_ns);
  return true;
}

/* Whether the program says more than the simulator, or that the plan is impossible. */
static bool contradicts (trial *t, arena *a, double *stall_ns) {
  error err = { 0 };
  ck_assert_msg (fixed_solve (&t->f, t->p.c.plan, a, stall_ns, &err), "%s", err.text);
  return *stall_ns < 0 || *stall_ns > t->real_ns + 1e-6 * (double)(1 + t->p.seen.step_ns);
}

START_TEST (fixed_to_a_plan_the_program_never_says_more_than_the_simulator) {
  int tried = 0, binding = 0, equal = 0, clean = 0, wraps = 0, shared = 0, runs = 0, host = 0;
  int differ = 0, idle = 0, classes = 0;
  for (int seed = 0; seed < cases (1000); seed++) {
    arena *a = arena_new (0);
    trial t;
    double stall_ns;
    if (trial_make ((uint64_t)seed, a, &t)) {
      ck_assert_msg (!contradicts (&t, a, &stall_ns), "seed %d: program %.3f ns, simulated %.0f",
                     seed, stall_ns, t.real_ns);
      tried++;
      for (int32_t i = 0; i < t.f.n_gaps; i++)
        wraps += t.f.gaps[i].wraps;
      for (int32_t i = 0; i < t.p.c.plan->n_moves; i++)
        clean += t.p.c.plan->moves[i].clean;
      shared += t.f.link.shared;
      runs += t.s.count < t.g.n_ops;
      host += t.f.host_limited;
      differ += t.f.link.rates.out_alone != t.f.link.rates.in_alone;
      classes += t.f.n_classes > 1;
      for (int32_t j = 0; j < t.s.count; j++)
        idle += t.f.idle_out[j] > 0;
      /* one move that does not dawdle, and no rounding of sizes or latency in between */
      if (seed % 4 == 3 && stall_ns > 0.5 && !t.f.link.shared) {
        binding++;
        equal += stall_ns >= t.real_ns - 2 - 1e-3 * t.real_ns;
      }
    }
    arena_free (a);
  }
  ck_assert_msg (tried * 20 >= cases (1000) * 19, "only %d cases", tried);
  ck_assert (clean && wraps && shared && runs && host && differ && idle && classes);
  /* teeth: a program that says little is a relaxation too */
  ck_assert_msg (equal * 25 >= binding && equal > 0, "%d of %d reach the simulator", equal,
                 binding);
}
END_TEST

/* ---- rows made wrong ---- */

static bool row_is (const flow *f, int32_t r, int kind) {
  return f->row_kind[r] == kind;
}

/* Coefficients of these columns in these rows x num / den. */
static void scale (flow *f, int row, int column, int num, int den) {
  for (int32_t c = 0; c < f->n_columns; c++)
    for (int64_t e = f->column_start[c]; e < f->column_start[c + 1]; e++)
      if (row_is (f, f->entry_row[e], row) && f->column_kind[c] == column)
        f->entry_coef[e] = f->entry_coef[e] * num / den;
}

static void limit (flow *f, int row, int num, int den) {
  for (int32_t r = 0; r < f->n_rows; r++)
    if (row_is (f, r, row))
      f->row_limit[r] = f->row_limit[r] * num / den;
}

static void slow_out (trial *t) {
  scale (&t->f, ROW_stall_out, COLUMN_stall_out, 3, 2);
}
static void slow_in (trial *t) {
  scale (&t->f, ROW_stall_in, COLUMN_stall_in, 3, 2);
}
static void no_idle (trial *t) {
  limit (&t->f, ROW_stall_out, 0, 1);
  limit (&t->f, ROW_stall_in, 0, 1);
}
static void no_work (trial *t) {
  for (int32_t c = 0; c < t->f.n_columns; c++)
    if (t->f.column_kind[c] == COLUMN_work_out || t->f.column_kind[c] == COLUMN_work_in)
      t->f.high[c] = 0;
}
static void no_wrap (trial *t) {
  scale (&t->f, ROW_cycle, COLUMN_gap_out, 0, 1);
  scale (&t->f, ROW_cycle, COLUMN_gap_clean, 0, 1);
}
static void more_need (trial *t) {
  for (int32_t c = 0; c < t->f.n_columns; c++)
    if (t->f.column_kind[c] == COLUMN_host && t->f.low[c] > 0)
      t->f.low[c] = t->f.high[c] < t->f.low[c] * 2 ? t->f.high[c] : t->f.low[c] * 2;
}
static void less_host (trial *t) {
  limit (&t->f, ROW_host_limit, 1, 2);
}
/* What leaves clean is said to cross the link. */
static void clean_costs (trial *t) {
  for (int32_t i = 0; i < t->f.n_chains; i++)
    for (int32_t k = 0; k < t->f.chains[i].count; k++) {
      const flow_chain *c = &t->f.chains[i];
      int32_t slot = t->f.gaps[c->first + k].release;
      int32_t from = flow_row (&t->f, ROW_host_first, slot, c->class);
      int32_t to = flow_row (&t->f, ROW_pending, slot, c->class);
      for (int32_t col = c->column; col < t->f.n_columns; col++)
        for (int64_t e = t->f.column_start[col]; e < t->f.column_start[col + 1]; e++)
          if (t->f.column_kind[col] == COLUMN_gap_clean && t->f.column_at[col] == c->link + k &&
              t->f.entry_row[e] == from && to >= 0)
            t->f.entry_row[e] = to;
    }
}
/* A copy holds for no later gap. */
static void clean_is_lost (trial *t) {
  scale (&t->f, ROW_clean, COLUMN_gap_out, 0, 1);
  scale (&t->f, ROW_clean, COLUMN_gap_valid, 0, 1);
}
static void both_at_half (trial *t) {
  if (t->f.link.shared) {
    scale (&t->f, ROW_stall_out, COLUMN_stall_in, 3, 1);
    scale (&t->f, ROW_stall_in, COLUMN_stall_out, 3, 1);
  }
}
static void due_a_slot_early (trial *t) {
  for (int32_t r = 0; r < t->f.n_rows; r++)
    if (row_is (&t->f, r, ROW_early_first) || row_is (&t->f, r, ROW_early)) {
      /* nothing may be early: it is on time to the slot, which plans are not bound to */
      for (int32_t c = 0; c < t->f.n_columns; c++)
        if (t->f.column_kind[c] == COLUMN_early)
          t->f.high[c] = 0;
      return;
    }
}
static void latency_twice (trial *t) {
  if (t->f.n_classes > 1 || !t->p.c.plan->device.link.copy_ns)
    return;
  scale (&t->f, ROW_stall_out, COLUMN_stall_out, (int)(t->f.class[0].out >> 12) * 2 - 4096,
         (int)(t->f.class[0].out >> 12) > 0 ? (int)(t->f.class[0].out >> 12) : 1);
}
/* A run with the need of its worst op. */
static void need_in_runs (trial *t) {
  for (int32_t c = 0; c < t->f.n_columns; c++) {
    if (t->f.column_kind[c] != COLUMN_host)
      continue;
    int32_t j = t->f.column_at[c] / t->f.n_classes;
    if (!slots_is_run (&t->s, j))
      continue;
    for (int32_t k = t->s.first[j]; k < t->s.first[j + 1]; k++) {
      int64_t need = t->g.base_bytes[k] - t->g.unused_bytes - t->g.room_bytes;
      int64_t grains = need > 0 ? flow_grains_down (&t->f.link, need) : 0;
      if (grains > t->f.low[c])
        t->f.low[c] = grains < t->f.high[c] ? grains : t->f.high[c];
    }
  }
}

typedef struct fault {
  const char *name;
  void (*make) (trial *t);
  int seen;
} fault;

START_TEST (a_row_made_wrong_is_noticed) {
  fault faults[] = { { "out engine slower", slow_out, 0 },
                     { "in engine slower", slow_in, 0 },
                     { "idle time forgotten", no_idle, 0 },
                     { "no copies while compute works", no_work, 0 },
                     { "nothing wraps", no_wrap, 0 },
                     { "twice the need", more_need, 0 },
                     { "half the host", less_host, 0 },
                     { "clean moves cross the link", clean_costs, 0 },
                     { "copies are lost", clean_is_lost, 0 },
                     { "engines that share get less", both_at_half, 0 },
                     { "nothing is early", due_a_slot_early, 0 },
                     { "latency counted twice", latency_twice, 0 },
                     { "memory rows in runs", need_in_runs, 0 } };
  int n = sizeof faults / sizeof *faults;
  for (int seed = 0; seed < cases (1000); seed++)
    for (int i = 0; i < n; i++) {
      if (faults[i].seen >= 2)
        continue;
      arena *a = arena_new (0);
      trial t;
      double stall_ns;
      if (trial_make ((uint64_t)seed, a, &t)) {
        faults[i].make (&t);
        faults[i].seen += contradicts (&t, a, &stall_ns);
      }
      arena_free (a);
    }
  for (int i = 0; i < n; i++)
    ck_assert_msg (faults[i].seen > 0, "%s: not noticed", faults[i].name);
}
END_TEST

/* ---- drops ---- */

typedef struct drop_trial {
  planned_case p;
  fixed_drops d;
  slots s;
  flow f;
  double real_ns;
} drop_trial;

static bool drop_trial_of (uint64_t seed, bool fresh, bool peak, arena *a, drop_trial *t) {
  error err = { 0 };
  random_state r = random_seed (seed * 91 + 7);
  unsigned features = CASE_EVERYTHING & ~(unsigned)CASE_GROUPS;
  if (seed % 5 < 2) /* where nothing else is in the way, a program that is good equals the step */
    features = CASE_RECOMPUTE | CASE_LIVES | (seed % 5 ? CASE_WRAP | CASE_PARTS : 0);
  bool made = planned_make (seed, features, a, &t->p, &err);
  ck_assert_msg (err.code == ERR_none, "seed %llu: %s", (unsigned long long)seed, err.text);
  if (!made || !t->p.c.plan->n_recomputes)
    return false;
  flow_options o = { .dev = &t->p.c.plan->device,
                     .host_bytes = MOST_BYTES,
                     .classes = 1,
                     .drops = DROPS_ALLOWED,
                     .fresh = fresh };
  ck_assert_msg (fixed_drops_make (&t->p, a, &t->d, &err), "seed %llu: %s",
                 (unsigned long long)seed, err.text);
  trial like = { .g = t->d.gaps };
  ck_assert_msg (cut (&like, &r, a, &err), "%s", err.text);
  t->s = like.s;
  if (peak)
    o.peak = (int32_t)random_between (&r, 1, t->d.gaps.n_ops - 1);
  ck_assert_msg (flow_build (&t->d.gaps, &t->s, &o, a, &t->f, &err), "seed %llu: %s",
                 (unsigned long long)seed, err.text);
  t->real_ns = (double)(t->p.seen.step_ns - trace_total_ns (t->d.cut.trace));
  return true;
}

static bool drop_trial_make (uint64_t seed, arena *a, drop_trial *t) {
  return drop_trial_of (seed, false, seed % 2, a, t);
}

static bool drop_contradicts (drop_trial *t, arena *a, double *stall_ns) {
  error err = { 0 };
  ck_assert_msg (fixed_drops_solve (&t->f, &t->d, a, stall_ns, &err), "%s", err.text);
  return *stall_ns < 0 || *stall_ns > t->real_ns + 1e-6 * (double)(1 + t->p.seen.step_ns);
}

START_TEST (with_drops_the_program_never_says_more_than_the_simulator) {
  int tried = 0, dropped = 0, moved = 0, runs = 0, shared = 0, late = 0, served = 0, equal = 0;
  int early = 0, behind = 0;
  for (int seed = 0; seed < cases (3000); seed++) {
    arena *a = arena_new (0);
    drop_trial t;
    double stall_ns;
    if (drop_trial_make ((uint64_t)seed, a, &t)) {
      ck_assert_msg (!drop_contradicts (&t, a, &stall_ns),
                     "seed %d: program %.3f ns, simulated %.0f", seed, stall_ns, t.real_ns);
      tried++;
      dropped += t.d.drops > 0;
      moved += t.d.drops > 0 && t.p.c.plan->n_moves > 0;
      runs += t.d.drops > 0 && t.s.count < t.d.gaps.n_ops;
      for (int32_t i = 0; i < t.f.n_gaps; i++) {
        const flow_gap *g = &t.f.gaps[i];
        shared += t.d.dropped[g->gap] && g->n_runs > 0;
        late += t.d.dropped[g->gap] && g->late;
      }
      for (int32_t i = 0; i < t.f.n_gaps; i++) {
        const flow_gap *g = &t.f.gaps[i];
        bool over = t.d.dropped[g->gap] && g->ready > g->release;
        early += over && t.d.made[g->gap] <= t.s.first[t.f.peak_slot];
        behind += over && t.d.made[g->gap] > t.s.first[t.f.peak_slot];
      }
      for (int32_t i = 0; i < t.d.gaps.count; i++)
        served += t.d.gaps.at[i].clean != NO_GAP && t.d.dropped[t.d.gaps.at[i].clean];
      /* the program's unit is the grain, and a run is rounded down to it */
      equal += t.d.drops > 0 && t.real_ns > 0 && stall_ns >= t.real_ns - 3;
    }
    arena_free (a);
  }
  ck_assert_msg (early > 20 && behind > 20, "%d made before the peak, %d behind it", early, behind);
  ck_assert_msg (dropped > 100 && moved > 50 && runs > 30 && shared && late && served && equal > 2,
                 "of %d: %d drop, %d move too, %d in runs; %d shared, %d late, %d served, %d equal",
                 tried, dropped, moved, runs, shared, late, served, equal);
}
END_TEST

/* Charged with dead inputs too, the program holds for plans that keep nothing beyond its last use;
   for others it does not. */
START_TEST (dead_inputs_are_charged_to_plans_that_keep_none) {
  int held = 0, beyond = 0, contradicted = 0;
  for (int seed = 0; seed < cases (4000); seed++) {
    arena *a = arena_new (0);
    drop_trial t, over, plain;
    double stall_ns, less_ns, over_ns;
    bool keeps;
    error err = { 0 };
    if (drop_trial_of ((uint64_t)seed, true, false, a, &t) && t.d.drops &&
        drop_trial_of ((uint64_t)seed, true, true, a, &over) &&
        drop_trial_of ((uint64_t)seed, false, false, a, &plain)) {
      const plan *p = t.p.c.plan;
      ck_assert_msg (
          fixed_drops_keeps (t.d.cut.trace, p->recomputes, p->n_recomputes, a, &keeps, &err), "%s",
          err.text);
      bool wrong = drop_contradicts (&t, a, &stall_ns);
      ck_assert_msg (keeps || !wrong, "seed %d: program %.3f ns, simulated %.0f", seed, stall_ns,
                     t.real_ns);
      ck_assert_msg (!drop_contradicts (&over, a, &over_ns) || keeps,
                     "seed %d: program with a peak %.3f ns, simulated %.0f", seed, over_ns,
                     over.real_ns);
      ck_assert (!drop_contradicts (&plain, a, &less_ns));
      held += !keeps;
      beyond += keeps;
      contradicted += keeps && wrong;
    }
    arena_free (a);
  }
  ck_assert_msg (held > 100 && beyond > 10 && contradicted > 0, "%d hold; %d keep, %d contradicted",
                 held, beyond, contradicted);
}
END_TEST

/* Entries that a fault has put into one row twice are one. */
static void tidy (flow *f) {
  int64_t kept = 0;
  for (int32_t c = 0; c < f->n_columns; c++) {
    int64_t first = kept, end = f->column_start[c + 1];
    for (int64_t e = f->column_start[c]; e < end; e++) {
      int64_t at = first, coef = f->entry_coef[e];
      while (at < kept && f->entry_row[at] != f->entry_row[e])
        at++;
      if (at == kept) {
        f->entry_row[kept] = f->entry_row[e];
        f->entry_coef[kept++] = 0;
      }
      f->entry_coef[at] += coef;
    }
    f->column_start[c] = first;
  }
  f->n_entries = f->column_start[f->n_columns] = kept;
}

static void dear_drops (flow *f) {
  for (int k = 0; k < 3; k++)
    scale (f, k == 0 ? ROW_ready : k == 1 ? ROW_made : ROW_share, COLUMN_gap_drop, 3, 1);
}
static void close_columns (flow *f, int kind) {
  for (int32_t c = 0; c < f->n_columns; c++)
    if (f->column_kind[c] == kind)
      f->high[c] = 0;
}
/* What was released has to be made at once. */
static void no_later (flow *f) {
  close_columns (f, COLUMN_ready);
}
/* What is made is due at once. */
static void no_earlier (flow *f) {
  close_columns (f, COLUMN_made);
}
/* A run is no part of the stall: it comes on top of it. */
static void on_top (flow *f) {
  for (int32_t c = 0; c < f->n_columns; c++)
    if (f->column_kind[c] == COLUMN_remake)
      f->cost[c] = COEF_ONE;
}
static void no_runs (flow *f) {
  scale (f, ROW_remake, COLUMN_stall, 0, 1);
}
/* Each output pays its op alone. */
static void shared_by_none (flow *f) {
  for (int32_t c = 0; c < f->n_columns; c++)
    for (int64_t e = f->column_start[c]; e < f->column_start[c + 1]; e++) {
      int32_t r = f->entry_row[e];
      if (f->column_kind[c] == COLUMN_gap_drop && row_is (f, r, ROW_share) && r > 0 &&
          row_is (f, r - 1, ROW_share))
        f->entry_row[e] = r - 1;
    }
}
/* What is dropped is not away, or never comes back. */
static void still_there (flow *f) {
  scale (f, ROW_host_first, COLUMN_gap_drop, 0, 1);
  scale (f, ROW_host, COLUMN_gap_drop, 0, 1);
}
/* It comes back over the link. */
static void comes_by_link (flow *f) {
  for (int32_t i = 0; i < f->n_chains; i++)
    for (int32_t k = 0; k < f->chains[i].count; k++) {
      const flow_chain *c = &f->chains[i];
      const flow_gap *g = &f->gaps[c->first + k];
      int32_t host = flow_row (f, g->first ? ROW_host_first : ROW_host, g->due, c->class);
      int32_t early = flow_row (f, g->first ? ROW_early_first : ROW_early, g->due, c->class);
      for (int32_t col = c->column; col < f->n_columns; col++)
        for (int64_t e = f->column_start[col]; e < f->column_start[col + 1]; e++)
          if (f->column_kind[col] == COLUMN_gap_drop && f->column_at[col] == c->link + k &&
              f->entry_row[e] == host && f->entry_coef[e] < 0 && early >= 0)
            f->entry_row[e] = early;
    }
}
/* A length of life holds: nobody keeps a tensor beyond it. */
static void lives_hold (flow *f) {
  for (int32_t i = 0; i < f->n_chains; i++)
    for (int32_t k = 0; k < f->chains[i].count; k++) {
      const flow_chain *c = &f->chains[i];
      const flow_gap *g = &f->gaps[c->first + k];
      int32_t real = f->slots->of_op[f->source->at[g->gap].before];
      if (!g->late || real == g->due)
        continue;
      int32_t from[2] = { flow_row (f, g->first ? ROW_host_first : ROW_host, g->due, c->class),
                          flow_row (f, g->first ? ROW_early_first : ROW_early, g->due, c->class) };
      int32_t to[2] = { flow_row (f, ROW_host_first, real, c->class),
                        flow_row (f, ROW_early_first, real, c->class) };
      for (int32_t col = c->column; col < f->n_columns; col++)
        for (int64_t e = f->column_start[col]; e < f->column_start[col + 1]; e++)
          for (int way = 0; way < 2; way++)
            if (f->column_at[col] == c->link + k && f->column_kind[col] >= COLUMN_gap_out &&
                f->entry_row[e] == from[way] && f->entry_coef[e] < 0 && to[way] >= 0)
              f->entry_row[e] = to[way];
    }
}

/* What is away before the peak was dropped for it. */
static void needed_before (flow *f) {
  for (int32_t c = 0; c < f->n_columns; c++) {
    int32_t j = f->column_at[c];
    if (f->column_kind[c] != COLUMN_host || slots_is_run (f->slots, j))
      continue;
    int64_t need =
        f->source->base_bytes[f->slots->first[j]] - f->source->unused_bytes - f->source->room_bytes;
    need = need > 0 ? flow_grains_down (&f->link, need) : 0;
    if (need > f->low[c])
      f->low[c] = need < f->high[c] ? need : f->high[c];
  }
}

START_TEST (a_row_of_drops_made_wrong_is_noticed) {
  static const struct {
    const char *name;
    void (*make) (flow *f);
  } faults[] = { { "a drop costs three runs", dear_drops },
                 { "runs come on top of stalls", on_top },
                 { "a stall holds no run", no_runs },
                 { "what is dropped is there", still_there },
                 { "what is dropped comes by the link", comes_by_link },
                 { "a length of life holds", lives_hold },
                 { "memory counts before the peak", needed_before } };
  enum { FAULTS = sizeof faults / sizeof *faults };
  int seen[FAULTS] = { 0 };
  for (int seed = 0; seed < cases (4000); seed++)
    for (int i = 0; i < FAULTS; i++) {
      if (seen[i] >= 2)
        continue;
      arena *a = arena_new (0);
      drop_trial t;
      double stall_ns;
      if (drop_trial_make ((uint64_t)seed, a, &t) && t.d.drops) {
        faults[i].make (&t.f);
        tidy (&t.f);
        seen[i] += drop_contradicts (&t, a, &stall_ns);
      }
      arena_free (a);
    }
  for (int i = 0; i < FAULTS; i++)
    ck_assert_msg (seen[i] > 0, "%s: not noticed", faults[i].name);
}
END_TEST

/* A copy of what was made again serves nobody. */
static void made_for_nothing (drop_trial *t) {
  flow *f = &t->f;
  for (int32_t i = 0; i < f->n_chains; i++) {
    const flow_chain *c = &f->chains[i];
    for (int32_t col = c->column; col < f->n_columns && f->column_at[col] < c->link + c->count;
         col++) {
      int32_t at = f->column_at[col] - c->link;
      if (f->column_kind[col] != COLUMN_gap_out || !t->d.dropped[f->gaps[c->first + at].gap])
        continue;
      for (int64_t e = f->column_start[col]; e < f->column_start[col + 1]; e++)
        if (row_is (f, f->entry_row[e], ROW_clean) || row_is (f, f->entry_row[e], ROW_valid))
          f->entry_coef[e] = 0;
    }
  }
}

START_TEST (what_is_made_again_may_be_carried_in_the_same_gap) {
  int seen = 0;
  for (int seed = 0; seed < cases (4000) && seen < 2; seed++) {
    arena *a = arena_new (0);
    drop_trial t;
    double stall_ns;
    if (drop_trial_make ((uint64_t)seed, a, &t) && t.d.drops) {
      made_for_nothing (&t);
      tidy (&t.f);
      seen += drop_contradicts (&t, a, &stall_ns);
    }
    arena_free (a);
  }
  ck_assert_int_gt (seen, 0);
}
END_TEST

/* Two steps made by hand, each with a plan that reaches the program's value to the nanosecond. In
   both, one op must not see what came before it. */
typedef struct by_hand {
  trace *t;
  device dev;
  int64_t budget_bytes;
  recompute again; /* of the plan */
  int64_t stall_ns;
} by_hand;

/* Two outputs of one op are dropped: it runs again once. */
static void two_outputs (arena *a, by_hand *h) {
  error err = { 0 };
  trace_builder *b = build_new (a, "two outputs", 1, &err);
  for (int i = 0; i < 2; i++)
    build_tensor (b, i ? "y" : "x", 40960, TENSOR_ACTIVATION);
  for (int k = 0; k < 5; k++) {
    build_op (b, "op", OP_FORWARD, k ? 1 : 5000);
    if (k == 0) {
      build_write (b, 0);
      build_write (b, 1);
    }
    if (k > 2)
      build_read (b, k - 3);
    if (k == 2)
      build_op_at (b, 2)->workspace_bytes = 81920;
  }
  h->t = build_finish (b, &err);
  ck_assert (h->t);
  h->dev.link = (device_link){ 1000000, 1000000, 2000000, 0 };
  h->budget_bytes = 81920;
  h->stall_ns = 5000;
}

/* One output is dropped; what is carried comes back while it is made again, long before it is
   due. */
static void beside_the_link (arena *a, by_hand *h) {
  error err = { 0 };
  trace_builder *b = build_new (a, "beside the link", 1, &err);
  build_tensor (b, "x", 40960, TENSOR_ACTIVATION);
  build_tensor (b, "z", 10240, TENSOR_OPTIMIZER); /* no op may make it again */
  for (int k = 0; k < 6; k++) {
    build_op (b, "op", OP_FORWARD, k == 0 ? 9000 : k == 1 ? 90000 : 1);
    if (k < 2)
      build_write (b, k);
    if (k == 3)
      build_read (b, 1);
    if (k == 5)
      build_read (b, 0);
    if (k == 2)
      build_op_at (b, 2)->workspace_bytes = 51200;
  }
  h->t = build_finish (b, &err);
  ck_assert (h->t);
  h->budget_bytes = 51200;
  h->stall_ns = 2 * 10240;
}

static double program_ns (const by_hand *h, void (*fault) (flow *f), arena *a) {
  error err = { 0 };
  units u;
  gaps g;
  slots s;
  flow f;
  double ns;
  flow_options o = {
    .dev = &h->dev, .host_bytes = MOST_BYTES, .classes = 1, .drops = DROPS_ALLOWED
  };
  ck_assert_msg (units_of (h->t, NULL, 0, 1, 0, a, &u, &err) &&
                     gaps_of (&u, 1, h->budget_bytes, a, &g, &err) &&
                     slots_each (&g, a, &s, &err) && flow_build (&g, &s, &o, a, &f, &err),
                 "%s", err.text);
  if (fault)
    fault (&f);
  tidy (&f);
  ck_assert_msg (fixed_finish (&f, a, &ns, &err), "%s", err.text);
  return ns;
}

START_TEST (one_run_serves_all_outputs_whenever_it_suits) {
  static const struct {
    void (*make) (arena *a, by_hand *h);
    void (*fault) (flow *f);
  } cases_by_hand[] = { { two_outputs, shared_by_none },
                        { beside_the_link, no_later },
                        { beside_the_link, no_earlier } };
  for (int i = 0; i < 3; i++) {
    error err = { 0 };
    arena *a = arena_new (0);
    by_hand h = { .dev = { .name = "by hand",
                           .memory_bytes = 1 << 20,
                           .granule_bytes = 512,
                           .link = { 1000000000, 1000000000, 2000000000, 0 },
                           .host_bytes = 1 << 20,
                           .share_ppm = 1000000 } };
    int32_t ops[] = { 0 }, made[] = { 0, 1 };
    solution s;
    cases_by_hand[i].make (a, &h);
    h.again = (recompute){ 3, { ops, 1 }, { made, cases_by_hand[i].make == two_outputs ? 2 : 1 } };
    variant v = { "by hand", NULL, &h.again, 0, 1 };
    solve_options o = { .device = &h.dev, .budget_bytes = h.budget_bytes, .host_bytes = 1 << 20 };
    ck_assert_msg (variant_solve (h.t, &v, &o, NULL, a, &s, &err), "%s", err.text);
    ck_assert_int_eq (s.plan->predicted.step_ns, trace_total_ns (h.t) + h.stall_ns);
    double ns = program_ns (&h, NULL, a), wrong = program_ns (&h, cases_by_hand[i].fault, a);
    ck_assert_msg (ns <= (double)h.stall_ns && ns > (double)h.stall_ns - 5, "case %d: %.3f of %lld",
                   i, ns, (long long)h.stall_ns);
    ck_assert_msg (wrong > (double)h.stall_ns + 1000, "case %d is not noticed: %.3f", i, wrong);
    arena_free (a);
  }
}
END_TEST

/* ---- LP text ---- */

/* What glpsol says about the file; NAN where there is no glpsol. */
static double glpsol (const char *lp, const char *out) {
  pid_t child = fork ();
  if (child == 0) {
    int quiet = open ("/dev/null", O_WRONLY);
    dup2 (quiet, 1);
    dup2 (quiet, 2);
    execlp ("glpsol", "glpsol", "--lp", lp, "-o", out, (char *)NULL);
    _exit (127);
  }
  int status;
  waitpid (child, &status, 0);
  if (!WIFEXITED (status) || WEXITSTATUS (status) == 127)
    return NAN;
  char line[256];
  double value = NAN;
  FILE *f = fopen (out, "r");
  ck_assert (f);
  while (fgets (line, sizeof line, f))
    if (strncmp (line, "Objective:", 10) == 0)
      value = strtod (strchr (line, '=') + 1, NULL);
  fclose (f);
  return value;
}

START_TEST (the_text_means_the_same_to_glpsol) {
  char lp[64], out[64];
  int compared = 0;
  snprintf (lp, sizeof lp, "flow-%d.lp", (int)getpid ());
  snprintf (out, sizeof out, "flow-%d.txt", (int)getpid ());
  for (int kind = SYNTHETIC_GPT; kind <= SYNTHETIC_RANDOM; kind++) {
    error err = { 0 };
    arena *a = arena_new (0);
    device dev = { .granule_bytes = 1 << 20,
                   .link = { 20000000000, 25000000000,
                             kind == SYNTHETIC_GPT ? 30000000000 : 45000000000, 10000 },
                   .host_bytes = (int64_t)1 << 31,
                   .share_ppm = 1000000 };
    trace *t = synthetic ((synthetic_kind)kind, 60, 3, a, &err);
    units u;
    gaps g;
    slots s;
    flow f;
    ilp_problem p;
    ilp_result r;
    bytes text = { 0 };
    flow_options o = { .dev = &dev, .host_bytes = dev.host_bytes, .classes = 2, .latency = true };
    ilp_options how = { .method = ILP_INTERIOR };
    ck_assert_msg (
        t && units_of (t, NULL, 0, dev.granule_bytes, 0, a, &u, &err) &&
            gaps_of (&u, dev.granule_bytes, INT64_MAX / 8, a, &g, &err) &&
            gaps_of (&u, dev.granule_bytes, (g.peak_bytes + g.floor_bytes) / 2, a, &g, &err) &&
            slots_each (&g, a, &s, &err) && flow_build (&g, &s, &o, a, &f, &err) &&
            flow_problem (&f, a, &p, &err) && ilp_solve (&p, &how, a, &r, &err) &&
            flow_write_lp (&f, &text, &err) &&
            file_write (lp, text.data, text.size, FILE_PLAIN, &err),
        "%s", err.text);
    ck_assert_int_eq (r.status, ILP_OPTIMAL);
    double value = glpsol (lp, out);
    if (!isnan (value)) {
      ck_assert_msg (fabs (value - r.value) <= 1e-5 * (1 + fabs (value)), "glpsol %.9g, here %.9g",
                     value, r.value);
      compared += value > 0;
    }
    bytes_free (&text);
    arena_free (a);
  }
  unlink (lp);
  unlink (out);
  if (access ("/usr/bin/glpsol", X_OK) == 0)
    ck_assert_int_gt (compared, 0);
}
END_TEST

START_TEST (a_need_that_nothing_meets_names_its_op) {
  error err = { 0 };
  arena *a = arena_new (0);
  trace_builder *b = build_new (a, "small", 1, &err);
  units u;
  gaps g;
  build_tensor (b, "x", 4096, TENSOR_ACTIVATION);
  build_op (b, "first", OP_FORWARD, 10);
  build_write (b, 0);
  build_op (b, "large", OP_FORWARD, 10);
  build_op_at (b, 1)->workspace_bytes = 8192;
  build_op (b, "last", OP_FORWARD, 10);
  build_read (b, 0);
  trace *t = build_finish (b, &err);
  ck_assert (t && units_of (t, NULL, 0, 512, 0, a, &u, &err) &&
             gaps_of (&u, 512, 8191, a, &g, &err));
  ck_assert_int_eq (g.floor_bytes, 8192);
  ck_assert_int_eq (g.peak_bytes, 12288);
  ck_assert_int_eq (g.floor_op, 1);
  device dev = { .link = { 1000000000, 1000000000, 2000000000, 0 }, .share_ppm = 1000000 };
  flow_options o = { .dev = &dev, .host_bytes = 1 << 20, .classes = 1 };
  slots s;
  flow f;
  ck_assert (slots_each (&g, a, &s, &err));
  ck_assert (!flow_build (&g, &s, &o, a, &f, &err));
  ck_assert_int_eq (err.code, ERR_infeasible);
  ck_assert_ptr_nonnull (strstr (err.text, "op 1 (large) alone needs 8.00 KiB"));
  arena_free (a);
}
END_TEST

int main (void) {
  const TTest *const tests[] = { fixed_to_a_plan_the_program_never_says_more_than_the_simulator,
                                 a_row_made_wrong_is_noticed,
                                 with_drops_the_program_never_says_more_than_the_simulator,
                                 dead_inputs_are_charged_to_plans_that_keep_none,
                                 a_row_of_drops_made_wrong_is_noticed,
                                 what_is_made_again_may_be_carried_in_the_same_gap,
                                 one_run_serves_all_outputs_whenever_it_suits,
                                 the_text_means_the_same_to_glpsol,
                                 a_need_that_nothing_meets_names_its_op,
                                 NULL };
  return suite_run ("flow", tests, 60);
}
