/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/rank_case.h"

#include "tests/random_streams.h"
#include "trace/check/check.h"

/* Of the trace as it stands: tests/ref_rewrite is the second implementation of the rest. */
#define FEATURES (CASE_EVERYTHING & ~(CASE_SECTIONS | CASE_RECOMPUTE | CASE_GROUPS))

host_group rank_case_group (random_state *r, int32_t n_cards, const device_link *link) {
  host_group g = { .name = "group", .kind = HOST_switch };
  int64_t alone[COPY_WAYS] = { link->d2h_bytes_per_s, link->h2d_bytes_per_s };
  g.cards = (uint64_t)random_between (r, 1, (1 << n_cards) - 1);
  int64_t n = __builtin_popcountll (g.cards);
  for (int way = 0; way < COPY_WAYS; way++) {
    g.one_way[way] =
        random_between (r, alone[way] / 4 + DEVICE_LEAST_RATE, n * alone[way] + DEVICE_LEAST_RATE);
    g.both[way] = random_between (r, DEVICE_LEAST_RATE, g.one_way[way]);
    g.network[way] = g.both[way] % 3 ? 0 : g.both[way] / 7;
  }
  return g;
}

bool rank_case_host (random_state *r, const device *d, int32_t ranks, arena *a, gpu_host *h,
                     error *err) {
  *h = (gpu_host){ .name = "made", .source = "", .device = d->name, .link = d->link };
  h->has_link = true;
  h->n_cards = ranks + (int32_t)random_between (r, 0, 1);
  h->n_groups = (int32_t)random_between (r, 0, 3);
  h->host_bytes = h->pinned_bytes = MOST_BYTES;
  h->groups = NEW (a, h->n_groups, host_group, err);
  for (int32_t i = 0; h->groups && i < h->n_groups; i++)
    h->groups[i] = rank_case_group (r, h->n_cards, &d->link);
  return h->groups;
}

/* Some ops are collectives of two groups, as many in each rank that has any; with others they might
   wait for each other for ever, so all are on one stream, in one order. */
static bool random_collectives (random_state *r, trace *t, int32_t n) {
  int32_t made = 0;
  for (int32_t k = 0; k < t->n_ops && made < n; k++)
    if (t->ops[k].stream == t->ops[0].stream && random_chance (r, 700000)) {
      t->ops[k].collective = COLLECTIVE_all_reduce;
      t->ops[k].group = made++ % 2 ? "odd" : NULL;
    }
  return made == n;
}

/* Legal plans of random traces; equal ones now and then, as ranks mostly are. */
bool rank_case_jobs (random_state *r, int32_t ranks, int64_t factor, bool streams,
                     random_case *cases, sim_job *jobs, arena *a) {
  bool equal = random_chance (r, 400000), side_by_side = streams && random_chance (r, 500000);
  int32_t collectives =
      streams && random_chance (r, 600000) ? (int32_t)random_between (r, 1, 3) : 0;
  for (int32_t i = 0; i < ranks; i++) {
    case_options o = {
      .seed = random_next (r), .features = FEATURES, .places = CASE_SHARED, .factor = factor
    };
    error err = { 0 };
    cases[i] = cases[0];
    if ((i == 0 || !equal) && (!random_case_make (&o, a, &cases[i], &err) ||
                               !check_plan (cases[i].trace, cases[i].plan, a, NULL, &err)))
      return false;
    if ((i == 0 || !equal) && side_by_side && !random_streams (r, cases[i].trace, false, a, &err))
      return false;
    if ((i == 0 || !equal) && !random_collectives (r, cases[i].trace, collectives))
      return false;
    cases[i].plan->device.name = "made";
    jobs[i] = (sim_job){ cases[i].trace, &cases[i].rewritten, cases[i].plan };
  }
  return true;
}
