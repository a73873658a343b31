/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "solver/attempt/round.h"
#include "solver/flow/peaks.h"

#define LARGE_BYTES ((int64_t)256 << 20)

/* Shares of a solver's are never quite 0 or 1. */
static double whole (const tuning *by) {
  return (double)tuned (by, TUNE_parts_whole_ppm) / 1e6;
}

double parts_crossing (const gaps *g, const double *shares) {
  double bytes = 0;
  if (!g)
    return 0;
  if (!shares)
    return (double)max_of (g->peak_bytes - g->pool_bytes - g->room_bytes, 0);
  for (int32_t i = 0; i < g->count; i++)
    bytes += shares[i] * (double)g->units->at[g->at[i].unit].bytes;
  return bytes;
}

double parts_latency_bytes (const gaps *g, const double *shares, const device *dev,
                            const tuning *by) {
  link_rates r = device_rates (&dev->link, dev->share_ppm);
  double late = (double)dev->link.copy_ns * (double)max_of (r.out_alone, r.in_alone) / 1e9;
  double fine = parts_crossing (g, shares) / (double)tuned (by, TUNE_parts_most_copies);
  return fmax (late, fine / (double)tuned (by, TUNE_parts_fine_latencies));
}

static int64_t chunk_bytes (const gaps *g, const parts_rule *rule, double latency_bytes,
                            int64_t latencies) {
  double most = (double)(INT64_MAX / 4); /* as much can be added */
  int64_t chunk = (int64_t)fmin (latency_bytes * (double)latencies, most);
  return max_of (chunk, max_of (rule->least_bytes, g->granule_bytes));
}

/* ---- small parts, so that the sum comes out ---- */

/* The largest of what gap `i` of this unit sends in part; 0: all or nothing. */
static int64_t split_bytes (const gaps *g, const double *shares, double whole, int32_t unit) {
  double most = 0;
  for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1]; i++) {
    double least = shares[i] < 0.5 ? shares[i] : 1 - shares[i];
    if (shares[i] > 1 - whole && shares[i] < whole && least > most)
      most = least;
  }
  return (int64_t)(most * (double)g->units->at[unit].bytes);
}

static int32_t parts_of (const unit_info *x, int64_t chunk, int32_t least, int32_t most) {
  int64_t n = x->bytes / chunk + (x->bytes % chunk > 0);
  n = n < least ? least : n;
  n = n > most ? most : n;
  n = x->whole ? 1 : n > x->granules ? x->granules : n;
  return n < 1 ? 1 : (int32_t)n;
}

static int32_t fewest (const unit_info *x, const tuning *by) {
  return x->bytes > LARGE_BYTES ? (int32_t)tuned (by, TUNE_parts_fewest_large) : 1;
}

typedef struct split_unit {
  int64_t bytes;
  int32_t unit;
} split_unit;

static int by_split (const void *a, const void *b) {
  const split_unit *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* ---- small parts where memory is scarce ---- */

/* Bytes that leave and come back, summed up over the ops of a step. */
typedef struct traffic {
  const gaps *g;
  double *out, *in; /* n_ops + 1: released, and due, at the ops before */
  peaks base;
} traffic;

static bool traffic_of (const gaps *g, const double *shares, arena *a, traffic *t, error *err) {
  *t = (traffic){ .g = g };
  t->out = NEW (a, (int64_t)g->n_ops + 1, double, err);
  t->in = NEW (a, (int64_t)g->n_ops + 1, double, err);
  if (!t->out || !t->in || !peaks_build (&t->base, g->base_bytes, g->n_ops, a, err))
    return false;
  for (int32_t i = 0; i < g->count; i++) {
    double bytes = shares[i] * (double)g->units->at[g->at[i].unit].bytes;
    t->out[g->at[i].after + 1] += bytes;
    t->in[g->at[i].before + 1] += bytes;
  }
  for (int32_t k = 0; k < g->n_ops; k++) {
    t->out[k + 1] += t->out[k];
    t->in[k + 1] += t->in[k];
  }
  return true;
}

/* Over the ops [first, end), of this step or the next. */
static double between (const double *sums, int32_t n_ops, int32_t first, int32_t end) {
  return first <= end ? sums[end] - sums[first] : sums[n_ops] - sums[first] + sums[end];
}

/* Bytes that leave after this gap's unit, or come back before it, about its fullest op. */
static int64_t distance (const traffic *t, const gap *at) {
  int32_t n = t->g->n_ops, op = round_fullest (&t->base, at);
  double out = between (t->out, n, at->after + 1, op), in = between (t->in, n, op, at->before);
  return (int64_t)(out < in ? out : in);
}

static int64_t nearest (const traffic *t, const double *shares, double whole, int32_t unit) {
  int64_t least = INT64_MAX;
  const gaps *g = t->g;
  for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1]; i++) {
    int64_t bytes = shares[i] > 1 - whole ? distance (t, &g->at[i]) : INT64_MAX;
    least = bytes < least ? bytes : least;
  }
  return least;
}

static bool by_distance (const gaps *g, double latency_bytes, const double *shares,
                         const parts_rule *rule, arena *a, int32_t *of, error *err) {
  const tuning *by = rule->tuning;
  int64_t fine = chunk_bytes (g, rule, latency_bytes, tuned (by, TUNE_parts_fine_latencies));
  int64_t far = chunk_bytes (g, rule, latency_bytes, rule->far_latencies);
  int64_t coarse = chunk_bytes (g, rule, latency_bytes, tuned (by, TUNE_parts_coarse_latencies));
  int64_t part = tuned (by, TUNE_parts_distance_part);
  traffic t;
  if (!traffic_of (g, shares, a, &t, err))
    return false;
  for (int32_t u = 0; u < g->units->count; u++) {
    int64_t bytes = nearest (&t, shares, whole (by), u);
    int64_t chunk = bytes == INT64_MAX ? coarse : fine + bytes / part;
    chunk = bytes < INT64_MAX && chunk > far ? far : chunk;
    of[u] = parts_of (&g->units->at[u], chunk, 1, rule->most);
  }
  return true;
}

/* ---- all of it ---- */

static bool split_some (const gaps *g, double latency_bytes, const double *shares,
                        const parts_rule *rule, arena *a, int32_t *of, error *err) {
  int64_t fine =
      chunk_bytes (g, rule, latency_bytes, tuned (rule->tuning, TUNE_parts_fine_latencies));
  split_unit *split = NEW (a, g->units->count, split_unit, err);
  int32_t n = 0;
  if (!split)
    return false;
  for (int32_t u = 0; u < g->units->count; u++) {
    int64_t bytes = split_bytes (g, shares, whole (rule->tuning), u);
    if (bytes > 0)
      split[n++] = (split_unit){ bytes, u };
  }
  qsort (split, (size_t)n, sizeof *split, by_split);
  for (int32_t i = 0; i < n && i < rule->splits; i++) {
    int32_t u = split[i].unit;
    of[u] = parts_of (&g->units->at[u], fine, of[u], rule->most);
  }
  return true;
}

bool parts_choose (const gaps *g, const device *dev, const double *shares, const parts_rule *rule,
                   arena *a, int32_t *of, error *err) {
  assert (of && rule->most > 0);
  arena_mark here = arena_here (a);
  tuning_id latencies = shares ? TUNE_parts_coarse_latencies : TUNE_parts_fine_latencies;
  double latency_bytes = parts_latency_bytes (g, shares, dev, rule->tuning);
  int64_t chunk = chunk_bytes (g, rule, latency_bytes, tuned (rule->tuning, latencies));
  bool ok = true;
  if (shares && rule->far_latencies)
    ok = by_distance (g, latency_bytes, shares, rule, a, of, err);
  else
    for (int32_t u = 0; u < g->units->count; u++)
      of[u] =
          parts_of (&g->units->at[u], chunk, fewest (&g->units->at[u], rule->tuning), rule->most);
  ok = ok && (!shares || split_some (g, latency_bytes, shares, rule, a, of, err));
  arena_back (a, here);
  return ok;
}
