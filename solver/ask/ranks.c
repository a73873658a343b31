/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/ask/ranks.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/ask/ranks_bound.h"
#include "trace/host_rates.h"
#include "trace/simulate/simulate.h"
#include "trace/summary.h"

const char *const ranks_kinds[RANKS_KINDS] = { "alone",   "one way",  "both ways",
                                               "between", "by turns", "mixed" };
enum { HOST_PLACE = 512 };
enum { TURNS_WORTH = 1000 }; /* two plans must save 1/N of a step */

/* ---- the rest of the link ---- */

static device_link clamped (device_link l) {
  l.d2h_bytes_per_s = max_of (l.d2h_bytes_per_s, DEVICE_LEAST_RATE);
  l.h2d_bytes_per_s = max_of (l.h2d_bytes_per_s, DEVICE_LEAST_RATE);
  l.both_bytes_per_s = max_of (l.both_bytes_per_s, DEVICE_LEAST_RATE);
  return l;
}

/* The ranks that share links: those that copy, a bit a rank. */
typedef struct sharing {
  const ranks_question *r;
  uint64_t copying;
} sharing;

static sharing all_share (const ranks_question *r) {
  return (sharing){ r, r->ranks == 64 ? UINT64_MAX : ((uint64_t)1 << r->ranks) - 1 };
}

/* A way that no group slows down keeps the rate of the card alone. */
static device_link left_both (const sharing *s, int32_t rank) {
  const ranks_question *r = s->r;
  uint64_t copying = s->copying | (uint64_t)1 << rank;
  host_flows f = { .carries = { copying, copying } };
  link_rates own = device_rates (&r->host->link, 1000000);
  host_rates (r->host, &own, &f);
  int64_t out = f.rate[WAY_out][rank], in = f.rate[WAY_in][rank];
  device_link l = r->host->link;
  if (out < own.out_both)
    l.d2h_bytes_per_s = out;
  if (in < own.in_both)
    l.h2d_bytes_per_s = in;
  if (out < own.out_both || in < own.in_both)
    l.both_bytes_per_s = out + in;
  return clamped (l);
}

/* The number of ranks on cards of the same groups: their rates are equal while they do the same. */
static int32_t alike (const sharing *s, int32_t rank) {
  const ranks_question *r = s->r;
  int32_t n = 0;
  for (int32_t i = 0; i < r->ranks; i++) {
    bool same = i == rank || s->copying >> i & 1;
    for (int32_t g = 0; g < r->host->n_groups; g++)
      same &= (r->host->groups[g].cards >> i & 1) == (r->host->groups[g].cards >> rank & 1);
    n += same;
  }
  return n;
}

/* The highest rate of a rank one way while n ranks of the group copy both ways. */
static int64_t most_both (const host_group *g, copy_way way, int64_t n, int64_t against) {
  int64_t left = g->both[WAY_out] + g->both[WAY_in] - n * against;
  return min_of (g->one_way[way], max_of (g->both[way], left)) / n;
}

/* The fastest link that a rank can have while all ranks like it follow one plan: the bound of plans
   for this link holds for every plan that they share. */
static device_link left_one_way (const sharing *s, int32_t rank) {
  const ranks_question *r = s->r;
  device_link l = r->host->link;
  link_rates own = device_rates (&l, 1000000);
  int64_t n = alike (s, rank), both = 0, most[COPY_WAYS] = { own.out_both, own.in_both };
  for (int32_t i = 0; i < r->host->n_groups; i++) {
    const host_group *g = &r->host->groups[i];
    if (!(g->cards >> rank & 1))
      continue;
    l.d2h_bytes_per_s = min_of (l.d2h_bytes_per_s, g->one_way[WAY_out] / n);
    l.h2d_bytes_per_s = min_of (l.h2d_bytes_per_s, g->one_way[WAY_in] / n);
    most[WAY_out] = min_of (most[WAY_out], most_both (g, WAY_out, n, own.in_both));
    most[WAY_in] = min_of (most[WAY_in], most_both (g, WAY_in, n, own.out_both));
  }
  both = 2 * max_of (most[WAY_out], most[WAY_in]);
  l.both_bytes_per_s = min_of (l.d2h_bytes_per_s + l.h2d_bytes_per_s, both);
  return clamped (l);
}

static device_link mean (const device_link *a, const device_link *b) {
  return (device_link){ (a->d2h_bytes_per_s + b->d2h_bytes_per_s) / 2,
                        (a->h2d_bytes_per_s + b->h2d_bytes_per_s) / 2,
                        (a->both_bytes_per_s + b->both_bytes_per_s) / 2, a->copy_ns };
}

static device_link link_for (const sharing *s, ranks_kind kind, int32_t rank) {
  const device_link *alone = &s->r->host->link;
  if (kind == RANKS_alone)
    return *alone;
  if (kind == RANKS_one_way)
    return left_one_way (s, rank);
  device_link both = left_both (s, rank);
  return kind == RANKS_both ? both : mean (alone, &both);
}

static bool same_link (const device_link *a, const device_link *b) {
  return a->d2h_bytes_per_s == b->d2h_bytes_per_s && a->h2d_bytes_per_s == b->h2d_bytes_per_s &&
         a->both_bytes_per_s == b->both_bytes_per_s;
}

static int64_t pinned_share (const ranks_question *r) {
  return r->host->pinned_bytes / r->ranks / HOST_PLACE * HOST_PLACE;
}

device ranks_card (const ranks_question *r, const device *card) {
  assert (r->ranks > 0 && r->ranks <= r->host->n_cards);
  device out = *card;
  sharing all = all_share (r);
  out.link = left_both (&all, 0);
  for (int32_t i = 1; i < r->ranks; i++) {
    device_link l = left_both (&all, i);
    out.link.d2h_bytes_per_s = min_of (out.link.d2h_bytes_per_s, l.d2h_bytes_per_s);
    out.link.h2d_bytes_per_s = min_of (out.link.h2d_bytes_per_s, l.h2d_bytes_per_s);
    out.link.both_bytes_per_s = min_of (out.link.both_bytes_per_s, l.both_bytes_per_s);
  }
  out.host_bytes = pinned_share (r);
  return out;
}

static int64_t bound_of_plan (const ranks_answer *out, int32_t plan) {
  return out->plans[plan].found.plan->certificate.lower_bound_ns;
}

/* The rank whose plan for a link of its own has the greatest bound: ranks keep together. */
static int32_t slowest_alone (const ranks_answer *out, int32_t ranks) {
  int32_t slowest = 0;
  const int32_t *plan_of = out->ways[0].plan_of;
  for (int32_t i = 1; i < ranks; i++)
    if (bound_of_plan (out, plan_of[i]) > bound_of_plan (out, plan_of[slowest]))
      slowest = i;
  return slowest;
}

/* ---- plans, and ways to deal them out ---- */

typedef struct work {
  const ranks_job *jobs; /* one a rank */
  const ranks_question *r;
  bool equal; /* all ranks have one trace */
  int64_t rank_bytes[HOST_MOST_CARDS];
  sharing sharing;
  int32_t refused; /* a rank that has no plan */
  arena *a;
  ranks_answer *out;
} work;

/* The first rank of the same trace. */
static int32_t first_alike (const work *w, int32_t rank) {
  int32_t i = 0;
  while (w->jobs[i].trace != w->jobs[rank].trace)
    i++;
  return i;
}

/* All plans of a trace together have about the effort of one. */
static void share_effort (const work *w, int32_t rank, ask *q) {
  device_link both = left_both (&w->sharing, rank), one_way = left_one_way (&w->sharing, rank);
  solve_options *o = &q->options;
  if (same_link (&both, &w->r->host->link) && same_link (&one_way, &both))
    return;
  if (o->limit_ticks)
    o->limit_ticks = max_of (1, o->limit_ticks / RANKS_turns);
  else
    o->level = o->level == LEVEL_THOROUGH ? LEVEL_NORMAL : LEVEL_QUICK;
}

/* The rank's plan for that link; what was solved once is not solved again. */
static bool plan_for (work *w, int32_t rank, const device_link *link, int32_t *which, error *err) {
  ranks_answer *out = w->out;
  int32_t first = first_alike (w, rank);
  for (*which = 0; *which < out->n_plans; (*which)++)
    if (out->plans[*which].rank == first && same_link (&out->plans[*which].link, link))
      return true;
  ranks_plan *p = &out->plans[out->n_plans];
  ask mine = *w->jobs[rank].ask;
  p->rank = first;
  p->host_bytes = w->rank_bytes[first];
  mine.device.link = p->link = *link;
  mine.device.host_bytes = p->host_bytes;
  share_effort (w, rank, &mine);
  mine.options.host_bytes = min_of (mine.options.host_bytes, p->host_bytes);
  if (!ask_solve (w->jobs[rank].trace, &mine, w->a, &p->found, err))
    return false;
  out->n_plans++;
  return true;
}

static bool time_way (work *w, ranks_way *way, error *err) {
  int32_t n = w->r->ranks;
  sim_options o = { .host = w->r->host };
  arena *scratch = arena_made (err);
  sim_job *jobs = scratch ? NEW (scratch, n, sim_job, err) : NULL;
  rewritten *rewrites = jobs ? NEW (scratch, w->out->n_plans, rewritten, err) : NULL;
  predicted *costs = rewrites ? NEW (scratch, n, predicted, err) : NULL;
  bool ok = costs;
  for (int32_t i = 0; ok && i < n; i++) {
    const plan *p = w->out->plans[way->plan_of[i]].found.plan;
    rewritten *rw = &rewrites[way->plan_of[i]];
    const trace *t = w->jobs[i].trace;
    ok = rw->trace || plan_rewrite (t, p, scratch, rw, err);
    jobs[i] = (sim_job){ t, rw, p };
  }
  ok = ok && simulate (jobs, n, &o, scratch, costs, NULL, err);
  if (ok) {
    way->step_ns = costs->step_ns;
    way->settled = costs->settled;
  }
  arena_free (scratch);
  return ok;
}

/* True, and no way, where all ranks have what an earlier way gives them. */
static bool is_new (const ranks_answer *out, const ranks_way *way, int32_t ranks) {
  for (int32_t i = 0; i < out->n_ways; i++)
    if (memcmp (out->ways[i].plan_of, way->plan_of, (size_t)ranks * sizeof *way->plan_of) == 0)
      return false;
  return true;
}

static bool add_way (work *w, ranks_way *way, error *err) {
  ranks_answer *out = w->out;
  if (!is_new (out, way, w->r->ranks))
    return true;
  if (!time_way (w, way, err))
    return false;
  int64_t best_ns = out->ways[out->best].step_ns;
  int64_t worth_ns = way->kind == RANKS_turns ? best_ns / TURNS_WORTH : 0;
  if (out->n_ways && way->step_ns < best_ns - worth_ns)
    out->best = out->n_ways;
  out->ways[out->n_ways++] = *way;
  return true;
}

static bool try_kind (work *w, ranks_kind kind, error *err) {
  ranks_way way = { .kind = kind };
  for (int32_t i = 0; i < w->r->ranks; i++) {
    device_link link = link_for (&w->sharing, kind, i);
    if (!plan_for (w, i, &link, &way.plan_of[i], err)) {
      w->refused = i;
      return false;
    }
  }
  return add_way (w, &way, err);
}

/* Ranks whose plan for a link of its own copies nothing leave the links to the others. */
static void see_who_copies (work *w) {
  w->sharing.copying = 0;
  for (int32_t i = 0; i < w->r->ranks; i++)
    if (w->out->plans[w->out->ways[0].plan_of[i]].found.plan->n_moves)
      w->sharing.copying |= (uint64_t)1 << i;
}

/* The best way is as near to the bound as was asked for. */
static bool is_near (const work *w, int64_t bound_ns) {
  int64_t step_ns = w->out->ways[w->out->best].step_ns;
  return step_ns <= solve_enough_ns (w->jobs[0].ask->options.gap_ppm, bound_ns);
}

/* Odd ranks as in the second-best way, even ones as in the best. */
static bool try_turns (work *w, error *err) {
  const ranks_answer *out = w->out;
  const ranks_way *second = NULL, *best = &out->ways[out->best];
  for (int32_t i = 0; i < out->n_ways; i++)
    if (i != out->best && (!second || out->ways[i].step_ns < second->step_ns))
      second = &out->ways[i];
  if (!second || w->r->ranks < 2 || is_near (w, out->lower_bound_ns))
    return true;
  ranks_way way = { .kind = RANKS_turns };
  for (int32_t i = 0; i < w->r->ranks; i++)
    way.plan_of[i] = i % 2 ? second->plan_of[i] : best->plan_of[i];
  return add_way (w, &way, err);
}

/* The trace of that rank has each of its plans in turn, and keeps the best. */
static bool improve (work *w, int32_t rank, ranks_way *best, bool *better, error *err) {
  for (int32_t p = 0; p < w->out->n_plans; p++) {
    ranks_way way = *best;
    if (w->out->plans[p].rank != rank)
      continue;
    for (int32_t i = 0; i < w->r->ranks; i++)
      if (first_alike (w, i) == rank)
        way.plan_of[i] = p;
    if (!is_new (w->out, &way, w->r->ranks))
      continue;
    if (!time_way (w, &way, err))
      return false;
    if (way.step_ns < best->step_ns) {
      *best = way;
      *better = true;
    }
  }
  return true;
}

/* From the best way on, traces change to other plans of theirs until no one change is faster. */
static bool try_mixing (work *w, error *err) {
  ranks_way way = w->out->ways[w->out->best];
  bool better = !is_near (w, w->out->lower_bound_ns), any = false;
  while (better) {
    better = false;
    for (int32_t i = 0; i < w->r->ranks; i++)
      if (first_alike (w, i) == i && !improve (w, i, &way, &better, err))
        return false;
    any |= better;
  }
  if (!any)
    return true;
  way.kind = RANKS_mixed;
  w->out->best = w->out->n_ways;
  w->out->ways[w->out->n_ways++] = way;
  return true;
}

/* ---- the bound ---- */

/* Bytes that must cross each rank's link; none where its plans may do more than copy in order. */
static bool count_crossings (work *w, crossing *of, error *err) {
  for (int32_t i = 0; i < w->r->ranks; i++) {
    const ranks_job *j = &w->jobs[i];
    allowed x = allowed_of (&j->ask->options);
    int32_t same = first_alike (w, i);
    if (allowed_rewrites (&x) || j->ask->options.order != ORDER_AS_IS ||
        trace_has_streams (j->trace))
      continue;
    if (same < i)
      of[i] = of[same];
    else if (!crossing_of (j->trace, j->ask->options.budget_bytes, &of[i], err))
      return false;
  }
  return true;
}

static bool group_bound (work *w, error *err) {
  ranks_answer *out = w->out;
  crossing of[HOST_MOST_CARDS] = { 0 };
  if (!count_crossings (w, of, err))
    return false;
  for (int32_t i = 0; i < w->r->host->n_groups; i++) {
    const host_group *g = &w->r->host->groups[i];
    int64_t ns = crossing_ns (g, of, w->r->ranks);
    if (ns > out->lower_bound_ns) {
      out->lower_bound_ns = ns;
      out->by_group = g->name;
    }
  }
  return true;
}

/* The bound of one plan for all ranks, as far as plans for such links are there. */
static void set_same_bound (work *w) {
  ranks_answer *out = w->out;
  out->same_bound_ns = w->equal ? bound_of_plan (out, 0) : 0;
  for (int32_t i = 0; w->equal && i < w->r->ranks; i++) {
    device_link link = left_one_way (&w->sharing, i);
    for (int32_t p = 0; p < out->n_plans; p++)
      if (same_link (&out->plans[p].link, &link))
        out->same_bound_ns = max_of (out->same_bound_ns, bound_of_plan (out, p));
  }
}

/* No rank is faster than alone. */
static void set_alone_bound (work *w) {
  ranks_answer *out = w->out;
  int32_t which = out->ways[0].plan_of[slowest_alone (out, w->r->ranks)];
  out->of = out->plans[which].found.plan;
  out->lower_bound_ns = bound_of_plan (out, which);
}

/* ---- the answer ---- */

/* No one plan is much better, or nobody wants to wait. */
static bool is_enough (work *w) {
  set_same_bound (w);
  return is_near (w, max_of (w->out->same_bound_ns, w->out->lower_bound_ns)) ||
         solve_stops (&w->jobs[0].ask->options);
}

/* The reason why a rank has no plan, with its part of the pinned memory. */
static bool explain (const work *w, const error *why, error *err) {
  char part[UNITS_TEXT], all[UNITS_TEXT], who[64];
  int32_t n = w->r->ranks;
  if (why->code != ERR_infeasible && why->code != ERR_limit)
    return error_set (err, why->code, "%s", why->text);
  if (w->equal)
    snprintf (who, sizeof who, "each of %d rank%s", n, n > 1 ? "s" : "");
  else
    snprintf (who, sizeof who, "rank %d of %d", w->refused, n);
  return error_set (err, why->code, "%s (%s may pin %s, of %s on %s)", why->text, who,
                    units_bytes (part, w->rank_bytes[w->refused]),
                    units_bytes (all, w->r->host->pinned_bytes), w->r->host->name);
}

static bool try_ways (work *w, error *err) {
  for (int kind = RANKS_alone + 1; kind < RANKS_turns && !is_enough (w); kind++)
    if (!try_kind (w, (ranks_kind)kind, err))
      return false;
  return w->equal ? try_turns (w, err) : try_mixing (w, err);
}

/* Equal ranks may pin equal parts; others as much as they have to move beside each other. */
static bool share_pinned (work *w, error *err) {
  __int128 sum = 0;
  int64_t weight[HOST_MOST_CARDS];
  for (int32_t i = 0; i < w->r->ranks; i++) {
    int32_t same = first_alike (w, i);
    summary s;
    if (same == i && !summary_of (w->jobs[i].trace, w->a, &s, err))
      return false;
    int64_t budget_bytes = w->jobs[i].ask->options.budget_bytes;
    weight[i] =
        same < i ? weight[same] : max_of (s.peak_bytes - budget_bytes, s.peak_bytes / 16) + 1;
    sum += weight[i];
  }
  for (int32_t i = 0; i < w->r->ranks; i++) {
    __int128 part = weight[i] * (__int128)w->r->host->pinned_bytes / sum;
    w->rank_bytes[i] =
        min_of (w->jobs[i].ask->options.host_bytes, (int64_t)part / HOST_PLACE * HOST_PLACE);
  }
  return true;
}

bool ranks_solve (const ranks_job *jobs, const ranks_question *r, arena *a, ranks_answer *out,
                  error *err) {
  assert (r->ranks > 0 && r->ranks <= r->host->n_cards);
  *out = (ranks_answer){ 0 };
  work w = { .jobs = jobs, .r = r, .equal = true, .sharing = all_share (r), .a = a, .out = out };
  for (int32_t i = 1; i < r->ranks; i++)
    w.equal &= jobs[i].trace == jobs->trace;
  error why = { 0 };
  if (!share_pinned (&w, err))
    return false;
  if (!try_kind (&w, RANKS_alone, &why))
    return explain (&w, &why, err);
  set_alone_bound (&w);
  if (!w.equal)
    see_who_copies (&w);
  if (!try_ways (&w, err))
    return false;
  set_same_bound (&w);
  if (!group_bound (&w, err))
    return false;
  const ranks_way *best = &out->ways[out->best];
  for (int32_t i = 0; i < r->ranks; i++)
    out->pinned_bytes += out->plans[best->plan_of[i]].found.plan->predicted.host_peak_bytes;
  return true;
}

bool ranks_solve_equal (const trace *t, const ranks_question *r, const ask *q, arena *a,
                        ranks_answer *out, error *err) {
  ranks_job jobs[HOST_MOST_CARDS];
  for (int32_t i = 0; i < r->ranks; i++)
    jobs[i] = (ranks_job){ t, q };
  return ranks_solve (jobs, r, a, out, err);
}
