#include "solver/recompute.h"

#include <stdlib.h>
#include <string.h>

#include "solver/drops.h"

enum { DEFAULT_TRIES = 160 };

typedef struct finding {
  const trace *t;
  const variant *cut;
  const solve_options *o;
  arena *arena, *scratch;
  rewritten rw; /* cut */
  uses uses;
  drop *drops;
  int32_t n_drops, tried, limit;
  int32_t *order;
  uint8_t *chosen, *best;
  variant_value value; /* of best */
  const recompute_program *guide;
  double *dropped; /* per drop, by the guide */
} finding;

/* What marks the ops that are over the budget, and the cheap ones. */
static bool find_drops (finding *f, error *err) {
  const trace *t = f->rw.trace;
  units u;
  gaps g;
  policy_view view;
  uint8_t *over = NEW (f->arena, t->n_ops, uint8_t, err), *cheap = NULL;
  if (!over || !uses_of (t, f->arena, &f->uses, err) ||
      !units_of (t, NULL, 0, 1, 0, f->arena, &u, err) ||
      !gaps_of (&u, 1, f->o->budget_bytes, f->arena, &g, err))
    return false;
  /* Close to the budget counts: copies made again may push an op over it. */
  for (int32_t k = 0; k < t->n_ops; k++)
    over[k] = g.base_bytes[k] - g.unused_bytes > g.room_bytes - g.room_bytes / 16;
  if (f->o->recompute == RECOMPUTE_CHEAP) {
    cheap = NEW (f->arena, t->n_ops, uint8_t, err);
    if (!cheap || !policy_view_build (t, f->o->device, f->o->budget_bytes, f->o->host_bytes,
                                      f->arena, &view, err))
      return false;
    for (int32_t k = 0; k < t->n_ops; k++)
      cheap[k] = recompute_is_cheap (&view, k);
  }
  return drops_find (t, over, cheap, f->arena, &f->drops, &f->n_drops, err);
}

static bool make_variant (finding *f, const uint8_t *chosen, arena *a, variant *out, error *err) {
  *out = *f->cut;
  out->name = "recompute";
  return drops_entries (f->rw.trace, &f->uses, f->drops, f->n_drops, chosen, a, &out->recomputes,
                        &out->n_recomputes, err);
}

/* What does not fit yet is better the less it is over the budget. */
static bool is_better (const variant_value *a, const variant_value *b) {
  if (a->step_ns != b->step_ns)
    return a->step_ns < b->step_ns;
  return a->step_ns == INT64_MAX && a->over_bytes < b->over_bytes;
}

/* The chosen become the best where they are better. */
static bool consider (finding *f, bool *better, error *err) {
  arena_mark mark = arena_here (f->scratch);
  variant v;
  variant_value value;
  bool ok = make_variant (f, f->chosen, f->scratch, &v, err) &&
            variant_look (f->t, &v, f->o, f->scratch, &value, err);
  *better = false;
  if (ok && value.bound_ns < f->value.step_ns) {
    f->tried++;
    ok = variant_try (f->t, &v, f->o, f->scratch, &value, err);
  }
  if (ok && value.legal && is_better (&value, &f->value)) {
    *better = true;
    f->value = value;
    memcpy (f->best, f->chosen, (size_t)f->n_drops);
  }
  arena_back (f->scratch, mark);
  return ok;
}

static bool is_over (const finding *f) {
  return f->tried >= f->limit || (f->o->stop && f->o->stop (f->o->stop_context));
}

typedef enum ranking { BY_OWN, BY_CHAIN, BY_SIZE, RANKINGS } ranking;

typedef struct rank_context {
  const drop *drops;
  ranking by;
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

static bool try_prefix (finding *f, int32_t n, bool *better, error *err) {
  memset (f->chosen, 0, (size_t)f->n_drops);
  for (int32_t i = 0; i < n; i++)
    f->chosen[f->order[i]] = 1;
  return consider (f, better, err);
}

/* Prefixes of one ranking: a dozen, then around the best of them, halving the distance. */
static bool prefixes (finding *f, ranking by, error *err) {
  enum { FIRST = 12 };
  rank_context c = { f->drops, by };
  int32_t best = 0, step = f->n_drops / FIRST + 1;
  for (int32_t i = 0; i < f->n_drops; i++)
    f->order[i] = i;
  qsort_r (f->order, (size_t)f->n_drops, sizeof *f->order, by_rank, &c);
  for (int32_t n = step; n < f->n_drops + step; n += step) {
    bool better;
    if (is_over (f) || !try_prefix (f, n < f->n_drops ? n : f->n_drops, &better, err))
      return is_over (f);
    if (better)
      best = n;
  }
  for (step /= 2; best && step > 0; step /= 2)
    for (int side = -1; side <= 1; side += 2) {
      bool better;
      int32_t n = best + side * step;
      if (n < 1 || n > f->n_drops)
        continue;
      if (is_over (f) || !try_prefix (f, n, &better, err))
        return is_over (f);
      if (better)
        best = n;
    }
  return true;
}

/* How much of each drop the guide would drop: both are in order of tensors, then of ops. */
static bool take_guide (finding *f, error *err) {
  f->dropped = NEW (f->arena, f->n_drops, double, err);
  if (!f->dropped || !f->guide || !f->guide->bound.dropped)
    return f->dropped;
  const gaps *g = &f->guide->gaps;
  for (int32_t i = 0; i < f->n_drops; i++)
    for (int32_t k = g->of_unit[f->drops[i].tensor]; k < g->of_unit[f->drops[i].tensor + 1]; k++)
      if (g->at[k].after == f->drops[i].after && g->at[k].before == f->drops[i].before)
        f->dropped[i] = f->guide->bound.dropped[k];
  return true;
}

/* What the guide drops at least that much of. */
static bool thresholds (finding *f, error *err) {
  static const double least[] = { 0.97, 0.75, 0.5, 0.25, 0.05, 0.01 };
  int32_t before = -1;
  bool better;
  for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
    int32_t n = 0;
    for (int32_t k = 0; k < f->n_drops; k++)
      n += f->chosen[k] = f->dropped[k] >= least[i];
    if (n == 0 || n == before)
      continue;
    before = n;
    if (is_over (f) || !consider (f, &better, err))
      return is_over (f);
  }
  return true;
}

/* One drop more or less, those whose time a byte is nearest to the dearest chosen first. */
static bool flips (finding *f, error *err) {
  rank_context c = { f->drops, BY_OWN };
  int32_t edge = 0;
  for (int32_t i = 0; i < f->n_drops; i++)
    f->order[i] = i;
  qsort_r (f->order, (size_t)f->n_drops, sizeof *f->order, by_rank, &c);
  for (int32_t i = 0; i < f->n_drops; i++)
    edge += f->best[i] != 0;
  for (bool any = true; any;) {
    any = false;
    for (int32_t i = 0; i < 2 * f->n_drops; i++) {
      int32_t at = edge + (i % 2 ? -(i + 1) / 2 : i / 2);
      bool better;
      if (at < 0 || at >= f->n_drops)
        continue;
      if (is_over (f))
        return true;
      memcpy (f->chosen, f->best, (size_t)f->n_drops);
      f->chosen[f->order[at]] ^= 1;
      if (!consider (f, &better, err))
        return false;
      any |= better;
    }
  }
  return true;
}

bool recompute_search (const trace *t, const variant *cut, const solve_options *o,
                       const recompute_program *guide, int32_t limit_tries, arena *a,
                       recompute_result *out, error *err) {
  static const variant nothing = { .name = "swap" };
  finding f = { .t = t, .cut = cut ? cut : &nothing, .o = o, .arena = a, .guide = guide };
  f.limit = limit_tries ? limit_tries : DEFAULT_TRIES;
  *out = (recompute_result){ .best = *f.cut, .greedy = *f.cut };
  f.scratch = arena_new (0);
  bool ok = f.scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok &&
       trace_rewrite (t, f.cut->sections, f.cut->n_sections, NULL, 0, o->device->section_ns, a,
                      &f.rw, err) &&
       find_drops (&f, err) && variant_try (t, f.cut, o, f.scratch, &f.value, err);
  if (ok) {
    f.chosen = NEW (a, f.n_drops, uint8_t, err);
    f.best = NEW (a, f.n_drops, uint8_t, err);
    f.order = NEW (a, f.n_drops, int32_t, err);
    ok = f.chosen && f.best && f.order && take_guide (&f, err);
  }
  for (int by = 0; ok && by < RANKINGS; by++)
    ok = prefixes (&f, (ranking)by, err);
  ok = ok && make_variant (&f, f.best, a, &out->greedy, err);
  out->greedy.name = "greedy recompute";
  out->greedy_value = f.value;
  ok = ok && thresholds (&f, err) && flips (&f, err) &&
       make_variant (&f, f.best, a, &out->best, err);
  out->value = f.value;
  out->candidates = f.n_drops;
  out->tried = f.tried;
  arena_free (f.scratch);
  return ok;
}
