/* SPDX-License-Identifier: GPL-3.0-or-later */
/* With drops, too, the flow program is a relaxation of the machine model: fixed to what plans do
   that make tensors again, anywhere in the gap, by chains, several outputs at once, it says no more
   than the simulator.  Each of its rows is made wrong once, to see that this would be noticed. */
#include <string.h>

#include "solver/attempt/attempt.h"
#include "solver/attempt/variant.h"
#include "tests/fixed.h"
#include "tests/fixed_drops.h"
#include "tests/flow_case.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "trace/build.h"

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
  ck_assert_msg (flow_case_slots (&t->d.gaps, &r, a, &t->s, &err), "%s", err.text);
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

CLAIM (with_drops_the_program_never_says_more_than_the_simulator) {
  int tried = 0, dropped = 0, moved = 0, runs = 0, shared = 0, late = 0, served = 0, equal = 0;
  int early = 0, behind = 0;
  for (int seed = 0; seed < suite_cases (3000); seed++) {
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

/* Charged with dead inputs too, the program holds for plans that keep nothing beyond its last use;
   for others it does not. */
CLAIM (dead_inputs_are_charged_to_plans_that_keep_none) {
  int held = 0, beyond = 0, contradicted = 0;
  for (int seed = 0; seed < suite_cases (4000); seed++) {
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
    flow_scale (f, k == 0 ? ROW_ready : k == 1 ? ROW_made : ROW_share, COLUMN_gap_drop, 3, 1);
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
  flow_scale (f, ROW_remake, COLUMN_stall, 0, 1);
}
/* Each output pays its op alone. */
static void shared_by_none (flow *f) {
  for (int32_t c = 0; c < f->n_columns; c++)
    for (int64_t e = f->column_start[c]; e < f->column_start[c + 1]; e++) {
      int32_t r = f->entry_row[e];
      if (f->column_kind[c] == COLUMN_gap_drop && flow_row_is (f, r, ROW_share) && r > 0 &&
          flow_row_is (f, r - 1, ROW_share))
        f->entry_row[e] = r - 1;
    }
}
/* What is dropped is not away, or never comes back. */
static void still_there (flow *f) {
  flow_scale (f, ROW_host_first, COLUMN_gap_drop, 0, 1);
  flow_scale (f, ROW_host, COLUMN_gap_drop, 0, 1);
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

CLAIM (a_row_of_drops_made_wrong_is_noticed) {
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
  for (int seed = 0; seed < suite_cases (4000); seed++)
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
        if (flow_row_is (f, f->entry_row[e], ROW_clean) ||
            flow_row_is (f, f->entry_row[e], ROW_valid))
          f->entry_coef[e] = 0;
    }
  }
}

CLAIM (what_is_made_again_may_be_carried_in_the_same_gap) {
  int seen = 0;
  for (int seed = 0; seed < suite_cases (4000) && seen < 2; seed++) {
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

/* Steps made by hand, each with a plan that reaches the program's value to the nanosecond. In all
   of them, one op must not see what came before it. */
typedef struct by_hand {
  trace *t;
  device dev;
  int64_t budget_bytes;
  recompute again; /* of the plan */
  int64_t stall_ns;
  bool fresh;
  int32_t ops[3], made[2];
} by_hand;

static void drop (by_hand *h, int32_t before, int32_t n_ops, int32_t n_made) {
  h->again = (recompute){ before, { h->ops, n_ops }, { h->made, n_made } };
}

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
  h->made[1] = 1;
  drop (h, 3, 1, 2);
}

/* Two tensors are dropped whose ops read a third, which is dead by then: it is made again once. */
static void shared_chain (arena *a, by_hand *h) {
  error err = { 0 };
  trace_builder *b = build_new (a, "shared chain", 1, &err);
  build_tensor (b, "x", 512, TENSOR_ACTIVATION);
  build_tensor (b, "y", 40960, TENSOR_ACTIVATION);
  build_tensor (b, "z", 40960, TENSOR_ACTIVATION);
  for (int k = 0; k < 6; k++) {
    build_op (b, "op", OP_FORWARD, k ? 1 : 4000);
    if (k == 1 || k == 2)
      build_read (b, 0);
    if (k == 2) /* so that x is dead when either idle time begins */
      build_read (b, 1);
    if (k < 3)
      build_write (b, k);
    if (k > 3)
      build_read (b, k - 3);
    if (k == 3)
      build_op_at (b, 3)->workspace_bytes = 82432;
  }
  h->t = build_finish (b, &err);
  ck_assert (h->t);
  h->dev.link = (device_link){ 1000000, 1000000, 2000000, 0 };
  h->budget_bytes = 82432;
  h->stall_ns = 4002;
  h->fresh = true;
  for (int i = 0; i < 3; i++)
    h->ops[i] = i;
  h->made[0] = 1;
  h->made[1] = 2;
  drop (h, 4, 3, 2);
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
  drop (h, 3, 1, 1);
}

static double program_ns (const by_hand *h, void (*fault) (flow *f), arena *a) {
  error err = { 0 };
  units u;
  gaps g;
  slots s;
  flow f;
  double ns;
  flow_options o = { .dev = &h->dev,
                     .host_bytes = MOST_BYTES,
                     .classes = 1,
                     .drops = DROPS_ALLOWED,
                     .fresh = h->fresh };
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

CLAIM (one_run_serves_all_outputs_whenever_it_suits) {
  static const struct {
    void (*make) (arena *a, by_hand *h);
    void (*fault) (flow *f);
  } cases_by_hand[] = { { two_outputs, shared_by_none },
                        { shared_chain, shared_by_none },
                        { beside_the_link, no_later },
                        { beside_the_link, no_earlier } };
  for (size_t i = 0; i < sizeof cases_by_hand / sizeof *cases_by_hand; i++) {
    error err = { 0 };
    arena *a = arena_new (0);
    by_hand h = { .dev = { .name = "by hand",
                           .memory_bytes = 1 << 20,
                           .granule_bytes = 512,
                           .link = { 1000000000, 1000000000, 2000000000, 0 },
                           .host_bytes = 1 << 20,
                           .share_ppm = 1000000 } };
    solution s;
    cases_by_hand[i].make (a, &h);
    variant v = { "by hand", NULL, &h.again, 0, 1 };
    solve_options o = { .device = &h.dev, .budget_bytes = h.budget_bytes, .host_bytes = 1 << 20 };
    solve_request q = { .trace = h.t, .variant = &v, .options = &o };
    ck_assert_msg (attempt_solve (&q, a, &s, &err), "%s", err.text);
    ck_assert_int_eq (s.plan->predicted.step_ns, trace_total_ns (h.t) + h.stall_ns);
    double ns = program_ns (&h, NULL, a), wrong = program_ns (&h, cases_by_hand[i].fault, a);
    ck_assert_msg (ns <= (double)h.stall_ns && ns > (double)h.stall_ns - 5,
                   "case %zu: %.3f of %lld", i, ns, (long long)h.stall_ns);
    ck_assert_msg (wrong > (double)h.stall_ns + 1000, "case %zu is not noticed: %.3f", i, wrong);
    arena_free (a);
  }
}

int main (void) {
  return suite_run ("flow with drops", 60);
}
