/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of traces with several streams: what check accepts is held against runs in which ops take
   other times, by the tensors that ops really touch. */
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "base/random.h"
#include "solver/solve.h"
#include "tests/golden_machine.h"
#include "tests/random_case.h"
#include "tests/random_streams.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"
#include "trace/simulate/simulate.h"

#define FEATURES (CASE_EVERYTHING & ~CASE_GROUPS)

typedef struct shown {
  const trace *t;
  const plan *p;
  const timeline *line;
} shown;

static bool is_used_by (const trace *t, int32_t x, int32_t k) {
  return op_touches (&t->ops[k], x) || t->tensors[x].born_before == k ||
         t->tensors[x].dies_after == k;
}

static int32_t first_use (const trace *t, int32_t x) {
  for (int32_t k = 0; k < t->n_ops; k++)
    if (is_used_by (t, x, k))
      return k;
  return NO_OP;
}

/* The next move of the part behind op `from`, in this step or the next; -1: none. */
static int32_t next_move (const shown *s, int32_t unit, int32_t part, int32_t from, bool *later) {
  int32_t best = -1;
  for (int round = 0; round < 2 && best < 0; round++)
    for (int32_t i = 0; i < s->p->n_moves; i++) {
      const move *m = &s->p->moves[i];
      if (m->unit == unit && m->part == part && (round || m->out_after >= from) &&
          (best < 0 || m->out_after < s->p->moves[best].out_after)) {
        best = i;
        *later = round;
      }
    }
  return best;
}

/* The span of ops of a step, [first, end), that use the tensor, put into what the stay has so far;
   false: one of them begins before the stay does. */
static bool hold (const shown *s, int32_t x, int32_t first, int32_t end, int64_t shift_ns,
                  int64_t ready_ns, span *out) {
  for (int32_t k = first; k < end; k++)
    if (is_used_by (s->t, x, k)) {
      bool only_ends = !op_touches (&s->t->ops[k], x) && s->t->tensors[x].born_before != k;
      if (!only_ends && s->line->ops[k].start_ns + shift_ns < ready_ns)
        return false;
      out->end_ns = max_of (out->end_ns, s->line->ops[k].end_ns + shift_ns);
    }
  return true;
}

typedef enum held { HELD_always, HELD_wrong, HELD_so_long } held;

/* When a stay really holds its granules. */
static held span_of (const shown *s, const stay *at, span *out) {
  const timeline *line = s->line;
  int64_t period_ns = line->period_ns;
  if (at->kind == STAY_WORKSPACE) {
    *out = line->ops[at->index];
    return HELD_so_long;
  }
  const move *m = at->kind == STAY_MOVE ? &s->p->moves[at->index] : NULL;
  int32_t x = m ? m->unit : at->index, part = m ? m->part : at->part;
  const tensor *y = &s->t->tensors[x];
  int32_t from = m ? m->in_before : first_use (s->t, x);
  if (!m && y->persistent)
    return HELD_always;
  int64_t ready_ns = m ? line->ins[at->index].end_ns : line->ops[from].start_ns;
  out->start_ns = out->end_ns = m ? line->ins[at->index].start_ns : ready_ns;
  bool later = false;
  int32_t next = next_move (s, x, part, from, &later);
  if (next >= 0 && later && !y->persistent)
    next = -1;
  int32_t end = next < 0 || later ? s->t->n_ops : s->p->moves[next].out_after + 1;
  if (!hold (s, x, from, end, 0, ready_ns, out) ||
      (later && next >= 0 &&
       !hold (s, x, 0, s->p->moves[next].out_after + 1, period_ns, ready_ns, out)))
    return HELD_wrong;
  if (next >= 0 && !s->p->moves[next].clean) {
    int64_t shift_ns = later ? period_ns : 0;
    if (line->outs[next].start_ns + shift_ns < out->end_ns)
      return HELD_wrong; /* it is copied while it is used */
    out->end_ns = line->outs[next].end_ns + shift_ns;
  }
  return HELD_so_long;
}

static bool share (const placement *p, const stay *a, const stay *b) {
  for (int32_t i = a->first_run; i < a->first_run + a->n_runs; i++)
    for (int32_t j = b->first_run; j < b->first_run + b->n_runs; j++)
      if (p->runs[i].first < p->runs[j].first + p->runs[j].count &&
          p->runs[j].first < p->runs[i].first + p->runs[i].count)
        return true;
  return false;
}

static bool meet (span a, span b, int64_t period_ns, bool same) {
  for (int64_t n = -4; n <= 4; n++)
    if ((n != 0 || !same) && a.start_ns < b.end_ns + n * period_ns &&
        b.start_ns + n * period_ns < a.end_ns)
      return true;
  return false;
}

static bool writes_of_other (const trace *t, int32_t writer, int32_t other) {
  const index_list *writes = &t->ops[writer].writes;
  for (int32_t j = 0; j < writes->count; j++)
    if (op_touches (&t->ops[other], writes->at[j]))
      return true;
  return false;
}

/* The first thing that goes wrong in a step; NULL: nothing. */
static const char *fault (const shown *s, arena *a, error *err) {
  const placement *p = &s->p->placement;
  span *spans = NEW (a, p->n_stays, span, err);
  held *how = NEW (a, p->n_stays, held, err);
  for (int32_t i = 0; i < p->n_stays; i++) {
    how[i] = span_of (s, &p->stays[i], &spans[i]);
    if (how[i] == HELD_wrong)
      return arena_format (a, err, "stay %d begins too late or leaves too early", i);
    for (int32_t j = 0; j <= i; j++)
      if (how[i] == HELD_so_long && how[j] == HELD_so_long &&
          share (p, &p->stays[i], &p->stays[j]) &&
          meet (spans[i], spans[j], s->line->period_ns, i == j))
        return arena_format (a, err, "stays %d and %d share a granule at once", j, i);
  }
  for (int32_t k = 0; k < s->t->n_ops; k++)
    for (int32_t i = 0; i < k; i++)
      if (s->line->ops[k].start_ns < s->line->ops[i].end_ns &&
          (writes_of_other (s->t, i, k) || writes_of_other (s->t, k, i)))
        return arena_format (a, err, "ops %d and %d race", i, k);
  return NULL;
}

/* What goes wrong while ops and copies take other times; NULL: nothing. */
static const char *go_wrong (random_state *r, const random_case *c, arena *a, error *err) {
  predicted cost;
  timeline line;
  rewritten rw;
  sim_options o = { .timeline_arena = a };
  device_link *l = &c->plan->device.link;
  for (int32_t k = 0; k < c->trace->n_ops; k++)
    c->trace->ops[k].ns =
        random_chance (r, 300000) ? random_between (r, 50, 90) : random_between (r, 50, 20000);
  l->d2h_bytes_per_s = random_between (r, 100000000, 20000000000);
  l->h2d_bytes_per_s = random_between (r, 100000000, 20000000000);
  ck_assert_msg (plan_rewrite (c->trace, c->plan, a, &rw, err), "%s", err->text);
  sim_job job = { c->trace, &rw, c->plan };
  ck_assert_msg (simulate (&job, 1, &o, a, &cost, &line, err), "%s", err->text);
  shown s = { rw.trace, c->plan, &line };
  return fault (&s, a, err);
}

static bool make_case (random_state *r, bool ordered, random_case *c, arena *a) {
  case_options o = { .seed = random_next (r),
                     .features = FEATURES,
                     .places = random_chance (r, 300000) ? CASE_RECKLESS : CASE_SHARED };
  error err = { 0 };
  char digest[TRACE_DIGEST];
  if (!random_case_make (&o, a, c, &err) || !random_streams (r, c->trace, ordered, a, &err) ||
      !trace_has_streams (c->trace) || !trace_validate (c->trace, &err) ||
      !trace_digest (c->trace, digest, &err))
    return false;
  c->plan->trace_digest = arena_string (a, digest, &err);
  return c->plan->trace_digest;
}

CLAIM (what_check_accepts_goes_wrong_with_no_durations) {
  enum { DRAWS = 12 };
  int accepted = 0, refused = 0, would = 0;
  int by_rule[CHECK_RULES + 1] = { 0 };
  for (int seed = 1; seed <= suite_cases (3000); seed++) {
    arena *a = arena_new (0);
    random_state r = random_seed ((uint64_t)seed);
    random_case c;
    error err = { 0 }, why = { 0 };
    check_rule rule;
    if (!make_case (&r, random_chance (&r, 700000), &c, a)) {
      arena_free (a);
      continue;
    }
    bool legal = check_plan (c.trace, c.plan, a, &rule, &why);
    const char *wrong = NULL;
    for (int i = 0; i < DRAWS && !wrong; i++)
      wrong = go_wrong (&r, &c, a, &err);
    ck_assert_msg (!legal || !wrong, "seed %d: accepted, but %s", seed, wrong);
    accepted += legal;
    refused += !legal;
    would += !legal && wrong;
    by_rule[rule]++;
    arena_free (a);
  }
  printf ("%d accepted, %d refused (%d as a race, %d as unsafe), %d of which go wrong with some "
          "durations\n",
          accepted, refused, by_rule[RULE_race], by_rule[RULE_safe], would);
  ck_assert_int_gt (accepted * 5, refused);
  ck_assert_int_gt (by_rule[RULE_race], 0);
  ck_assert_int_gt (by_rule[RULE_safe], 0);
  ck_assert_int_gt (would * 2, refused);
}

enum { GRANULE = 512, MOST_LAYERS = 7 };

static int32_t some_tensor (random_state *r, trace_builder *b, tensor_kind kind) {
  return build_tensor (b, "", random_between (r, 1, 6 * GRANULE), kind);
}

static void op_on (random_state *r, trace_builder *b, int32_t stream, int32_t after) {
  int32_t k =
      build_op (b, "", OP_OTHER, random_between (r, 1, random_chance (r, 500000) ? 100 : 1000));
  op *o = build_op_at (b, k);
  o->stream = stream;
  if (random_chance (r, 200000))
    o->gap_ns = random_between (r, 1, 100);
  if (random_chance (r, 300000))
    o->workspace_bytes = random_between (r, 1, 3 * GRANULE);
  if (after != NO_OP)
    build_after (b, after);
}

/* Forward and backward on stream 0; beside them, on stream 1, what is done with each gradient, on
   stream 2 now and then a weight that is fetched. */
static trace *training_step (random_state *r, arena *a, error *err) {
  int32_t w[MOST_LAYERS], x[MOST_LAYERS + 1], g[MOST_LAYERS], sums[MOST_LAYERS], read[MOST_LAYERS];
  int32_t n = (int32_t)random_between (r, 2, MOST_LAYERS);
  trace_builder *b = build_new (a, "step", 1, err);
  x[0] = some_tensor (r, b, TENSOR_INPUT);
  build_tensor_at (b, x[0])->born_before = 0;
  for (int32_t i = 0; i < n; i++) {
    bool fetch = random_chance (r, 300000);
    w[i] = some_tensor (r, b, TENSOR_PARAMETER);
    x[i + 1] = some_tensor (r, b, TENSOR_ACTIVATION);
    int32_t whole = fetch ? some_tensor (r, b, TENSOR_TEMPORARY) : w[i];
    read[i] = NO_OP;
    if (fetch) {
      op_on (r, b, 2, i > 1 && build_ops (b) > 2 ? build_ops (b) - 2 : NO_OP);
      build_read (b, w[i]);
      build_write (b, whole);
      read[i] = build_ops (b) - 1;
    }
    op_on (r, b, 0, read[i]);
    build_read (b, x[i]);
    build_read (b, whole);
    build_write (b, x[i + 1]);
  }
  int32_t grad = x[n];
  for (int32_t i = n - 1; i >= 0; i--) {
    int32_t before = some_tensor (r, b, TENSOR_GRADIENT);
    g[i] = some_tensor (r, b, TENSOR_GRADIENT);
    op_on (r, b, 0, NO_OP);
    build_read (b, grad);
    build_read (b, x[i]);
    build_read (b, w[i]);
    build_write (b, before);
    build_write (b, g[i]);
    grad = before;
    op_on (r, b, 1, build_ops (b) - 1);
    build_read (b, g[i]);
    build_write (b, g[i]);
    sums[i] = build_ops (b) - 1;
  }
  for (int32_t i = 0; i < n; i++) {
    op_on (r, b, 0, sums[i]);
    if (read[i] != NO_OP)
      build_after (b, read[i]);
    build_read (b, g[i]);
    build_write (b, w[i]);
  }
  return build_finish (b, err);
}

static device small_card (random_state *r) {
  device d = { .name = "made", .memory_bytes = 1 << 30, .granule_bytes = GRANULE };
  d.host_bytes = 1 << 30;
  d.share_ppm = 1000000;
  d.link.d2h_bytes_per_s = random_between (r, 500000000, 6000000000);
  d.link.h2d_bytes_per_s = random_between (r, 500000000, 6000000000);
  d.link.both_bytes_per_s = random_chance (r, 500000)
                                ? d.link.d2h_bytes_per_s + d.link.h2d_bytes_per_s
                                : random_between (r, 500000000, 6000000000);
  d.link.copy_ns = random_between (r, 0, 20);
  return d;
}

/* All tensors at once, and as much again for workspaces. */
static int64_t all_bytes (const trace *t) {
  int64_t sum = 0;
  for (int32_t i = 0; i < t->n_tensors; i++)
    sum += (t->tensors[i].bytes + GRANULE - 1) / GRANULE * GRANULE;
  return sum;
}

typedef struct tally {
  int found, refused, moved, above, again, reached, near;
} tally;

static void solve_one (int seed, const trace *t, const solve_options *o, arena *a, tally *n) {
  solution s = { 0 };
  proved is;
  error err = { 0 };
  if (!solve (t, o, a, &s, &err)) {
    ck_assert_msg (err.code == ERR_infeasible || err.code == ERR_limit, "seed %d: %s", seed,
                   err.text);
    n->refused++;
    return;
  }
  int64_t step_ns = s.plan->predicted.step_ns;
  ck_assert_msg (check_plan (t, s.plan, a, NULL, &err), "seed %d: %s", seed, err.text);
  ck_assert_msg (prove_plan (t, s.plan, step_ns, a, &is, &err), "seed %d: %s %s", seed, err.where,
                 err.text);
  ck_assert_int_eq (is.lower_bound_ns, s.plan->certificate.lower_bound_ns);
  bool above = is.lower_bound_ns > trace_total_ns (t);
  n->found++;
  n->moved += s.plan->n_moves > 0;
  n->again += s.plan->n_recomputes > 0;
  n->above += above;
  n->reached += above && step_ns == is.lower_bound_ns;
  n->near += above && step_ns * 10 < is.lower_bound_ns * 11;
}

CLAIM (plans_are_found_and_proved) {
  tally n = { 0 };
  for (int seed = 1; seed <= suite_cases (3000) / 20; seed++) {
    arena *a = arena_new (0);
    random_state r = random_seed ((uint64_t)seed);
    error err = { 0 };
    device d = small_card (&r);
    const trace *t = training_step (&r, a, &err);
    ck_assert_msg (t, "seed %d: %s %s", seed, err.where, err.text);
    solve_options o = { .device = &d, .host_bytes = d.host_bytes, .level = LEVEL_QUICK };
    o.budget_bytes = all_bytes (t) * random_between (&r, 20, 60) / 100 / GRANULE * GRANULE;
    o.keep_proof = true;
    o.limit_ticks = 20000;
    o.recompute = random_chance (&r, 300000) ? RECOMPUTE_AUTO : RECOMPUTE_OFF;
    solve_one (seed, t, &o, a, &n);
    arena_free (a);
  }
  printf ("%d plans, %d refused; %d move something, %d make something again, %d have a bound above "
          "the path: %d reach it, %d are within a tenth\n",
          n.found, n.refused, n.moved, n.again, n.above, n.reached, n.near);
  fflush (stdout);
  ck_assert_int_gt (n.found * 3, n.refused);
  ck_assert_int_gt (n.moved * 3, n.found);
  ck_assert_int_gt (n.above, 0);
  ck_assert_int_gt (n.again, 0);
}

static void same_spans (const char *name, const span *by_hand, const span *seen, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    ck_assert_msg (by_hand[i].start_ns == seen[i].start_ns && by_hand[i].end_ns == seen[i].end_ns,
                   "%s: %d is from %lld to %lld", name, i, (long long)seen[i].start_ns,
                   (long long)seen[i].end_ns);
}

CLAIM (timelines_are_those_worked_out_by_hand) {
  static const char *const names[] = { "beside", "behind" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    golden g;
    rewritten rw;
    predicted cost;
    timeline line;
    ck_assert_msg (golden_load (names[i], a, &g, &err), "%s: %s", names[i], err.text);
    ck_assert_msg (check_plan (g.trace, g.plan, a, NULL, &err), "%s: %s", names[i], err.text);
    ck_assert (plan_rewrite (g.trace, g.plan, a, &rw, &err));
    sim_job job = { g.trace, &rw, g.plan };
    sim_options o = { .timeline_arena = a };
    ck_assert (simulate (&job, 1, &o, a, &cost, &line, &err));
    ck_assert_msg (golden_same_predicted (&g, &cost, &err), "%s: %s", names[i], err.text);
    same_spans (names[i], g.ops, line.ops, g.n_ops);
    same_spans (names[i], g.outs, line.outs, g.plan->n_moves);
    same_spans (names[i], g.ins, line.ins, g.plan->n_moves);
    json_close (g.expected);
    arena_free (a);
  }
}

typedef enum plant { PLANT_no_wait, PLANT_place, PLANT_workspace, PLANTS } plant;

/* What tests/cases/machine/timelines.md says of `beside`. */
CLAIM (planted_races_are_refused) {
  static const check_rule rules[PLANTS] = { RULE_race, RULE_safe, RULE_safe };
  for (plant x = 0; x < PLANTS; x++) {
    arena *a = arena_new (0);
    error err = { 0 };
    golden g;
    check_rule broken;
    char digest[TRACE_DIGEST];
    ck_assert (golden_load ("beside", a, &g, &err));
    placement *p = &g.plan->placement;
    if (x == PLANT_no_wait)
      g.trace->ops[3].after.count = 0;
    if (x == PLANT_place)
      p->runs[p->stays[4].first_run].first = p->runs[p->stays[2].first_run].first;
    if (x == PLANT_workspace) {
      g.trace->ops[1].workspace_bytes = 1024;
      g.trace->ops[2].workspace_bytes = 0;
      p->stays[1].index = 1;
    }
    ck_assert (trace_digest (g.trace, digest, &err));
    g.plan->trace_digest = digest;
    ck_assert (!check_plan (g.trace, g.plan, a, &broken, &err));
    ck_assert_msg (broken == rules[x], "plant %d: %s", x, err.text);
    json_close (g.expected);
    arena_free (a);
  }
}

/* Op k waits for op i, by streams and `after` alone, as far as one can walk from it. */
static bool waits_for (const trace *t, int32_t k, int32_t i) {
  for (int32_t j = k - 1; j >= i; j--)
    if ((t->ops[j].stream == t->ops[k].stream || list_has (&t->ops[k].after, j)) &&
        (j == i || waits_for (t, j, i)))
      return true;
  return false;
}

static bool has_race (const trace *t) {
  for (int32_t k = 0; k < t->n_ops; k++)
    for (int32_t i = 0; i < k; i++)
      if ((writes_of_other (t, i, k) || writes_of_other (t, k, i)) && !waits_for (t, k, i))
        return true;
  return false;
}

/* Each wait of a step is taken away by itself. A plan that makes something again has other ops. */
CLAIM (every_race_that_a_missing_wait_makes_is_refused) {
  int planted = 0, kept = 0;
  for (int seed = 1; seed <= suite_cases (3000) / 10; seed++) {
    arena *a = arena_new (0);
    random_state r = random_seed ((uint64_t)seed);
    random_case c;
    error err = { 0 };
    char digest[TRACE_DIGEST];
    bool legal = make_case (&r, true, &c, a) && c.plan->n_recomputes == 0 &&
                 check_plan (c.trace, c.plan, a, NULL, &err);
    for (int32_t k = 0; legal && k < c.trace->n_ops; k++)
      for (int32_t j = 0; j < c.trace->ops[k].after.count; j++) {
        index_list *after = &c.trace->ops[k].after;
        int32_t last = after->at[--after->count], taken = after->at[j];
        check_rule rule = RULE_race;
        error why = { 0 };
        after->at[j] = last;
        ck_assert (trace_digest (c.trace, digest, &err));
        c.plan->trace_digest = digest;
        bool races = has_race (c.trace), good = check_plan (c.trace, c.plan, a, &rule, &why);
        ck_assert_msg (!races || (!good && rule == RULE_race),
                       "seed %d: op %d no longer waits for op %d, and %s", seed, k, taken,
                       good ? "is accepted" : why.text);
        planted += races;
        kept += !races;
        after->at[j] = taken;
        after->at[after->count++] = last;
      }
    arena_free (a);
  }
  printf ("%d races planted, %d waits that others stand in for\n", planted, kept);
  ck_assert_int_gt (planted * 20, suite_cases (3000));
}

int main (void) {
  return suite_run ("streams", 120);
}
