/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Starts of the search for drops. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "solver/recompute/find.h"

typedef struct rank_context {
  const drop *drops;
  drop_ranking by;
} rank_context;

static int by_rank (const void *a, const void *b, void *context) {
  const rank_context *c = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  const drop *x = &c->drops[i], *y = &c->drops[j];
  __int128 p = x->bytes, q = y->bytes;
  if (c->by == BY_OWN || c->by == BY_CHAIN) {
    p = (__int128)x->bytes * ((c->by == BY_OWN ? y->own_ns : y->chain_ns) + 1);
    q = (__int128)y->bytes * ((c->by == BY_OWN ? x->own_ns : x->chain_ns) + 1);
  }
  if (p != q)
    return p > q ? -1 : 1;
  return i < j ? -1 : i > j;
}

void find_rank (finding *f, drop_ranking by) {
  assert (by >= 0 && by < DROP_RANKINGS);
  rank_context c = { f->drops, by };
  for (int32_t i = 0; i < f->n_drops; i++)
    f->order[i] = i;
  qsort_r (f->order, (size_t)f->n_drops, sizeof *f->order, by_rank, &c);
}

/* ---- prefixes ---- */

static bool prefix (finding *f, int32_t n, int64_t *ns, error *err) {
  memset (f->now.chosen, 0, (size_t)f->n_drops);
  for (int32_t i = 0; i < n; i++)
    f->now.chosen[f->order[i]] = find_drop (f);
  bool ok = find_price (f, err);
  *ns = f->now.ns;
  return ok;
}

/* Tries some prefixes of one ranking, then around the best of them, halving the distance. */
bool find_prefixes (finding *f, drop_ranking by, int32_t *best, error *err) {
  assert (best);
  int32_t step = f->n_drops / (int32_t)find_number (f, TUNE_prefixes_first) + 1;
  int64_t ns, least_ns = INT64_MAX;
  *best = 0;
  find_rank (f, by);
  for (int32_t i = 0; i < f->n_drops + step && !find_is_over (f); i += step) {
    int32_t n = i < f->n_drops ? i : f->n_drops;
    if (!prefix (f, n, &ns, err))
      return false;
    if (ns < least_ns) {
      least_ns = ns;
      *best = n;
    }
    if (find_is_wild (f))
      break;
  }
  for (step /= 2; step > 0; step /= 2)
    for (int side = -1; side <= 1; side += 2) {
      int32_t n = *best + side * step;
      if (n < 1 || n > f->n_drops || find_is_over (f))
        continue;
      if (!prefix (f, n, &ns, err))
        return false;
      if (ns < least_ns) {
        least_ns = ns;
        *best = n;
      }
    }
  return true;
}

bool find_greedy (finding *f, error *err) {
  int32_t best;
  for (int by = 0; by < DROP_RANKINGS; by++)
    if (!find_prefixes (f, (drop_ranking)by, &best, err))
      return false;
  return true;
}
