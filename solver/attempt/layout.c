/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/layout.h"

#include <assert.h>
#include <math.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/attempt/group.h"
#include "solver/attempt/parts.h"
#include "solver/attempt/round.h"

enum { ALL_SPLIT = INT32_MAX };

static const struct {
  int64_t times;           /* a group's size in group_latencies; 0: groups of small tensors only */
  int64_t state_ppm;       /* by_latency: of the best size of a group of persistent tensors */
  int32_t keep, keep_life; /* keep_life 0: what stays and what leaves are not told apart */
  bool many, splits_all;   /* most parts; all units may be split for the sum's sake, or some */
  tuning_id far;           /* latencies that a far copy may take; TUNINGS: all are of one size */
} kinds[LAYOUTS] = {
  [LAYOUT_MIDDLE] = { 1, 2000000, 16, 3, false, false, TUNE_group_latencies },
  [LAYOUT_TIGHT] = { 1, 500000, 16, 8, false, false, TUNE_parts_far },
  [LAYOUT_STATE] = { 1, 2000000, 16, 3, false, false, TUNE_parts_far },
  [LAYOUT_CLOSE] = { 2, 4000000, 64, 1, false, false, TUNE_parts_far },
  [LAYOUT_LARGE] = { 16, 0, 16, 0, false, true, TUNE_parts_far },
  [LAYOUT_MANY] = { 0, 0, 0, 0, true, true, TUNINGS },
  [LAYOUT_SMALL] = { 0, 0, 0, 0, false, true, TUNE_parts_far },
  [LAYOUT_BARE] = { 0, 0, 0, 0, false, true, TUNE_parts_far },
};

static parts_rule parts_of (layout_kind kind, const tuning *by) {
  tuning_id far = kinds[kind].far;
  return (parts_rule){
    .most = kinds[kind].many ? (int32_t)tuned (by, TUNE_parts_many) : MOST_SECTIONS,
    .splits = kinds[kind].splits_all ? ALL_SPLIT : (int32_t)tuned (by, TUNE_parts_some_split),
    .far_latencies = far == TUNINGS ? 0 : (int32_t)tuned (by, far),
    .tuning = by,
  };
}

/* Groups of this size lose one in group_latencies to the link's latency, and little to granules. */
static int64_t group_bytes (const layout_request *q, double latency_bytes, int64_t times) {
  const tuning *by = q->tuning;
  double bytes = latency_bytes * (double)tuned (by, TUNE_group_latencies);
  double least = (double)(tuned (by, TUNE_group_granules) * q->device->granule_bytes);
  int64_t most = q->budget_bytes / tuned (by, TUNE_group_budget_part);
  return (int64_t)fmin (fmax (bytes, least) * (double)times, (double)most);
}

/* A copy costs a latency, and holds its bytes at both ends while it runs: of all that crosses in a
   step, in copies of one size, both together cost least where the size is about the root of half of
   it times what the link carries in a latency. */
static int64_t best_copy_bytes (const layout_request *q, const double *share,
                                double latency_bytes) {
  double crosses = parts_crossing (q->singles, share);
  return (int64_t)fmin (sqrt (crosses * latency_bytes / 2), (double)MOST_BYTES);
}

/* The most of a group of weights and optimizer state. */
static int64_t persistent_bytes (const layout_request *q, const double *share, double latency_bytes,
                                 int64_t most) {
  int64_t ppm = kinds[q->kind].state_ppm;
  bool by_latency = q->by_latency || q->kind == LAYOUT_STATE;
  if (!by_latency || !share || !ppm)
    return most / tuned (q->tuning, TUNE_group_persistent_part);
  int64_t least = max_of (q->part_bytes, q->device->granule_bytes);
  return min_of (
      most, max_of (least, units_scale (best_copy_bytes (q, share, latency_bytes), ppm, 1000000)));
}

static bool choose_groups (const layout_request *q, const double *share, arena *a, layout *out,
                           error *err) {
  const trace *t = q->trace;
  const device *dev = q->device;
  layout_kind kind = q->kind;
  if (kind == LAYOUT_BARE)
    return true;
  if (!kinds[kind].times)
    return group_choose (t, dev->granule_bytes, q->tuning, a, &out->groups, &out->n_groups,
                         &out->pool_below_bytes, err);
  double latency_bytes = parts_latency_bytes (q->singles, share, dev, q->tuning);
  int64_t most = group_bytes (q, latency_bytes, kinds[kind].times);
  group_rule rule = { .least_bytes = dev->granule_bytes / tuned (q->tuning, TUNE_group_pool_part),
                      .most_bytes = most,
                      .persistent_bytes = persistent_bytes (q, share, latency_bytes, most),
                      .keep = kinds[kind].keep,
                      .keep_life = kinds[kind].keep_life,
                      .fill_ppm = (int32_t)tuned (q->tuning, TUNE_group_fill_ppm),
                      .tuning = q->tuning,
                      .persistent = true,
                      .singles = q->singles,
                      .share = kinds[kind].keep_life ? share : NULL,
                      .link_bytes_per_s = device_rates (&dev->link, dev->share_ppm).in_alone };
  return group_tensors (t, dev->granule_bytes, &rule, a, &out->groups, &out->n_groups, err) &&
         schedule_pool (t, out->groups, out->n_groups, dev->granule_bytes, a,
                        &out->pool_below_bytes, NULL, err);
}

/* Less is nothing but a solver's noise. */
#define LEAST_SHARE 1e-6

typedef struct mapping {
  const gaps *singles;
  const double *share;
  int64_t *ends_ns; /* of the ops if nothing stalls */
} mapping;

static int64_t rest_ns (const mapping *m, const gap *at) {
  return trace_rest_ns (m->ends_ns, m->singles->n_ops, at->after, at->before);
}

/* True if the tensor's gap x holds the unit's gap `at`, and `at` is no short piece of it: the bytes
   that leave in the whole of x would not leave for that. */
static bool serves (const mapping *m, const gap *x, const gap *at) {
  bool wraps = x->before <= x->after;
  bool holds = wraps == (at->before <= at->after)
                   ? x->after <= at->after && x->before >= at->before
                   : wraps && (x->after <= at->after || x->before >= at->before);
  return holds && 2 * rest_ns (m, at) >= rest_ns (m, x);
}

/* The first of the unit's gaps behind `after` or later. */
static int32_t first_behind (const gaps *g, int32_t unit, int32_t after) {
  int32_t low = g->of_unit[unit], high = g->of_unit[unit + 1];
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (g->at[middle].after < after)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Adds the bytes that leave in the tensor's gaps, times `weight`, for those of the unit that they
   hold.  Units of what stays have very many gaps, all of them short. */
static void add_shares (const mapping *m, const gaps *g, int32_t unit, int64_t longest_ns,
                        int32_t tensor, double weight, double *share) {
  const gaps *s = m->singles;
  for (int32_t i = s->of_unit[tensor]; i < s->of_unit[tensor + 1]; i++) {
    const gap *x = &s->at[i];
    if (m->share[i] <= LEAST_SHARE || 2 * longest_ns < rest_ns (m, x))
      continue;
    bool wraps = x->before <= x->after;
    int32_t first = wraps ? g->of_unit[unit] : first_behind (g, unit, x->after);
    for (int32_t j = first; j < g->of_unit[unit + 1]; j++) {
      if (!wraps && g->at[j].after >= x->before)
        break;
      if (serves (m, x, &g->at[j]))
        share[j] += weight * m->share[i];
    }
  }
}

/* A group's share is that of its members by bytes. */
static bool map_shares (const mapping *m, arena *a, layout *out, error *err) {
  const gaps *g = &out->step.gaps;
  const tensor *tensors = out->step.units.trace->tensors;
  int32_t n_tensors = out->step.units.trace->n_tensors;
  out->share = NEW (a, g->count, double, err);
  if (!out->share)
    return false;
  for (int32_t u = 0; u < out->step.units.count; u++) {
    int64_t longest_ns = 0;
    for (int32_t i = g->of_unit[u]; i < g->of_unit[u + 1]; i++) {
      int64_t ns = rest_ns (m, &g->at[i]);
      longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    if (u < n_tensors) {
      add_shares (m, g, u, longest_ns, u, 1, out->share);
      continue;
    }
    const index_list *members = &out->groups[u - n_tensors];
    double all = 0;
    for (int32_t j = 0; j < members->count; j++)
      all += (double)tensors[members->at[j]].bytes;
    for (int32_t j = 0; j < members->count; j++) {
      int32_t tensor = members->at[j];
      add_shares (m, g, u, longest_ns, tensor, (double)tensors[tensor].bytes, out->share);
    }
    for (int32_t i = g->of_unit[u]; i < g->of_unit[u + 1]; i++)
      out->share[i] = all > 0 ? out->share[i] / all : 0;
  }
  return true;
}

static bool take_shares (const gaps *singles, const double *share, arena *a, layout *out,
                         error *err) {
  mapping m = { .singles = singles,
                .share = share,
                .ends_ns = trace_ends (out->step.units.trace, a, err) };
  return m.ends_ns && map_shares (&m, a, out, err);
}

/* A solver that failed says that nothing leaves. */
static bool says_something (const gaps *singles, const double *share) {
  for (int32_t i = 0; share && i < singles->count; i++)
    if (singles->at[i].tight && share[i] > 0.1)
      return true;
  return false;
}

bool layout_suits (layout_kind kind, const trace *t, const tuning *by) {
  return kind != LAYOUT_BARE || t->n_ops <= tuned (by, TUNE_pieces_ops);
}

bool layout_make (const layout_request *q, arena *a, layout *out, error *err) {
  assert (q->trace && q->device && q->kind >= 0 && q->kind < LAYOUTS);
  assert (!q->share || q->singles);
  const device *dev = q->device;
  *out = (layout){ .kind = q->kind };
  const double *guide = says_something (q->singles, q->share) ? q->share : NULL;
  count_rule how = { .budget_bytes = q->budget_bytes, .granule_bytes = dev->granule_bytes };
  if (!choose_groups (q, guide, a, out, err))
    return false;
  how.groups = out->groups;
  how.n_groups = out->n_groups;
  how.pool_below_bytes = out->pool_below_bytes;
  out->of = NULL;
  if (!step_count (q->trace, &how, a, &out->step, err) ||
      !(out->of = NEW (a, out->step.units.count, int32_t, err)) ||
      (q->share && !take_shares (q->singles, q->share, a, out, err)))
    return false;
  parts_rule rule = parts_of (q->kind, q->tuning);
  rule.least_bytes = q->part_bytes;
  return parts_choose (&out->step.gaps, dev, out->share, &rule, a, out->of, err);
}
