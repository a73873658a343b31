/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/ask/ranks.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/ask/ranks_bound.h"
#include "solver/ask/ranks_links.h"
#include "solver/search/search.h"
#include "trace/simulate/simulate.h"
#include "trace/summary.h"

const char *const ranks_kinds[RANKS_KINDS] = { "alone",   "one way",  "both ways",
                                               "between", "by turns", "mixed" };
enum { HOST_PLACE = 512 };
enum { TURNS_WORTH = 1000 }; /* two plans must save 1/N of a step */
/* A look for a step that is short enough has 1/N of the ticks; all of them, and the link for both
   ways, only within 1/N of that; a bound that is further above says no. */
enum { LOOK_PART = 8, CLOSE_PART = 10, BOUND_PART = 50 };

device ranks_card (const ranks_question *r, const device *card) {
  assert (r->ranks > 0 && r->ranks <= r->host->n_cards);
  device out = *card;
  sharing all = sharing_all (r);
  out.link = sharing_both (&all, 0);
  for (int32_t i = 1; i < r->ranks; i++) {
    device_link l = sharing_both (&all, i);
    out.link.d2h_bytes_per_s = min_of (out.link.d2h_bytes_per_s, l.d2h_bytes_per_s);
    out.link.h2d_bytes_per_s = min_of (out.link.h2d_bytes_per_s, l.h2d_bytes_per_s);
    out.link.both_bytes_per_s = min_of (out.link.both_bytes_per_s, l.both_bytes_per_s);
  }
  out.host_bytes = r->host->pinned_bytes / r->ranks / HOST_PLACE * HOST_PLACE;
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
  bool equal; /* all ranks have one trace, and keep together */
  int64_t rank_bytes[HOST_MOST_CARDS];
  sharing sharing;
  int32_t refused; /* a rank that has no plan */
  arena *a;
  ranks_answer *out;
} work;

static int64_t least_of (const work *w, int64_t step_ns, int64_t worst_ppm, int64_t total_ppm) {
  return w->r->goal == RANKS_together ? step_ns : w->r->goal == RANKS_worst ? worst_ppm : total_ppm;
}

/* The figure to make least: a time, or a slowdown. */
static int64_t cost_of (const work *w, const ranks_way *way) {
  return least_of (w, way->step_ns, way->worst_ppm, way->total_ppm);
}

/* Equal ones differ by what is not asked for. */
static bool is_better (const work *w, const ranks_way *x, const ranks_way *y) {
  int64_t a = cost_of (w, x), b = cost_of (w, y);
  return a < b || (a == b && w->r->goal != RANKS_together &&
                   x->worst_ppm + x->total_ppm < y->worst_ppm + y->total_ppm);
}

/* The bound beside it. */
static int64_t cost_bound (const work *w) {
  const ranks_answer *x = w->out;
  return least_of (w, x->lower_bound_ns, x->worst_bound_ppm, x->total_bound_ppm);
}

/* The first rank of the same trace. */
static int32_t first_alike (const work *w, int32_t rank) {
  int32_t i = 0;
  while (w->jobs[i].trace != w->jobs[rank].trace)
    i++;
  return i;
}

/* Nobody shares this rank's links. */
static bool is_apart (const work *w, int32_t rank) {
  device_link both = sharing_both (&w->sharing, rank),
              one_way = sharing_one_way (&w->sharing, rank);
  return sharing_same (&both, &w->r->host->link) && sharing_same (&one_way, &both);
}

/* All plans of a trace together have about the effort of one. */
static void share_effort (const work *w, int32_t rank, bool in_full, ask *q) {
  solve_options *o = &q->options;
  if (is_apart (w, rank))
    return;
  if (o->limit_ticks)
    o->limit_ticks = max_of (1, o->limit_ticks / RANKS_turns);
  else
    o->level = o->level == LEVEL_THOROUGH ? LEVEL_NORMAL : LEVEL_QUICK;
  int64_t ticks = o->limit_ticks ? o->limit_ticks : search_default_ticks (w->jobs[rank].trace, o);
  if (!in_full)
    o->limit_ticks = max_of (1, ticks / LOOK_PART);
}

static bool search_plan (const work *w, int32_t rank, bool in_full, ranks_plan *p, error *err) {
  ask mine = *w->jobs[rank].ask;
  mine.device.link = p->link;
  mine.device.host_bytes = p->host_bytes;
  share_effort (w, rank, in_full, &mine);
  mine.options.host_bytes = min_of (mine.options.host_bytes, p->host_bytes);
  p->in_full = in_full || is_apart (w, rank);
  return ask_solve (w->jobs[rank].trace, &mine, w->a, &p->found, err);
}

/* The rank's plan for that link; what was solved once is not solved again. */
static bool plan_for (work *w, int32_t rank, const device_link *link, bool in_full, int32_t *which,
                      error *err) {
  ranks_answer *out = w->out;
  int32_t first = first_alike (w, rank);
  error why = { 0 };
  for (*which = 0; *which < out->n_plans; (*which)++) {
    const ranks_plan *p = &out->plans[*which];
    if (p->rank == first && p->in_full >= in_full && sharing_same (&p->link, link))
      return true;
  }
  ranks_plan *p = &out->plans[out->n_plans];
  *p = (ranks_plan){ .rank = first, .host_bytes = w->rank_bytes[first], .link = *link };
  bool ok = search_plan (w, rank, in_full, p, &why);
  if (!ok && why.code == ERR_limit && !p->in_full) /* little effort rules nothing out */
    ok = search_plan (w, rank, true, p, err);
  else if (!ok)
    *err = why;
  out->n_plans += ok;
  return ok;
}

static int64_t slowdown_ppm (int64_t step_ns, int64_t baseline_ns) {
  return units_scale (step_ns, 1000000, max_of (baseline_ns, 1));
}

static void set_costs (ranks_way *way, const predicted *costs, int32_t n) {
  way->settled = costs->settled;
  way->step_ns = way->worst_ppm = way->total_ppm = 0;
  for (int32_t i = 0; i < n; i++) {
    int64_t slow = slowdown_ppm (costs[i].step_ns, costs[i].baseline_ns);
    way->steps_ns[i] = costs[i].step_ns;
    way->step_ns = max_of (way->step_ns, costs[i].step_ns);
    way->worst_ppm = max_of (way->worst_ppm, slow);
    way->total_ppm += slow;
  }
}

static bool time_way (work *w, ranks_way *way, error *err) {
  int32_t n = w->r->ranks;
  sim_options o = { .host = w->r->host, .apart = w->r->goal != RANKS_together };
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
  if (ok)
    set_costs (way, costs, n);
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
  const ranks_way *best = &out->ways[out->best];
  bool worth = way->kind != RANKS_turns ||
               cost_of (w, way) < cost_of (w, best) - cost_of (w, best) / TURNS_WORTH;
  if (out->n_ways && is_better (w, way, best) && worth)
    out->best = out->n_ways;
  out->ways[out->n_ways++] = *way;
  return true;
}

static bool try_kind (work *w, ranks_kind kind, bool in_full, error *err) {
  ranks_way way = { .kind = kind };
  for (int32_t i = 0; i < w->r->ranks; i++) {
    device_link link = sharing_link (&w->sharing, kind, i);
    if (!plan_for (w, i, &link, in_full, &way.plan_of[i], err)) {
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
static bool is_near (const work *w, int64_t bound) {
  int64_t cost = cost_of (w, &w->out->ways[w->out->best]);
  return cost <= solve_enough_ns (w->jobs[0].ask->options.gap_ppm, bound);
}

/* Odd ranks as in the second-best way, even ones as in the best. */
static bool try_turns (work *w, error *err) {
  const ranks_answer *out = w->out;
  const ranks_way *second = NULL, *best = &out->ways[out->best];
  for (int32_t i = 0; i < out->n_ways; i++)
    if (i != out->best && (!second || out->ways[i].step_ns < second->step_ns))
      second = &out->ways[i];
  if (!second || w->r->ranks < 2 || is_near (w, cost_bound (w)))
    return true;
  ranks_way way = { .kind = RANKS_turns };
  for (int32_t i = 0; i < w->r->ranks; i++)
    way.plan_of[i] = i % 2 ? second->plan_of[i] : best->plan_of[i];
  return add_way (w, &way, err);
}

/* Those whose plans change together: all of one trace, or a job of its own. */
static bool change_together (const work *w, int32_t i, int32_t k) {
  return i == k || (w->r->goal == RANKS_together && w->jobs[i].trace == w->jobs[k].trace);
}

/* That rank, with those like it, has each of its plans in turn, and keeps the best. */
static bool improve (work *w, int32_t rank, ranks_way *best, bool *better, error *err) {
  int32_t first = first_alike (w, rank);
  for (int32_t p = 0; p < w->out->n_plans; p++) {
    ranks_way way = *best;
    if (w->out->plans[p].rank != first)
      continue;
    for (int32_t i = 0; i < w->r->ranks; i++)
      if (change_together (w, i, rank))
        way.plan_of[i] = p;
    if (!is_new (w->out, &way, w->r->ranks))
      continue;
    if (!time_way (w, &way, err))
      return false;
    if (is_better (w, &way, best)) {
      *best = way;
      *better = true;
    }
  }
  return true;
}

/* From the best way on, traces change to other plans of theirs until no one change is faster. */
static bool try_mixing (work *w, error *err) {
  ranks_way way = w->out->ways[w->out->best];
  bool better = !is_near (w, cost_bound (w)), any = false;
  while (better) {
    better = false;
    for (int32_t i = 0; i < w->r->ranks; i++)
      if ((w->r->goal != RANKS_together || first_alike (w, i) == i) &&
          !improve (w, i, &way, &better, err))
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
    device_link link = sharing_one_way (&w->sharing, i);
    for (int32_t p = 0; p < out->n_plans; p++)
      if (sharing_same (&out->plans[p].link, &link))
        out->same_bound_ns = max_of (out->same_bound_ns, bound_of_plan (out, p));
  }
}

static void set_slowdown_bounds (work *w) {
  ranks_answer *out = w->out;
  for (int32_t i = 0; i < w->r->ranks; i++) {
    int32_t which = out->ways[0].plan_of[i];
    int64_t baseline_ns = out->plans[which].found.plan->predicted.baseline_ns;
    int64_t slow = slowdown_ppm (bound_of_plan (out, which), baseline_ns);
    out->worst_bound_ppm = max_of (out->worst_bound_ppm, slow);
    out->total_bound_ppm += slow;
  }
}

/* No rank is faster than alone. */
static void set_alone_bound (work *w) {
  ranks_answer *out = w->out;
  set_slowdown_bounds (w);
  int32_t which = out->ways[0].plan_of[slowest_alone (out, w->r->ranks)];
  out->of = out->plans[which].found.plan;
  out->lower_bound_ns = bound_of_plan (out, which);
}

/* ---- the answer ---- */

static bool is_close (const work *w, int64_t step_ns, int64_t part) {
  return step_ns - w->r->most_ns <= w->r->most_ns / part;
}

/* A step is as short as was asked for, or none can be, as far as the bound knows the orders. */
static bool is_decided (const work *w) {
  const ranks_answer *out = w->out;
  return w->r->most_ns && !w->r->known &&
         (out->ways[out->best].step_ns <= w->r->most_ns ||
          !is_close (w, out->lower_bound_ns, BOUND_PART));
}

/* No one plan is much better, or nobody wants to wait. */
static bool is_enough (work *w) {
  set_same_bound (w);
  return is_decided (w) || is_near (w, max_of (w->out->same_bound_ns, cost_bound (w))) ||
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
  else if (w->r->goal == RANKS_together)
    snprintf (who, sizeof who, "rank %d of %d", w->refused, n);
  else
    snprintf (who, sizeof who, "job %d of %d", w->refused + 1, n);
  return error_set (err, why->code, "%s (%s may pin %s, of %s on %s)", why->text, who,
                    units_bytes (part, w->rank_bytes[w->refused]),
                    units_bytes (all, w->r->host->pinned_bytes), w->r->host->name);
}

static bool try_links (work *w, const ranks_kind *kinds, int n, bool in_full, error *err) {
  for (int i = 0; i < n && !is_enough (w); i++)
    if (!try_kind (w, kinds[i], in_full, err))
      return false;
  return true;
}

/* Less effort, and the link of least promise last; all that there is only where that may decide. */
static bool look_for_most (work *w, error *err) {
  static const ranks_kind first[] = { RANKS_one_way, RANKS_between };
  static const ranks_kind all[] = { RANKS_one_way, RANKS_both, RANKS_between, RANKS_alone };
  if (!try_links (w, first, 2, false, err))
    return false;
  if (w->r->known)
    return try_links (w, &all[1], 1, false, err);
  return !is_close (w, w->out->ways[w->out->best].step_ns, CLOSE_PART) ||
         try_links (w, all, 4, true, err);
}

static bool try_ways (work *w, error *err) {
  static const ranks_kind all[] = { RANKS_one_way, RANKS_both, RANKS_between };
  if (!(w->r->most_ns ? look_for_most (w, err) : try_links (w, all, 3, true, err)))
    return false;
  return w->equal ? try_turns (w, err) : try_mixing (w, err);
}

static bool take_known (work *w, error *err) {
  const ranks_answer *known = w->r->known;
  if (!known)
    return true;
  ranks_way best = known->ways[known->best];
  return add_way (w, &best, err);
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
  if (r->known) {
    out->n_plans = r->known->n_plans;
    memcpy (out->plans, r->known->plans, sizeof out->plans);
  }
  bool together = r->goal == RANKS_together;
  work w = {
    .jobs = jobs, .r = r, .equal = together, .sharing = sharing_all (r), .a = a, .out = out
  };
  for (int32_t i = 1; i < r->ranks; i++)
    w.equal &= jobs[i].trace == jobs->trace;
  error why = { 0 };
  if (!share_pinned (&w, err))
    return false;
  if (!try_kind (&w, RANKS_alone, !r->most_ns, &why))
    return explain (&w, &why, err);
  set_alone_bound (&w);
  if (!w.equal)
    see_who_copies (&w);
  if (!take_known (&w, err) || !try_ways (&w, err))
    return false;
  set_same_bound (&w);
  if (together && !group_bound (&w, err))
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
