#include "solver/layout.h"

#include "base/units.h"
#include "solver/group.h"
#include "solver/round.h"

enum { GRANULES_LEAST = 32, LATENCIES = 400, BUDGET_PART = 16, FILL_PPM = 750000, POOL_PART = 32 };

enum { ALL_SPLIT = INT32_MAX, SOME_SPLIT = 16, MANY_SECTIONS = 128 };

static const struct {
  int64_t times;            /* what LATENCIES asks for; 0: groups of small tensors only */
  int32_t keep, keep_life;  /* keep_life 0: what stays and what leaves are not told apart */
  int32_t splits, sections; /* how many units round_sections may cut finely, and how finely */
} kinds[LAYOUTS] = {
  [LAYOUT_MIDDLE] = { 1, 16, 3, SOME_SPLIT, MOST_SECTIONS },
  [LAYOUT_TIGHT] = { 1, 16, 8, SOME_SPLIT, MOST_SECTIONS },
  [LAYOUT_CLOSE] = { 2, 64, 4, SOME_SPLIT, MOST_SECTIONS },
  [LAYOUT_LARGE] = { 16, 16, 0, ALL_SPLIT, MOST_SECTIONS },
  [LAYOUT_MANY] = { 0, 0, 0, ALL_SPLIT, MANY_SECTIONS },
  [LAYOUT_FINEST] = { 0, 0, 0, ALL_SPLIT, MOST_SECTIONS },
  [LAYOUT_SMALL] = { 0, 0, 0, ALL_SPLIT, MOST_SECTIONS },
};

/* Groups of so much lose one in LATENCIES to the link's latency, and little to granules. */
static int64_t group_bytes (const device *dev, int64_t budget_bytes, int64_t times) {
  link_rates r = device_rates (&dev->link, dev->share_ppm);
  int64_t rate = r.out_alone > r.in_alone ? r.out_alone : r.in_alone;
  __int128 bytes = (__int128)dev->link.copy_ns * LATENCIES * rate / 1000000000;
  int64_t least = GRANULES_LEAST * dev->granule_bytes, most = budget_bytes / BUDGET_PART;
  bytes = (bytes < least ? least : bytes) * times;
  return bytes > most ? most : (int64_t)bytes;
}

static bool choose_groups (const trace *t, layout_kind kind, const device *dev,
                           int64_t budget_bytes, const gaps *singles, const double *share, arena *a,
                           layout *out, error *err) {
  if (!kinds[kind].times)
    return group_choose (t, dev->granule_bytes, a, &out->groups, &out->n_groups,
                         &out->pool_below_bytes, err);
  group_rule rule = { .least_bytes = dev->granule_bytes / POOL_PART,
                      .most_bytes = group_bytes (dev, budget_bytes, kinds[kind].times),
                      .keep = kinds[kind].keep,
                      .keep_life = kinds[kind].keep_life,
                      .fill_ppm = FILL_PPM,
                      .persistent = true,
                      .singles = singles,
                      .share = kinds[kind].keep_life ? share : NULL };
  return group_tensors (t, dev->granule_bytes, &rule, a, &out->groups, &out->n_groups, err) &&
         schedule_pool (t, out->groups, out->n_groups, dev->granule_bytes, a,
                        &out->pool_below_bytes, NULL, err);
}

typedef struct mapping {
  const gaps *singles;
  const double *share;
  int64_t *ends_ns; /* of the ops if nothing stalls */
} mapping;

static int64_t rest_ns (const mapping *m, const gap *at) {
  return trace_rest_ns (m->ends_ns, m->singles->n_ops, at->after, at->before);
}

/* What leaves in a member's gap `x` leaves in the unit's gaps that lie in it; not in those that are
   only a short piece of it: the bytes would not leave for that. */
static void map_gap (const mapping *m, const gaps *g, int32_t unit, const gap *x, double bytes,
                     double *share) {
  int32_t first = g->of_unit[unit], end = g->of_unit[unit + 1];
  bool round = x->before <= x->after;
  int32_t low = first, high = end; /* in order of ops, the one that wraps last */
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (g->at[middle].after < x->after)
      low = middle + 1;
    else
      high = middle;
  }
  for (int32_t i = low; i < end && (round || g->at[i].before <= x->before); i++) {
    const gap *at = &g->at[i];
    bool wraps = at->before <= at->after;
    if ((round ? !wraps || at->before <= x->before : !wraps) &&
        2 * rest_ns (m, at) >= rest_ns (m, x))
      share[i] += bytes;
  }
  for (int32_t i = first; round && i < low && g->at[i].before <= x->before; i++)
    if (2 * rest_ns (m, &g->at[i]) >= rest_ns (m, x))
      share[i] += bytes;
}

/* A group's share is that of its members by bytes. */
static bool map_shares (const mapping *m, arena *a, layout *out, error *err) {
  const gaps *g = &out->gaps;
  const tensor *tensors = out->units.trace->tensors;
  int32_t n_tensors = out->units.trace->n_tensors;
  out->share = NEW (a, g->count, double, err);
  if (!out->share)
    return false;
  for (int32_t unit = 0; unit < out->units.count; unit++) {
    index_list alone = { .at = &unit, .count = 1 };
    const index_list *members = unit < n_tensors ? &alone : &out->groups[unit - n_tensors];
    double all = 0;
    if (g->of_unit[unit] == g->of_unit[unit + 1])
      continue;
    for (int32_t j = 0; j < members->count; j++) {
      int32_t x = members->at[j];
      double bytes = (double)tensors[x].bytes;
      all += bytes;
      for (int32_t i = m->singles->of_unit[x]; i < m->singles->of_unit[x + 1]; i++)
        if (m->share[i] > 0)
          map_gap (m, g, unit, &m->singles->at[i], bytes * m->share[i], out->share);
    }
    for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1] && all > 0; i++)
      out->share[i] /= all;
  }
  return true;
}

static bool take_shares (const gaps *singles, const double *share, arena *a, layout *out,
                         error *err) {
  mapping m = { .singles = singles,
                .share = share,
                .ends_ns = trace_ends (out->units.trace, a, err) };
  return m.ends_ns && map_shares (&m, a, out, err);
}

/* A solver that failed says that nothing leaves. */
static bool says_something (const gaps *singles, const double *share) {
  for (int32_t i = 0; share && i < singles->count; i++)
    if (singles->at[i].tight && share[i] > 0.1)
      return true;
  return false;
}

bool layout_make (const trace *t, layout_kind kind, const device *dev, int64_t budget_bytes,
                  const gaps *singles, const double *share, arena *a, layout *out, error *err) {
  *out = (layout){ .kind = kind };
  const double *guide = says_something (singles, share) ? share : NULL;
  if (!choose_groups (t, kind, dev, budget_bytes, singles, guide, a, out, err) ||
      !units_of (t, out->groups, out->n_groups, dev->granule_bytes, out->pool_below_bytes, a,
                 &out->units, err) ||
      !gaps_of (&out->units, dev->granule_bytes, budget_bytes, a, &out->gaps, err))
    return false;
  out->of = NEW (a, out->units.count, int32_t, err);
  if (!out->of || (share && !take_shares (singles, share, a, out, err)))
    return false;
  if (kind == LAYOUT_FINEST)
    return round_finest (&out->gaps, out->of), true;
  return round_sections (&out->gaps, dev, out->share, kinds[kind].splits, kinds[kind].sections, a,
                         out->of, err);
}
