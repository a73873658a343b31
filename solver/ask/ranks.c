/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/ask/ranks.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/flow/step.h"
#include "trace/host_rates.h"
#include "trace/simulate/simulate.h"

const char *const ranks_kinds[RANKS_KINDS] = { "alone", "one way", "both ways", "between",
                                               "by turns" };
enum { HOST_PLACE = 512 };
enum { TURNS_WORTH = 1000 }; /* two plans are worth it where they save such a part of a step */

/* ---- the rest of the link ---- */

static device_link clamped (device_link l) {
  l.d2h_bytes_per_s = max_of (l.d2h_bytes_per_s, DEVICE_LEAST_RATE);
  l.h2d_bytes_per_s = max_of (l.h2d_bytes_per_s, DEVICE_LEAST_RATE);
  l.both_bytes_per_s = max_of (l.both_bytes_per_s, DEVICE_LEAST_RATE);
  return l;
}

/* A way that no group slows down keeps the rate of the card alone. */
static device_link left_both (const ranks_question *r, int32_t rank) {
  uint64_t all = r->ranks == 64 ? UINT64_MAX : ((uint64_t)1 << r->ranks) - 1;
  host_flows f = { .carries = { all, all } };
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

/* Ranks on cards of the same groups, which have equal rates whenever they do the same. */
static int32_t alike (const ranks_question *r, int32_t rank) {
  int32_t n = 0;
  for (int32_t i = 0; i < r->ranks; i++) {
    bool same = true;
    for (int32_t g = 0; g < r->host->n_groups; g++)
      same &= (r->host->groups[g].cards >> i & 1) == (r->host->groups[g].cards >> rank & 1);
    n += same;
  }
  return n;
}

/* At most so much each of n ranks of the group has that way while all of them carry both ways. */
static int64_t most_both (const host_group *g, copy_way way, int64_t n, int64_t against) {
  int64_t left = g->both[WAY_out] + g->both[WAY_in] - n * against;
  return min_of (g->one_way[way], max_of (g->both[way], left)) / n;
}

/* A link that is at no moment slower than what a rank has while all ranks like it do the same: a
   bound of plans for it holds for any one plan of all ranks. */
static device_link left_one_way (const ranks_question *r, int32_t rank) {
  device_link l = r->host->link;
  link_rates own = device_rates (&l, 1000000);
  int64_t n = alike (r, rank), both = 0, most[COPY_WAYS] = { own.out_both, own.in_both };
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

static device_link link_for (const ranks_question *r, ranks_kind kind, int32_t rank) {
  if (kind == RANKS_alone)
    return r->host->link;
  if (kind == RANKS_one_way)
    return left_one_way (r, rank);
  device_link both = left_both (r, rank);
  return kind == RANKS_both ? both : mean (&r->host->link, &both);
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
  out.link = left_both (r, 0);
  for (int32_t i = 1; i < r->ranks; i++) {
    device_link l = left_both (r, i);
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

/* ---- plans, and ways to deal them out ---- */

typedef struct work {
  const trace *t;
  const ranks_question *r;
  const ask *q;
  arena *a;
  ranks_answer *out;
} work;

/* All plans together have about the effort of one. */
static void share_effort (const work *w, ask *q) {
  device_link both = left_both (w->r, 0), one_way = left_one_way (w->r, 0);
  solve_options *o = &q->options;
  if (same_link (&both, &w->r->host->link) && same_link (&one_way, &both))
    return;
  if (o->limit_ticks)
    o->limit_ticks = max_of (1, o->limit_ticks / RANKS_turns);
  else
    o->level = o->level == LEVEL_THOROUGH ? LEVEL_NORMAL : LEVEL_QUICK;
}

/* The plan for that link; what was solved once is not solved again. */
static bool plan_for (work *w, const device_link *link, int32_t *which, error *err) {
  ranks_answer *out = w->out;
  for (*which = 0; *which < out->n_plans; (*which)++)
    if (same_link (&out->plans[*which].link, link))
      return true;
  ranks_plan *p = &out->plans[out->n_plans];
  ask mine = *w->q;
  mine.device.link = p->link = *link;
  mine.device.host_bytes = out->host_bytes;
  share_effort (w, &mine);
  mine.options.host_bytes = min_of (mine.options.host_bytes, out->host_bytes);
  if (!ask_solve (w->t, &mine, w->a, &p->found, err))
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
    ok = rw->trace || plan_rewrite (w->t, p, scratch, rw, err);
    jobs[i] = (sim_job){ w->t, rw, p };
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
    device_link link = link_for (w->r, kind, i);
    if (!plan_for (w, &link, &way.plan_of[i], err))
      return false;
  }
  return add_way (w, &way, err);
}

/* Odd ranks as in the second-best way, even ones as in the best. */
static bool try_turns (work *w, error *err) {
  const ranks_answer *out = w->out;
  const ranks_way *second = NULL, *best = &out->ways[out->best];
  for (int32_t i = 0; i < out->n_ways; i++)
    if (i != out->best && (!second || out->ways[i].step_ns < second->step_ns))
      second = &out->ways[i];
  bool is_best = best->step_ns <= solve_enough_ns (w->q->options.gap_ppm, bound_of_plan (out, 0));
  if (!second || w->r->ranks < 2 || is_best)
    return true;
  ranks_way way = { .kind = RANKS_turns };
  for (int32_t i = 0; i < w->r->ranks; i++)
    way.plan_of[i] = i % 2 ? second->plan_of[i] : best->plan_of[i];
  return add_way (w, &way, err);
}

/* ---- the bound ---- */

/* Bytes that cross the link of a rank in every step. */
typedef struct crossing {
  int64_t bytes[COPY_WAYS];
} crossing;

/* Tensors that no op of a step writes: what the host has of them may be good for ever. */
static bool mark_written (const trace *t, arena *a, bool **out, error *err) {
  *out = NEW (a, t->n_tensors, bool, err);
  for (int32_t k = 0; *out && k < t->n_ops; k++)
    for (int32_t i = 0; i < t->ops[k].writes.count; i++)
      (*out)[t->ops[k].writes.at[i]] = true;
  return *out;
}

/* Per op, the bytes of tensors that no op writes and that may be away there. */
static int64_t *clean_bytes (const gaps *g, const bool *written, arena *a, error *err) {
  int64_t *clean = NEW (a, (int64_t)g->n_ops + 1, int64_t, err);
  for (int32_t i = 0; clean && i < g->count; i++) {
    const gap *x = &g->at[i];
    int64_t bytes = g->units->at[x->unit].bytes;
    if (x->unused || written[x->unit])
      continue;
    clean[x->after + 1] += bytes;
    clean[x->before] -= bytes;
    clean[0] += x->before <= x->after ? bytes : 0;
  }
  for (int32_t k = 0; clean && k < g->n_ops; k++)
    clean[k + 1] += clean[k];
  return clean;
}

/* The bytes that are away at an op came in again in that step. Those that a step writes also went
   out in it, since the host had older ones. */
static bool count_crossings (const trace *t, int64_t budget_bytes, arena *a, crossing **out,
                             error *err) {
  counted_step s;
  bool *written;
  if (!step_count_bytes (t, budget_bytes, a, &s, err) || !mark_written (t, a, &written, err))
    return false;
  const gaps *g = &s.gaps;
  const int64_t *clean = clean_bytes (g, written, a, err);
  if (!clean || !(*out = NEW (a, t->n_ops, crossing, err)))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t in = g->base_bytes[k] - g->unused_bytes - g->room_bytes - g->slack_bytes[k];
    (*out)[k].bytes[WAY_in] = max_of (0, in);
    (*out)[k].bytes[WAY_out] = max_of (0, in - clean[k]);
  }
  return true;
}

static int64_t carried_ns (__int128 bytes, int64_t rate) {
  __int128 ns = bytes * 1000000000 / rate;
  return ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
}

/* A group never carries more than one way's rate, nor, both ways together, than the largest of
   these and of what it carries both ways. */
static int64_t group_ns (const host_group *g, const crossing *x, int32_t ranks) {
  __int128 out = (__int128)x->bytes[WAY_out] * ranks, in = (__int128)x->bytes[WAY_in] * ranks;
  int64_t most =
      max_of (max_of (g->one_way[WAY_out], g->one_way[WAY_in]), g->both[WAY_out] + g->both[WAY_in]);
  return max_of (carried_ns (out + in, most), max_of (carried_ns (out, g->one_way[WAY_out]),
                                                      carried_ns (in, g->one_way[WAY_in])));
}

static int64_t slowest_ns (const host_group *g, const crossing *at, int32_t n_ops, int32_t ranks) {
  int64_t ns = 0;
  for (int32_t k = 0; k < n_ops; k++)
    ns = max_of (ns, group_ns (g, &at[k], ranks));
  return ns;
}

bool ranks_group_bound (const trace *t, int64_t budget_bytes, const host_group *g, int32_t ranks,
                        int64_t *ns, error *err) {
  arena *scratch = arena_made (err);
  crossing *at;
  bool ok = scratch && count_crossings (t, budget_bytes, scratch, &at, err);
  *ns = ok ? slowest_ns (g, at, t->n_ops, ranks) : 0;
  arena_free (scratch);
  return ok;
}

/* Nothing but copies may bring what is away at an op: then the group's rows hold. */
static bool group_bound (work *w, error *err) {
  ranks_answer *out = w->out;
  allowed x = allowed_of (&w->q->options);
  if (allowed_rewrites (&x) || w->q->options.order != ORDER_AS_IS || trace_has_streams (w->t))
    return true;
  arena *scratch = arena_made (err);
  crossing *at;
  bool ok = scratch && count_crossings (w->t, w->q->options.budget_bytes, scratch, &at, err);
  for (int32_t i = 0; ok && i < w->r->host->n_groups; i++) {
    const host_group *g = &w->r->host->groups[i];
    int32_t n = 0;
    for (int32_t r = 0; r < w->r->ranks; r++)
      n += g->cards >> r & 1;
    int64_t ns = slowest_ns (g, at, w->t->n_ops, n);
    if (ns > out->lower_bound_ns) {
      out->lower_bound_ns = ns;
      out->by_group = g->name;
    }
  }
  arena_free (scratch);
  return ok;
}

/* The bound of one plan for all ranks, as far as plans for such links are there. */
static void set_same_bound (work *w) {
  ranks_answer *out = w->out;
  out->same_bound_ns = bound_of_plan (out, 0);
  for (int32_t i = 0; i < w->r->ranks; i++) {
    device_link link = left_one_way (w->r, i);
    for (int32_t p = 0; p < out->n_plans; p++)
      if (same_link (&out->plans[p].link, &link))
        out->same_bound_ns = max_of (out->same_bound_ns, bound_of_plan (out, p));
  }
}

static bool set_bounds (work *w, error *err) {
  ranks_answer *out = w->out;
  out->of = out->plans[0].found.plan;
  out->lower_bound_ns = bound_of_plan (out, 0);
  set_same_bound (w);
  return group_bound (w, err);
}

/* ---- the answer ---- */

/* No one plan is much better, or nobody wants to wait. */
static bool is_enough (work *w) {
  const ranks_answer *out = w->out;
  const solve_options *o = &w->q->options;
  set_same_bound (w);
  return out->ways[out->best].step_ns <= solve_enough_ns (o->gap_ppm, out->same_bound_ns) ||
         solve_stops (o);
}

/* The reason why a rank has no plan, with its part of the pinned memory. */
static bool explain (const work *w, const error *why, error *err) {
  char each[UNITS_TEXT], all[UNITS_TEXT];
  return error_set (err, why->code, "%s (each of %d rank%s may pin %s, of %s on %s)", why->text,
                    w->r->ranks, w->r->ranks > 1 ? "s" : "", units_bytes (each, w->out->host_bytes),
                    units_bytes (all, w->r->host->pinned_bytes), w->r->host->name);
}

static bool try_ways (work *w, error *err) {
  for (int kind = RANKS_alone + 1; kind < RANKS_turns && !is_enough (w); kind++)
    if (!try_kind (w, (ranks_kind)kind, err))
      return false;
  return try_turns (w, err);
}

bool ranks_solve (const trace *t, const ranks_question *r, const ask *q, arena *a,
                  ranks_answer *out, error *err) {
  assert (r->ranks > 0 && r->ranks <= r->host->n_cards);
  *out = (ranks_answer){ .host_bytes = min_of (q->options.host_bytes, pinned_share (r)) };
  work w = { t, r, q, a, out };
  error why = { 0 };
  if (!try_kind (&w, RANKS_alone, &why))
    return explain (&w, &why, err);
  if (!try_ways (&w, err) || !set_bounds (&w, err))
    return false;
  const ranks_way *best = &out->ways[out->best];
  for (int32_t i = 0; i < r->ranks; i++)
    out->pinned_bytes += out->plans[best->plan_of[i]].found.plan->predicted.host_peak_bytes;
  return true;
}
