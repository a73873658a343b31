/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/gaps.h"

#include <assert.h>

#include "base/units.h"
#include "solver/flow/peaks.h"

/* Sums over ops are differences first: +x where it begins, -x behind its end. */
static void cover_ops (int64_t *row, int32_t n, int32_t first, int32_t end, int64_t x) {
  if (first < end) {
    row[first] += x;
    if (end < n)
      row[end] -= x;
  }
}

static void sum_up (int64_t *row, int32_t n) {
  for (int32_t k = 1; k < n; k++)
    row[k] += row[k - 1];
}

static void cover_gap (int64_t *row, int32_t n, const gap *g, int64_t x) {
  if (g->before > g->after) {
    cover_ops (row, n, g->after + 1, g->before, x);
  } else {
    cover_ops (row, n, g->after + 1, n, x);
    cover_ops (row, n, 0, g->before, x);
  }
}

/* No sum of what follows can overflow once this one does not. */
static bool total_is_sane (const units *u, int64_t granule_bytes, error *err) {
  int64_t total = u->pool_bytes;
  bool bad = false;
  for (int32_t i = 0; i < u->count; i++) {
    int64_t room;
    bad |= __builtin_mul_overflow (u->at[i].granules, granule_bytes, &room) ||
           __builtin_add_overflow (total, room, &total);
  }
  int64_t workspace = MOST_TENSOR_BYTES + granule_bytes;
  if (bad || total > INT64_MAX / 4 - workspace)
    return error_set (err, ERR_input, "the tensors of this trace add up to more than 2^61 bytes");
  return true;
}

static void base_of (gaps *g) {
  const units *u = g->units;
  const trace *t = u->trace;
  int32_t n = g->n_ops;
  for (int32_t i = 0; i < u->count; i++)
    if (u->at[i].bytes && u->at[i].persistent)
      cover_ops (g->base_bytes, n, 0, n, gaps_room (g, i));
    else if (u->at[i].bytes && u->at[i].first != NO_OP)
      cover_ops (g->base_bytes, n, u->at[i].first, u->at[i].last + 1, gaps_room (g, i));
  sum_up (g->base_bytes, n);
  for (int32_t k = 0; k < n; k++)
    g->base_bytes[k] +=
        units_div_up (t->ops[k].workspace_bytes, g->granule_bytes) * g->granule_bytes;
  for (int32_t k = 0; k < n; k++)
    if (gaps_is_loose (g, k))
      g->base_bytes[k] = 0;
}

static void set_ends (const gaps *g, gap *at, int32_t after, int32_t before) {
  at->after = after;
  at->before = before;
  at->release = after + 1 == g->n_ops ? 0 : after + 1;
  at->wraps = before < at->release;
  if (gaps_is_loose (g, after)) {
    at->release = after;
    at->wraps = before <= after;
  }
}

static void add_gap (gaps *g, int32_t unit, int32_t after, int32_t before) {
  gap *at = &g->at[g->count++];
  *at = (gap){ .unit = unit, .clean = NO_GAP };
  set_ends (g, at, after, before);
}

/* A unit's gaps, and from which one before it each could take a clean copy. */
static void gaps_of_unit (gaps *g, int32_t unit) {
  const units *u = g->units;
  const unit_info *info = &u->at[unit];
  const use *uses = u->uses + u->use_offset[unit];
  int32_t n = u->use_offset[unit + 1] - u->use_offset[unit];
  int32_t first = g->count;
  if (!info->bytes || info->pinned)
    return;
  if (!n) {
    if (info->persistent) {
      add_gap (g, unit, 0, 0);
      g->at[first].unused = true;
      g->unused_bytes += gaps_room (g, unit);
    }
    return;
  }
  for (int32_t i = 0; i + 1 < n; i++) {
    add_gap (g, unit, uses[i].op, uses[i + 1].op);
    if (i > 0 && !uses[i].writes)
      g->at[first + i].clean = first + i - 1;
  }
  if (!info->persistent)
    return;
  add_gap (g, unit, uses[n - 1].op, uses[0].op);
  if (n > 1 && !uses[n - 1].writes)
    g->at[first + n - 1].clean = first + n - 2;
  if (!uses[0].writes)
    g->at[first].clean = first + n - 1;
}

static bool emptiest (const gaps *g, const int64_t *less, peaks *out, arena *a, error *err) {
  int64_t *row = NEW (a, g->n_ops, int64_t, err);
  for (int32_t k = 0; row && k < g->n_ops; k++)
    row[k] = less[k] - g->base_bytes[k];
  return row && peaks_build (out, row, g->n_ops, a, err);
}

/* Units that no op touches come back for form, not all at one op, which would then need them all:
   where least is resident; if even there is no room, where the op's own needs leave most. */
static bool spread_unused (gaps *g, arena *a, error *err) {
  peaks resident, needed;
  int64_t *nothing = NEW (a, g->n_ops, int64_t, err);
  if (!nothing || !emptiest (g, nothing, &resident, a, err) ||
      !emptiest (g, g->movable_bytes, &needed, a, err))
    return false;
  for (int32_t i = 0; i < g->count; i++) {
    int64_t bytes = gaps_room (g, g->at[i].unit);
    if (!g->at[i].unused)
      continue;
    bool fits = bytes - g->unused_bytes - peaks_most (&resident, 0, g->n_ops) <= g->room_bytes;
    int32_t k = peaks_at (fits ? &resident : &needed, 0, g->n_ops);
    peaks_add (&resident, k, k + 1, -bytes);
    peaks_add (&needed, k, k + 1, -bytes);
    set_ends (g, &g->at[i], k, k);
  }
  return true;
}

static int32_t spanned (const gap *at, const int32_t *over, int32_t n) {
  return at->before > at->after ? over[at->before] - over[at->after + 1]
                                : over[n] - over[at->after + 1] + over[at->before];
}

/* The same of places just before ops: that before the gap's own end is one. */
static int32_t spanned_places (const gap *at, const int32_t *over, int32_t n) {
  return at->before > at->after ? over[at->before + 1] - over[at->after + 1]
                                : over[n] - over[at->after + 1] + over[at->before + 1];
}

/* A copy made in a gap serves later ones along the clean links, which may run in a circle: so the
   links are walked back twice. */
static void mark_useful (gaps *g, int32_t *over, int32_t *across) {
  int32_t n = g->n_ops;
  over[0] = across[0] = 0;
  for (int32_t k = 0; k < n; k++) {
    over[k + 1] = over[k] + (g->base_bytes[k] - g->unused_bytes > g->room_bytes);
    across[k + 1] = across[k] + gaps_over_across (g, k);
  }
  for (int32_t i = 0; i < g->count; i++) {
    gap *at = &g->at[i];
    at->tight = at->useful = spanned (at, over, n) > 0 || spanned_places (at, across, n) > 0;
  }
  for (int32_t u = 0; u < g->units->count; u++)
    for (int round = 0; round < 2; round++)
      for (int32_t i = g->of_unit[u + 1] - 1; i >= g->of_unit[u]; i--)
        if (g->at[i].useful && g->at[i].clean != NO_GAP)
          g->at[g->at[i].clean].useful = true;
}

static bool mark_all (gaps *g, arena *a, error *err) {
  arena_mark here = arena_here (a);
  int32_t *over = NEW (a, (int64_t)g->n_ops + 1, int32_t, err);
  int32_t *across = NEW (a, (int64_t)g->n_ops + 1, int32_t, err);
  if (!over || !across)
    return false;
  mark_useful (g, over, across);
  arena_back (a, here);
  return true;
}

static void extremes (gaps *g) {
  for (int32_t k = 0; k < g->n_ops; k++) {
    if (g->base_bytes[k] > g->base_bytes[g->peak_op])
      g->peak_op = k;
    if (g->base_bytes[k] - g->movable_bytes[k] >
        g->base_bytes[g->floor_op] - g->movable_bytes[g->floor_op])
      g->floor_op = k;
  }
  g->peak_bytes = g->base_bytes[g->peak_op] + g->pool_bytes;
  g->floor_bytes = g->base_bytes[g->floor_op] - g->movable_bytes[g->floor_op];
  g->floor_bytes += g->pool_bytes - g->unused_bytes;
}

bool gaps_of (const units *u, int64_t granule_bytes, int64_t budget_bytes, arena *a, gaps *out,
              error *err) {
  assert (u->trace && granule_bytes > 0);
  return gaps_of_loosened (u, NULL, granule_bytes, budget_bytes, a, out, err);
}

bool gaps_of_loosened (const units *u, const loosened *l, int64_t granule_bytes,
                       int64_t budget_bytes, arena *a, gaps *out, error *err) {
  assert (u->trace && granule_bytes > 0);
  assert (!l || l->trace == u->trace);
  int32_t n = u->trace->n_ops;
  assert (granule_bytes > 0 && budget_bytes >= 0 && (!l || l->trace == u->trace));
  *out = (gaps){ .units = u, .loosened = l, .n_ops = n, .granule_bytes = granule_bytes };
  if (!total_is_sane (u, granule_bytes, err))
    return false;
  out->base_bytes = NEW (a, n, int64_t, err);
  out->movable_bytes = NEW (a, n, int64_t, err);
  out->slack_bytes = NEW (a, n, int64_t, err);
  out->of_unit = NEW (a, (int64_t)u->count + 1, int32_t, err);
  /* at most one gap a use, and one for a unit without any */
  out->at = NEW (a, (int64_t)u->use_offset[u->count] + u->count, gap, err);
  if (!out->base_bytes || !out->movable_bytes || !out->slack_bytes || !out->of_unit || !out->at)
    return false;
  out->pool_bytes = units_div_up (u->pool_bytes, granule_bytes) * granule_bytes;
  out->room_bytes = budget_bytes / granule_bytes * granule_bytes - out->pool_bytes;
  base_of (out);
  for (int32_t i = 0; i < u->count; i++) {
    out->of_unit[i] = out->count;
    gaps_of_unit (out, i);
  }
  out->of_unit[u->count] = out->count;
  for (int32_t i = 0; i < out->count; i++) {
    int64_t room = gaps_room (out, out->at[i].unit);
    if (out->at[i].unused)
      continue;
    cover_gap (out->movable_bytes, n, &out->at[i], room);
    cover_gap (out->slack_bytes, n, &out->at[i], room - u->at[out->at[i].unit].bytes);
  }
  sum_up (out->movable_bytes, n);
  sum_up (out->slack_bytes, n);
  extremes (out);
  arena_mark here = arena_here (a);
  if (out->unused_bytes && !spread_unused (out, a, err))
    return false;
  arena_back (a, here);
  return mark_all (out, a, err);
}

/* Marks, among the places [first, end) between ops of one run, the one across which most lives. */
static void mark_seam (gaps *g, int32_t first, int32_t end) {
  int32_t most = first;
  for (int32_t k = first; k < end; k++)
    if (g->across_bytes[k] > g->across_bytes[most])
      most = k;
  if (first < end)
    g->seam[most] = 1;
}

bool gaps_add_seams (gaps *g, int32_t seams, arena *a, error *err) {
  assert (g->loosened && seams > 0);
  int32_t n = g->n_ops;
  const units *u = g->units;
  const uint8_t *loose = g->loosened->loose;
  g->seam = NEW (a, n, uint8_t, err);
  g->across_bytes = NEW (a, n, int64_t, err);
  if (!g->seam || !g->across_bytes)
    return false;
  for (int32_t i = 0; i < u->count; i++)
    if (u->at[i].bytes && u->at[i].persistent)
      cover_ops (g->across_bytes, n, 0, n, gaps_room (g, i));
    else if (u->at[i].bytes && u->at[i].first != NO_OP)
      cover_ops (g->across_bytes, n, u->at[i].first + 1, u->at[i].last + 1, gaps_room (g, i));
  sum_up (g->across_bytes, n);
  for (int32_t first = 0, end; first < n; first = end) {
    for (end = first + 1; end < n && loose_follows (loose, end);)
      end++;
    g->across_bytes[first] = 0;
    int32_t places = end - first - 1, count = places < seams ? places : seams;
    for (int32_t i = 0; i < count; i++)
      mark_seam (g, first + 1 + (int32_t)((int64_t)places * i / count),
                 first + 1 + (int32_t)((int64_t)places * (i + 1) / count));
  }
  return mark_all (g, a, err);
}

bool gaps_too_small (const gaps *g, int64_t budget_bytes, error *err) {
  char budget[UNITS_TEXT], least[UNITS_TEXT];
  const op *o = &g->units->trace->ops[g->floor_op];
  return error_set (err, ERR_infeasible,
                    "no plan fits in %s: op %d (%s) alone needs %s, which is the smallest budget",
                    units_bytes (budget, budget_bytes), g->floor_op, o->name ? o->name : "",
                    units_bytes (least, g->floor_bytes));
}
