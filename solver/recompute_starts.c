/* Where the search for drops begins. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "solver/recompute_find.h"

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
  rank_context c = { f->drops, by };
  for (int32_t i = 0; i < f->n_drops; i++)
    f->order[i] = i;
  qsort_r (f->order, (size_t)f->n_drops, sizeof *f->order, by_rank, &c);
}

/* ---- prefixes ---- */

static bool prefix (finding *f, int32_t n, int64_t *ns, error *err) {
  memset (f->now.chosen, 0, (size_t)f->n_drops);
  for (int32_t i = 0; i < n; i++)
    f->now.chosen[f->order[i]] = 1;
  bool ok = find_price (f, err);
  *ns = f->now.ns;
  return ok;
}

/* Of one ranking: some, then around the best of them, halving the distance. */
static bool prefixes (finding *f, drop_ranking by, int32_t *best, error *err) {
  enum { FIRST = 16 };
  int32_t step = f->n_drops / FIRST + 1;
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
    if (!prefixes (f, (drop_ranking)by, &best, err))
      return false;
  return true;
}

/* Of what the best prefix would drop, in order of ops, every k-th is kept, for what is made again
   to start from; and of all. */
bool find_every (finding *f, error *err) {
  enum { MOST = 24 };
  for (int whole = 0; whole < 2; whole++) {
    int32_t n = f->n_drops;
    if (!whole && !prefixes (f, BY_OWN, &n, err))
      return false;
    uint8_t *among = NEW (f->arena, f->n_drops, uint8_t, err);
    if (!among)
      return false;
    find_rank (f, BY_OWN);
    for (int32_t i = 0; i < n; i++)
      among[f->order[i]] = 1;
    for (int32_t k = 2; k <= MOST && !find_is_over (f); k++) {
      int32_t at = 0;
      for (int32_t i = 0; i < f->n_drops; i++) {
        bool counts = among[i] && f->drops[i].bytes >= f->o->device->granule_bytes;
        f->now.chosen[i] = counts ? at++ % k != 0 : among[i];
      }
      if (!find_price (f, err))
        return false;
      if (find_is_wild (f))
        break;
    }
  }
  return true;
}

/* ---- what the program drops ---- */

bool find_thresholds (finding *f, error *err) {
  static const double least[] = { 0.97, 0.75, 0.5, 0.25, 0.05, 0.01 };
  for (size_t i = 0; i < sizeof least / sizeof *least && !find_is_over (f); i++) {
    for (int32_t k = 0; k < f->n_drops; k++)
      f->now.chosen[k] = f->dropped[k] >= least[i];
    if (!find_price (f, err))
      return false;
  }
  return true;
}

/* ---- a dive ---- */

/* Where an op of the rewritten trace stands among those of the cut: for a copy, before which. */
static int32_t *places_of (const rewritten *rw, arena *a, error *err) {
  int32_t *at = NEW (a, rw->trace->n_ops, int32_t, err), next = 0;
  for (int32_t i = 0; at && i < rw->trace->n_ops; i++) {
    at[i] = next;
    next += !rw->ops[i].copy;
  }
  return at;
}

/* What the program of the chosen would drop besides, per drop: 0 where it is chosen already. */
static bool ask_again (finding *f, const uint8_t *chosen, bool *fits, error *err) {
  variant v;
  rewritten rw;
  gaps g;
  const double *dropped;
  error why = { 0 };
  *fits = false;
  if (!find_variant (f, chosen, f->scratch, &v, err))
    return false;
  if (!recompute_guide (f->t, &v, f->o, f->scratch, &rw, &g, &dropped, &why))
    return !why.code || error_set (err, why.code, "%s", why.text);
  int32_t *place = places_of (&rw, f->scratch, err);
  if (!place)
    return false;
  f->ticks += 40 * rw.trace->n_ops; /* which takes so much longer than a price */
  *fits = true;
  for (int32_t i = 0; i < f->n_drops; i++) {
    const drop *d = &f->drops[i];
    f->dropped[i] = 0;
    for (int32_t k = g.of_unit[d->tensor]; dropped && !chosen[i] && k < g.of_unit[d->tensor + 1];
         k++) {
      int32_t from = place[g.at[k].after] - rw.ops[g.at[k].after].copy;
      if (from >= d->after && place[g.at[k].before] <= d->before && dropped[k] > f->dropped[i])
        f->dropped[i] = dropped[k];
    }
  }
  return true;
}

static int32_t last_writer (const finding *f, const drop *d) {
  for (int32_t i = f->uses.offset[d->tensor + 1] - 1; i >= f->uses.offset[d->tensor]; i--)
    if (f->uses.at[i].op <= d->after && f->uses.at[i].writes)
      return f->uses.at[i].op;
  return d->after;
}

/* Whether one of the two is made from the other. */
static bool feeds (const finding *f, const drop *x, const drop *y) {
  const index_list *from_y = &f->rw.trace->ops[last_writer (f, x)].reads;
  const index_list *from_x = &f->rw.trace->ops[last_writer (f, y)].reads;
  for (int32_t i = 0; i < from_y->count; i++)
    if (from_y->at[i] == y->tensor)
      return true;
  for (int32_t i = 0; i < from_x->count; i++)
    if (from_x->at[i] == x->tensor)
      return true;
  return false;
}

static int by_dropped (const void *a, const void *b, void *context) {
  const double *d = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return d[i] != d[j] ? (d[i] > d[j] ? -1 : 1) : i < j ? -1 : i > j;
}

/* The surest, at most a quarter of all that it would drop, and of what is less sure an eighth; no
   two of which feed each other. Returns how many. */
static int32_t fix_some (finding *f, uint8_t *chosen) {
  int32_t n = 0, fixed = 0;
  for (int32_t i = 0; i < f->n_drops; i++)
    if (f->dropped[i] > 0.02)
      f->order[n++] = i;
  qsort_r (f->order, (size_t)n, sizeof *f->order, by_dropped, f->dropped);
  for (int32_t i = 0; i < n && fixed < n / 4 + 1; i++) {
    int32_t k = f->order[i], j = 0;
    if (f->dropped[k] < (fixed > n / 8 ? 0.9 : 0.3))
      break;
    while (j < fixed && !feeds (f, &f->drops[k], &f->drops[f->order[j]]))
      j++;
    if (j < fixed)
      continue;
    f->order[i] = f->order[fixed];
    f->order[fixed++] = k;
    chosen[k] = 1;
  }
  return fixed;
}

bool find_dive (finding *f, error *err) {
  enum { MOST_ROUNDS = 12, MANY_OPS = 1500, MOST_OPS = 6000 };
  arena_mark kept = arena_here (f->scratch);
  uint8_t *chosen = NEW (f->scratch, f->n_drops, uint8_t, err);
  if (!chosen)
    return false;
  bool go_on = f->t->n_ops <= MOST_OPS, ok = true;
  for (int round = 0; round < (f->t->n_ops < MANY_OPS ? MOST_ROUNDS : MOST_ROUNDS / 3) && go_on &&
                      !find_is_over (f);
       round++) {
    arena_mark mark = arena_here (f->scratch);
    bool fits;
    ok = ask_again (f, chosen, &fits, err);
    arena_back (f->scratch, mark);
    go_on = ok && fits && fix_some (f, chosen) > 0;
    if (!go_on)
      break;
    memcpy (f->now.chosen, chosen, (size_t)f->n_drops);
    if (!(ok = find_price (f, err)))
      break;
    log_say (f->o->log, LOG_DETAIL, "dive: round %d, %.6g s", round, (double)f->now.ns / 1e9);
  }
  arena_back (f->scratch, kept);
  return ok;
}
