/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks on one host. With FIRST COUNT FOLDER: random ranks on random hosts, each as one line of
   JSON with what the simulator says of them, for tests/second/ranks.py. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/ask/ranks.h"
#include "solver/ask/ranks_bound.h"
#include "solver/fleet/floor.h"
#include "tests/rank_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/host_rates.h"
#include "trace/simulate/simulate.h"

/* The files go to standard output as they are: what comes before them has to be there. */
static bool print_jobs (const sim_job *jobs, int32_t n, error *err) {
  bool ok = true;
  for (int32_t i = 0; ok && i < n; i++) {
    printf ("%s{\"plan\":", i ? "," : "\"jobs\":[");
    fflush (stdout);
    ok = plan_store (jobs[i].plan, "-", false, err);
    printf (",\"trace\":");
    fflush (stdout);
    ok = ok && trace_store (jobs[i].original, "-", TRACE_PLAIN, err);
    printf ("}");
  }
  printf ("]");
  return ok;
}

static void put_spans (json_writer *w, const char *key, const span *at, int32_t n) {
  json_add_array (w, key);
  for (int32_t i = 0; i < n; i++) {
    json_put_int (w, at[i].start_ns);
    json_put_int (w, at[i].end_ns);
  }
  json_close_array (w);
}

static bool print_answer (const gpu_host *h, const sim_job *jobs, const timeline *lines, int32_t n,
                          error *err) {
  json_writer w;
  bytes text = { 0 };
  json_begin (&w, 0);
  json_open_object (&w);
  json_put_key (&w, "host");
  host_write (&w, h);
  json_add_array (&w, "lines");
  for (int32_t i = 0; i < n; i++) {
    json_open_object (&w);
    put_spans (&w, "ins", lines[i].ins, jobs[i].plan->n_moves);
    put_spans (&w, "ops", lines[i].ops, jobs[i].original->n_ops);
    put_spans (&w, "outs", lines[i].outs, jobs[i].plan->n_moves);
    json_add_int (&w, "step", lines[i].step);
    json_close_object (&w);
  }
  json_close_array (&w);
  json_close_object (&w);
  bool ok = json_finish (&w, &text, err);
  if (ok)
    printf ("\"answer\":%.*s,", (int)text.size, text.data);
  bytes_free (&text);
  return ok;
}

/* 1: a case was printed; 0: this seed makes no legal ranks; -1: something is wrong. */
static int one_case (uint64_t seed, arena *a, error *err) {
  random_state r = random_seed (seed);
  int32_t ranks = (int32_t)random_between (&r, 1, RANK_CASE_MOST);
  random_case cases[RANK_CASE_MOST];
  sim_job jobs[RANK_CASE_MOST];
  predicted costs[RANK_CASE_MOST];
  timeline lines[RANK_CASE_MOST];
  gpu_host h;
  if (!rank_case_jobs (&r, ranks, 1, true, cases, jobs, a))
    return 0;
  sim_options o = { .host = &h, .timeline_arena = a };
  o.apart = ranks > 1 && random_chance (&r, 300000);
  for (int32_t i = 0; o.apart && i < ranks; i++)
    if (trace_total_ns (jobs[i].original) == 0)
      return 0;
  if (!rank_case_host (&r, &cases[0].plan->device, ranks, a, &h, err) ||
      !simulate (jobs, ranks, &o, a, costs, lines, err))
    return -1;
  printf ("{\"seed\":%llu,\"apart\":%s,\"settled\":%s,\"step_ns\":[", (unsigned long long)seed,
          o.apart ? "true" : "false", costs[0].settled ? "true" : "false");
  for (int32_t i = 0; i < ranks; i++)
    printf ("%s%lld", i ? "," : "", (long long)costs[i].step_ns);
  printf ("],");
  if (!print_answer (&h, jobs, lines, ranks, err) || !print_jobs (jobs, ranks, err))
    return -1;
  puts ("}");
  return 1;
}

static int print_cases (uint64_t seed, long count) {
  for (long made = 0; made < count; seed++) {
    error err = { 0 };
    arena *a = arena_new (0);
    int one = a ? one_case (seed, a, &err) : -1;
    arena_free (a);
    if (one < 0) {
      fprintf (stderr, "seed %llu: %s %s\n", (unsigned long long)seed, err.where, err.text);
      return 1;
    }
    made += one;
  }
  return 0;
}

/* ---- claims ---- */

CLAIM (one_rank_on_a_host_without_groups_is_one_job) {
  for (int seed = 1; seed <= suite_cases (300); seed++) {
    arena *a = arena_new (0);
    case_options o = { .seed = (uint64_t)seed,
                       .features = CASE_EVERYTHING & ~CASE_SHARE_PPM,
                       .places = CASE_SHARED };
    random_case c;
    error err = { 0 };
    predicted alone, ranked;
    if (random_case_make (&o, a, &c, &err) && check_plan (c.trace, c.plan, a, NULL, &err)) {
      gpu_host h = { .name = "made", .n_cards = 1, .pinned_bytes = MOST_BYTES };
      h.link = c.plan->device.link;
      sim_job job = { c.trace, &c.rewritten, c.plan };
      sim_options on_host = { .host = &h };
      ck_assert (simulate (&job, 1, NULL, a, &alone, NULL, &err));
      ck_assert_msg (simulate (&job, 1, &on_host, a, &ranked, NULL, &err), "%s", err.text);
      ck_assert_mem_eq (&alone, &ranked, sizeof alone);
    }
    arena_free (a);
  }
}

/* What the doc works out by hand. */
CLAIM (rates_are_those_worked_out_by_hand) {
  enum { G = 1000000000 };
  host_group group = { .cards = 3, .one_way = { 8LL * G, 8LL * G }, .both = { 5LL * G, 4LL * G } };
  gpu_host h = { .n_cards = 2, .n_groups = 1, .groups = &group };
  link_rates link = { 5LL * G, 5LL * G, 5LL * G, 5LL * G };
  static const struct {
    uint64_t carries[COPY_WAYS];
    int64_t tenths[COPY_WAYS][2];
  } rows[] = {
    { { 3, 0 }, { { 40, 40 }, { 0, 0 } } },
    { { 3, 2 }, { { 25, 25 }, { 0, 40 } } },
    { { 1, 2 }, { { 50, 0 }, { 0, 40 } } },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    host_flows f = { .carries = { rows[i].carries[WAY_out], rows[i].carries[WAY_in] } };
    host_rates (&h, &link, &f);
    for (int way = 0; way < COPY_WAYS; way++)
      for (int card = 0; card < 2; card++)
        ck_assert_int_eq (f.rate[way][card], rows[i].tenths[way][card] * (G / 10));
  }
}

static int64_t sum_of (const host_flows *f, copy_way way, uint64_t cards) {
  int64_t sum = 0;
  for (cards &= f->carries[way]; cards; cards &= cards - 1)
    sum += f->rate[way][__builtin_ctzll (cards)];
  return sum;
}

/* Every copy has what its link gives, or is in a group that has nothing left to give. */
CLAIM (no_group_carries_more_than_it_can_and_none_wastes) {
  random_state r = random_seed (7);
  device_link l = { 50000000000, 60000000000, 80000000000, 0 };
  link_rates link = device_rates (&l, 1000000);
  for (int i = 0; i < suite_cases (2000); i++) {
    host_group groups[3];
    gpu_host h = { .n_cards = 6, .n_groups = (int32_t)random_between (&r, 0, 3), .groups = groups };
    host_flows f = { .carries = { (uint64_t)random_between (&r, 0, 63),
                                  (uint64_t)random_between (&r, 0, 63) } };
    for (int g = 0; g < h.n_groups; g++)
      groups[g] = rank_case_group (&r, 6, &l);
    host_rates (&h, &link, &f);
    for (int g = 0; g < h.n_groups; g++) {
      int64_t out = sum_of (&f, WAY_out, groups[g].cards);
      int64_t in = sum_of (&f, WAY_in, groups[g].cards);
      ck_assert_int_le (out, groups[g].one_way[WAY_out]);
      ck_assert_int_le (in, groups[g].one_way[WAY_in]);
      if (out && in)
        ck_assert_int_le (out + in, groups[g].both[WAY_out] + groups[g].both[WAY_in]);
    }
    for (int card = 0; card < 6; card++) {
      bool both = f.carries[WAY_out] & f.carries[WAY_in] & 1u << card;
      int64_t own = both ? link.out_both : link.out_alone;
      bool in_full = h.n_groups > 0;
      ck_assert_int_le (f.rate[WAY_out][card], own);
      if (f.carries[WAY_out] >> card & 1 && !in_full)
        ck_assert_int_eq (f.rate[WAY_out][card], own);
    }
  }
}

static gpu_host narrow_host (const device *d, host_group *group, int32_t cards) {
  gpu_host h = { .name = "made", .device = d->name, .n_cards = cards, .n_groups = 1 };
  h.link = d->link;
  h.host_bytes = h.pinned_bytes = (int64_t)1 << 40;
  *group = (host_group){ .name = "cpu", .cards = ((uint64_t)1 << cards) - 1 };
  for (int way = 0; way < COPY_WAYS; way++) {
    group->one_way[way] = d->link.d2h_bytes_per_s * cards / 2;
    group->both[way] = d->link.d2h_bytes_per_s * cards / 4;
  }
  h.groups = group;
  return h;
}

/* Ranks behind one narrow link, planned in as little memory as there can be. */
typedef struct planned_ranks {
  random_case c;
  gpu_host host;
  host_group group;
  ranks_question asked;
  ranks_answer answer;
  ask one;
  int64_t budget_bytes;
} planned_ranks;

static bool plan_ranks (int seed, int32_t ranks, arena *a, planned_ranks *p) {
  error err = { 0 };
  memory_floor f;
  case_options made = { .seed = (uint64_t)seed, .features = CASE_GAPS, .most_ops = 9 };
  ck_assert (random_case_make (&made, a, &p->c, &err));
  device d = p->c.plan->device;
  p->host = narrow_host (&d, &p->group, 4);
  p->asked = (ranks_question){ .host = &p->host, .ranks = ranks };
  ask q = ask_default (p->c.trace, &d);
  allowed_into (&(allowed)SWAPS_ALONE, &q.options);
  q.options.order = ORDER_AS_IS;
  q.options.host_bytes = p->host.pinned_bytes;
  q.reserve_ppm = 0;
  ck_assert_msg (floor_of (p->c.trace, &d, a, &f, &err), "%s", err.text);
  bool ok = ask_budget (&q, f.bytes, &err) &&
            ranks_solve_equal (p->c.trace, &p->asked, &q, a, &p->answer, &err);
  p->budget_bytes = q.options.budget_bytes;
  p->one = q;
  return ok;
}

CLAIM (no_way_beats_the_bound_and_the_best_is_no_slower_than_the_plan_for_one_card) {
  int gained = 0;
  for (int seed = 1; seed <= 12; seed++) {
    arena *a = arena_new (0);
    planned_ranks p;
    if (plan_ranks (seed, 1 + seed % 4, a, &p)) {
      const ranks_answer *out = &p.answer;
      for (int i = 0; i < out->n_ways; i++)
        ck_assert_int_ge (out->ways[i].step_ns, out->lower_bound_ns);
      for (int i = 0; i < out->n_ways && out->ways[i].kind != RANKS_turns; i++)
        ck_assert_int_ge (out->ways[i].step_ns, out->same_bound_ns);
      ck_assert_int_le (out->ways[out->best].step_ns, out->ways[0].step_ns);
      gained++;
    }
    arena_free (a);
  }
  ck_assert_int_gt (gained, 6);
}

static const ranks_way *best_of (const ranks_answer *x) {
  return &x->ways[x->best];
}

CLAIM (whether_a_step_is_short_enough_costs_less_than_the_fastest_and_leads_to_it) {
  int searched = 0, saved = 0;
  for (int seed = 1; seed <= 12; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    planned_ranks p;
    if (plan_ranks (seed, 4, a, &p)) {
      const ranks_answer *all = &p.answer;
      ranks_answer *yes = NEW (a, 3, ranks_answer, &err), *no = &yes[1], *more = &yes[2];
      ranks_question r = p.asked;
      r.most_ns = all->ways[0].step_ns;
      ck_assert (ranks_solve_equal (p.c.trace, &r, &p.one, a, yes, &err));
      ck_assert_int_le (best_of (yes)->step_ns, r.most_ns);
      r.most_ns = all->plans[0].found.plan->certificate.lower_bound_ns * 39 / 40;
      ck_assert (ranks_solve_equal (p.c.trace, &r, &p.one, a, no, &err));
      ck_assert_int_eq (no->n_plans, 1);
      ck_assert_int_gt (no->lower_bound_ns, r.most_ns);
      r.known = yes;
      ck_assert (ranks_solve_equal (p.c.trace, &r, &p.one, a, more, &err));
      ck_assert_int_ge (more->n_plans, yes->n_plans);
      ck_assert_int_le (best_of (more)->step_ns, best_of (yes)->step_ns);
      ck_assert_int_ge (best_of (more)->step_ns, all->lower_bound_ns);
      searched += all->n_plans;
      saved += all->n_plans - yes->n_plans;
    }
    arena_free (a);
  }
  ck_assert_msg (saved > 0, "%d searches, and none saved", searched);
}

static void random_rates (random_state *r, const device_link *l, host_group *g) {
  for (int way = 0; way < COPY_WAYS; way++) {
    g->one_way[way] = random_between (r, l->d2h_bytes_per_s / 256, l->d2h_bytes_per_s / 4);
    g->one_way[way] = g->one_way[way] < DEVICE_LEAST_RATE ? DEVICE_LEAST_RATE : g->one_way[way];
    g->both[way] = random_between (r, g->one_way[way] / 3, g->one_way[way]);
  }
}

/* Each rank has any plan of one of two traces, behind a link of any rates. */
CLAIM (no_dealing_of_plans_beats_the_bound_of_the_group_that_ranks_share) {
  int above = 0;
  random_state r = random_seed (5);
  for (int seed = 1; seed <= 24; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    planned_ranks p, other;
    if (!plan_ranks (seed, 2, a, &p) || !plan_ranks (seed + 24, 2, a, &other)) {
      arena_free (a);
      continue;
    }
    for (int round = 0; round < 20; round++) {
      rewritten rws[4];
      sim_job jobs[4];
      predicted costs[4];
      sim_options o = { .host = &p.host };
      crossing of[4];
      int32_t n = (int32_t)random_between (&r, 2, 4);
      random_rates (&r, &p.host.link, &p.group);
      for (int32_t i = 0; i < n; i++) {
        const planned_ranks *x = random_between (&r, 0, 1) ? &p : &other;
        int64_t which = random_between (&r, 0, x->answer.n_plans - 1);
        const plan *made = x->answer.plans[which].found.plan;
        ck_assert (plan_rewrite (x->c.trace, made, a, &rws[i], &err));
        ck_assert (crossing_of (x->c.trace, x->budget_bytes, &of[i], &err));
        jobs[i] = (sim_job){ x->c.trace, &rws[i], made };
      }
      ck_assert_msg (simulate (jobs, n, &o, a, costs, NULL, &err), "%s", err.text);
      int64_t ns = crossing_ns (&p.group, of, n);
      ck_assert_msg (costs->step_ns >= ns || !costs->settled, "seed %d: %lld beats the bound %lld",
                     seed, (long long)costs->step_ns, (long long)ns);
      above += ns > costs->compute_ns;
    }
    arena_free (a);
  }
  ck_assert_int_gt (above, 12);
}

/* Two traces behind one narrow link, each in as little memory as there can be. */
typedef struct planned_pair {
  random_case c[2];
  ask asks[2];
  gpu_host host;
  host_group group;
  ranks_job jobs[2];
  ranks_question asked;
  ranks_answer answer;
} planned_pair;

static bool plan_pair (int seed, arena *a, planned_pair *p) {
  error err = { 0 };
  device d;
  for (int i = 0; i < 2; i++) {
    memory_floor f;
    case_options made = { .seed = (uint64_t)(seed + 100 * i),
                          .features = CASE_GAPS,
                          .most_ops = 24 };
    ck_assert (random_case_make (&made, a, &p->c[i], &err));
    if (i == 0)
      d = p->c[0].plan->device;
    ask *q = &p->asks[i];
    *q = ask_default (p->c[i].trace, &d);
    allowed_into (&(allowed)SWAPS_ALONE, &q->options);
    q->options.order = ORDER_AS_IS;
    q->options.host_bytes = (int64_t)1 << 40;
    q->reserve_ppm = 0;
    ck_assert_msg (floor_of (p->c[i].trace, &d, a, &f, &err), "%s", err.text);
    if (!ask_budget (q, f.bytes, &err))
      return false;
    p->jobs[i] = (ranks_job){ p->c[i].trace, q };
  }
  p->host = narrow_host (&d, &p->group, 2);
  for (int way = 0; way < COPY_WAYS; way++) {
    p->group.one_way[way] /= 2;
    p->group.both[way] /= 2;
  }
  p->asked = (ranks_question){ .host = &p->host, .ranks = 2 };
  return ranks_solve (p->jobs, &p->asked, a, &p->answer, &err);
}

static int64_t pair_ns (const planned_pair *p, const int32_t plan_of[2], arena *a) {
  error err = { 0 };
  rewritten rws[2];
  sim_job jobs[2];
  predicted costs[2];
  sim_options o = { .host = &p->host };
  for (int i = 0; i < 2; i++) {
    const plan *made = p->answer.plans[plan_of[i]].found.plan;
    ck_assert_msg (check_plan (p->c[i].trace, made, a, NULL, &err), "%s", err.text);
    ck_assert (plan_rewrite (p->c[i].trace, made, a, &rws[i], &err));
    jobs[i] = (sim_job){ p->c[i].trace, &rws[i], made };
  }
  ck_assert_msg (simulate (jobs, 2, &o, a, costs, NULL, &err), "%s", err.text);
  return costs->step_ns;
}

/* All pairs of their plans are timed: none beats the bound, and no change of one rank's is faster
   than the answer, where that is not near the bound already. */
CLAIM (different_traces_have_the_best_of_their_plans_beside_each_other) {
  int gained = 0, changed = 0, planned = 0;
  for (int seed = 1; seed <= 17; seed++) {
    arena *a = arena_new (0);
    planned_pair p;
    if (plan_pair (seed, a, &p)) {
      const ranks_answer *x = &p.answer;
      const ranks_way *best = &x->ways[x->best];
      int64_t enough_ns = solve_enough_ns (p.asks[0].options.gap_ppm, x->lower_bound_ns);
      ck_assert_int_eq (best->step_ns, pair_ns (&p, best->plan_of, a));
      for (int32_t i = 0; i < x->n_plans; i++)
        for (int32_t k = 0; k < x->n_plans; k++) {
          int32_t of[2] = { i, k };
          if (x->plans[i].rank != 0 || x->plans[k].rank != 1)
            continue;
          int64_t ns = pair_ns (&p, of, a);
          bool near = i == best->plan_of[0] || k == best->plan_of[1];
          ck_assert_int_ge (ns, x->lower_bound_ns);
          if (near && best->step_ns > enough_ns)
            ck_assert_int_ge (ns, best->step_ns);
        }
      gained += best->step_ns < x->ways[0].step_ns;
      changed += best->kind == RANKS_mixed;
      planned++;
    }
    arena_free (a);
  }
  ck_assert_int_gt (planned, 10);
  ck_assert_msg (gained > 2 && changed > 0, "%d gained, %d changed", gained, changed);
}

int main (int argc, char **argv) {
  if (argc == 3)
    return print_cases (strtoull (argv[1], NULL, 10), strtol (argv[2], NULL, 10));
  return suite_run ("ranks", 60);
}
