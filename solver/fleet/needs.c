/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Granules on a circle may need a few more than their number at any moment, so the places are found
   once, without any move, and their number is the answer. */
#include "solver/fleet/needs.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/place/schedule.h"
#include "solver/streams.h"
#include "trace/rewrite/rewrite.h"
#include "trace/simulate/simulate.h"
#include "trace/summary.h"

enum { TRIES = 16, APPROXIMATE_PPM = 30000, TOUCHED_PPM = 50000, ALL_PPM = 1000000 };

/* The smallest of a few rising budgets at which everything has a place, and the plan there. */
static bool place_all (const trace *t, const device *d, const char *digest, arena *a,
                       int64_t *bytes, plan **out, error *err) {
  rewritten rw;
  int64_t pool;
  device large = *d;
  large.memory_bytes = MOST_BYTES;
  if (!trace_rewrite (t, &(rewriting){ 0 }, a, &rw, err) ||
      !schedule_pool (t, NULL, 0, d->granule_bytes, a, &pool, bytes, err))
    return false;
  for (int i = 0; i < TRIES; i++) {
    schedule_options o = { .budget_bytes = *bytes,
                           .host_bytes = d->host_bytes,
                           .pool_below_bytes = -1,
                           .trace_digest = digest };
    schedule_shortage lacks = { 0 };
    error why = { 0 };
    schedule_request r = { .original = t, .rewritten = &rw, .device = &large, .options = &o };
    *out = schedule (&r, a, &lacks, &why);
    if (*out)
      return true;
    if (why.code != ERR_infeasible)
      return error_set (err, why.code, "%s", why.text);
    int64_t least = *bytes + (d->granule_bytes << i);
    *bytes = lacks.needs_bytes > *bytes && lacks.needs_bytes < least ? lacks.needs_bytes : least;
  }
  return error_set (err, ERR_internal, "no place for all tensors in %lld bytes", (long long)*bytes);
}

bool needs_plan (const trace *t, const device *d, arena *a, plan **out, error *err) {
  int64_t bytes;
  predicted *cost;
  assert (!trace_has_streams (t));
  if (!place_all (t, d, NULL, a, &bytes, out, err))
    return false;
  (*out)->device = *d;
  cost = &(*out)->predicted;
  arena *scratch = arena_new (0);
  bool ok = scratch ? simulate_plan (t, *out, scratch, cost, err) : error_memory (err);
  (*out)->has_predicted = ok;
  arena_free (scratch);
  return ok;
}

bool needs_of (const trace *t, const device *d, arena *scratch, needs *out, error *err) {
  summary s;
  plan *placed;
  const trace *list;
  int64_t apart_bytes;
  arena_mark mark = arena_here (scratch);
  bool ok = streams_list (t, d->granule_bytes, scratch, &list, &apart_bytes, err) &&
            summary_of (list, scratch, &s, err) &&
            place_all (list, d, "", scratch, &out->bytes, &placed, err);
  arena_back (scratch, mark);
  if (!ok)
    return false;
  out->granule_bytes = out->bytes - s.peak_bytes;
  out->tensor_bytes = s.peak_bytes + apart_bytes;
  out->bytes += apart_bytes;
  return true;
}

int64_t reserve_ppm (const trace *t) {
  if (t->source.confidence == CONFIDENCE_APPROXIMATE)
    return APPROXIMATE_PPM;
  return trace_is_of_program (t) ? TOUCHED_PPM : 0;
}

int64_t reserve_of (int64_t budget_bytes, int64_t ppm) {
  return units_scale (budget_bytes, ppm, ALL_PPM);
}

int64_t reserve_onto (int64_t bytes, int64_t ppm) {
  if (ppm <= 0 || ppm >= ALL_PPM || bytes > INT64_MAX / ALL_PPM * (ALL_PPM - ppm))
    return bytes;
  int64_t budget = units_scale (bytes, ALL_PPM, ALL_PPM - ppm);
  while (budget - reserve_of (budget, ppm) < bytes)
    budget++;
  return budget;
}
